"""All known machine types: the built-in ones of `data/machines/`, and a site's own files.

Facts only: it knows nothing of nodes that exist, of health or of what is in use.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from itertools import combinations
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Final

from gateway.backends.machine_reading import read_machine
from gateway.backends.machine_types import Machine
from gateway.core.devices.fleet import MachineType
from gateway.core.vocabulary import INSTANCE_TYPE_LABEL, MACHINE_TYPE_LABEL
from gateway.errors import InvalidInput

__all__ = [
    "Machine",
    "check_file",
    "known_facts",
    "machine",
    "machine_matching",
    "machine_names",
    "machines",
    "use_site_machines",
]

SUFFIX: Final = ".yaml"
_SITE: Final[dict[str, Machine]] = {}
"""Types of the site's folder; filled once at start-up, before anybody looks a type up."""


def machine_names() -> tuple[str, ...]:
    """Give the names of all known machine types, the built-in ones first."""
    return tuple(machines())


def machines() -> Mapping[str, Machine]:
    """Give all known machine types by name."""
    return MappingProxyType({**_built_in(), **_SITE})


def machine(name: str) -> Machine:
    """Look one machine type up; raises InvalidInput with the known names."""
    found = _SITE.get(name) or _built_in().get(name)
    if found is None:
        raise InvalidInput(
            f"machine type {name!r} is not in the catalogue",
            value=name,
            allowed=machine_names(),
            hint="use one of these machine types, or add a file of your own",
        )
    return found


def known_facts() -> Mapping[str, MachineType]:
    """Give the types with facts that no device tells, by every name that their nodes may give."""
    found: dict[str, MachineType] = {}
    for each in filter(_has_facts, machines().values()):
        # A node without our own label is of the type that its cloud names.
        found |= dict.fromkeys(
            {each.match.get(INSTANCE_TYPE_LABEL, each.name), each.name}, each.topology
        )
    return found


def machine_matching(labels: Mapping[str, str]) -> Machine | None:
    """Give the machine type of a node with these labels: by its own label, else by `match`.

    None where no type fits, or more than one: a wrong pair is worse than an unknown one.
    """
    if own := labels.get(MACHINE_TYPE_LABEL):
        return machines().get(own)
    found = [each for each in machines().values() if _is_of(each, labels)]
    return found[0] if len(found) == 1 else None


def use_site_machines(folder: Path | None) -> tuple[str, ...]:
    """Read a site's folder in place of the one before; gives the names of its machine types.

    None leaves the built-in types alone. A file may replace the built-in type of its name. Nothing
    changes when a file is wrong: raises InvalidInput with file, field, value and what is allowed.
    """
    found = {each.name: each for each in map(_read, _files(folder))}
    require_apart({**_built_in(), **found}.values())
    _SITE.clear()
    _SITE.update(found)
    return tuple(found)


def check_file(path: Path) -> Machine:
    """Read one file as if it lay in the site's folder, and change nothing.

    Raises:
        InvalidInput: it cannot be read, a field is wrong, or its nodes would be another type's too.
    """
    found = _read(path)
    require_apart({**machines(), found.name: found}.values())
    return found


def require_apart(known: Iterable[Machine]) -> None:
    """Refuse two types that would both recognise one node; raises InvalidInput."""
    for one, two in combinations(filter(attrgetter("match"), known), 2):
        _require_two_apart(one, two)


def _require_two_apart(one: Machine, two: Machine) -> None:
    # Where neither has all labels of the other, a node of both may never exist; should there be
    # one, it is left without a type.
    if one.match.items() <= two.match.items() or two.match.items() <= one.match.items():
        raise InvalidInput(
            f"{two.origin}: /match also fits nodes of machine type {one.name!r}",
            pointer="/match",
            value=dict(two.match),
            hint=f"add a label on which {two.name!r} and {one.name!r} differ",
        )


def _has_facts(kind: Machine) -> bool:
    return bool(kind.topology.partitions or kind.topology.links or kind.topology.is_c2c)


def _is_of(kind: Machine, labels: Mapping[str, str]) -> bool:
    return bool(kind.match) and kind.match.items() <= labels.items()


# Frozen values behind a read-only mapping, so that all callers can share one reading.
@cache
def _built_in() -> Mapping[str, Machine]:
    # By the package's resources: an installed wheel may be a zip file without paths.
    folder = resources.files("gateway.backends").joinpath("data/machines")
    found = [
        read_machine(file.name.removesuffix(SUFFIX), file.read_text("utf-8"), file.name)
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith(SUFFIX)
    ]
    require_apart(found)
    return MappingProxyType({each.name: each for each in found})


def _files(folder: Path | None) -> list[Path]:
    if folder is None:
        return []
    if not folder.is_dir():
        raise InvalidInput(
            f"{folder} is not a folder",
            pointer="/machines_dir",
            value=str(folder),
            hint="set TRAINING_GATEWAY_MACHINES_DIR to a folder of YAML files, or leave it unset",
        )
    return sorted(folder.glob(f"*{SUFFIX}"))


def _read(path: Path) -> Machine:
    try:
        text = path.read_text("utf-8")
    # A file that is not UTF-8 is as unreadable as one that is not there.
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{path} cannot be read: {error}",
            value=str(path),
            hint="name a YAML file in UTF-8 that this user may read",
        ) from error
    return read_machine(path.name.removesuffix(SUFFIX), text, str(path))
