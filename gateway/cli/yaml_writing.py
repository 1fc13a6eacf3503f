"""Writes YAML that means the same to every reader: this gateway, kubectl, PyYAML.

Knows nothing of what it writes.
"""

import yaml

from gateway.manifests.yaml_scalars import NotFinite, plain_scalar


class _Dumper(yaml.SafeDumper):
    """Quotes every text that some reader would take for something else."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # PyYAML quotes what PyYAML would misread. To Go's reader, and so to kubectl and to us, 1e3 and
    # 0o17 are numbers as well, and both are names that a queue may have.
    style = None if _is_read_as_text(text) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _is_read_as_text(text: str) -> bool:
    try:
        return isinstance(plain_scalar(text), str)
    except NotFinite:
        return False


_Dumper.add_representer(str, _text)


def write_yaml(data: object) -> str:
    """Give plain data as YAML, in its own order of keys."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
