"""Gets job documents out of any source: path, standard input, text, bytes, mapping, model object.

Gives plain data and judges no field. The server passes bytes or mappings only: a text may be taken
for a path.
"""

import codecs
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gateway.errors import BodyTooLarge, InvalidInput, MalformedBody
from gateway.manifests.documents import flatten
from gateway.manifests.json_text import read_json, syntax_error
from gateway.manifests.model_objects import model_to_plain
from gateway.manifests.plain import plain
from gateway.manifests.yaml_text import read_yaml

# Well above the largest real manifest (inline scripts of 20 kB), well below etcd's 1.5 MiB.
MAX_BYTES: Final = 256 * 1024
STDIN: Final = "-"
_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    # What Windows' editors and PowerShell's `>` write. The codec drops the mark itself.
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

Source = str | bytes | Path | Mapping[str, Any] | list[Any] | object


def read_documents(source: Source, *, max_bytes: int = MAX_BYTES) -> list[dict[str, Any]]:
    """Give every job document of a source as plain JSON data.

    A text with a line break, or one that starts with a bracket, is YAML or JSON; any other text is
    a path, "-" standard input. Raises MalformedBody for what cannot be read, BodyTooLarge beyond
    `max_bytes`, InvalidInput for documents that are no job.
    """
    if isinstance(source, str | bytes | Path):
        return flatten([plain(each) for each in _parsed(_text(source, max_bytes))])
    data = plain(model_to_plain(source))
    if not isinstance(data, dict | list):
        raise InvalidInput(
            f"a {type(source).__name__} is no job",
            hint="give a path, YAML or JSON text, a mapping, or a kubeflow-training object",
        )
    # A mapping is measured as the text that it would be, so that no source can carry more.
    _require_size(json.dumps(data, ensure_ascii=False).encode(), max_bytes)
    return flatten(data if isinstance(data, list) else [data])


def _parsed(text: str) -> list[Any]:
    if not text.lstrip().startswith(("{", "[")):
        return read_yaml(text)
    try:
        return [read_json(text)]
    except json.JSONDecodeError as error:
        # It may be YAML in flow style; if not, what JSON said is the better message.
        try:
            return read_yaml(text)
        except MalformedBody:
            raise syntax_error(error) from None


def _text(source: str | bytes | Path, max_bytes: int) -> str:
    if isinstance(source, str):
        return _text_of(source, max_bytes)
    data = source if isinstance(source, bytes) else _read_file(source, max_bytes)
    return _decoded(data, max_bytes)


def _text_of(source: str, max_bytes: int) -> str:
    if source == STDIN:
        return _decoded(_read_stdin(max_bytes), max_bytes)
    if _is_document(source):
        _require_size(source.encode("utf-8", "surrogatepass"), max_bytes)
        return source.removeprefix("\ufeff")
    return _text(Path(source), max_bytes) if source.strip() else ""


def _is_document(text: str) -> bool:
    """True for a text that is no path: it has a line break or starts with a bracket."""
    has_break = "\n" in text or "\r" in text
    return has_break or text.lstrip("\ufeff \t").startswith(("{", "["))


def _read_stdin(max_bytes: int) -> bytes:
    binary = getattr(sys.stdin, "buffer", None)
    # One byte more than allowed tells that it is too much, however much there is.
    data: bytes = binary.read(max_bytes + 1) if binary else sys.stdin.read(max_bytes + 1).encode()
    return data


def _read_file(path: Path, max_bytes: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(max_bytes + 1)
    # ValueError: a path that holds a NUL.
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidInput(
            f"cannot read {str(path)[:200]!r}: {reason}",
            value=str(path)[:200],
            hint="give the path of a file; YAML given as text has more than one line",
        ) from None


def _decoded(data: bytes, max_bytes: int) -> str:
    _require_size(data, max_bytes)
    encoding = _encoding(data)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise MalformedBody(
            f"byte {error.start} is not {encoding.upper()}",
            hint="save the file as UTF-8",
        ) from None


def _encoding(data: bytes) -> str:
    return next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), "utf-8")


def _require_size(data: bytes, max_bytes: int) -> None:
    if len(data) <= max_bytes:
        return
    raise BodyTooLarge(
        f"what was submitted is longer than {max_bytes} bytes",
        allowed=(f"at most {max_bytes} bytes",),
        hint="submit fewer jobs at once, or move scripts and data out of the manifest",
    )
