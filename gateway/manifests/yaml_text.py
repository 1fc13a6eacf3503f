"""Reads YAML text into plain data, from parser events: nothing is constructed but JSON values.

Stricter than the usual loaders where they guess: duplicate keys, unknown tags, aliases that
contain themselves or multiply without bound, and deep nesting are refused with their line. The
event stream is read in a loop, so nesting cannot exhaust the stack.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

import yaml

from gateway.errors import BodyTooLarge, GatewayError, MalformedBody
from gateway.manifests.plain import MAX_DEPTH, MAX_NODES
from gateway.manifests.yaml_scalars import plain_scalar, tagged_scalar

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Used for its parser alone; the one written in C where it is there."""
# Nine anchors of nine aliases each are 400 million values from 300 bytes ("billion laughs").
MAX_EXPANDED: Final = 1024 * 1024
"""Characters of a document once every alias is written out."""
_KEY_SHOWN: Final = 60


# Events do not say which scalar is a key and which a value: `has_key` remembers whose turn it is.
@dataclass(slots=True)
class _Open:
    """A mapping or list that is being read."""

    value: dict[Any, Any] | list[Any]
    anchor: str | None
    started_at: int
    key: Any = None
    has_key: bool = False
    merged: list[dict[Any, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Anchored:
    """A finished value that aliases may repeat, with what it holds."""

    value: Any
    nodes: int
    characters: int


_KINDS: Final[dict[type[yaml.Event], tuple[str, Callable[[], dict[Any, Any] | list[Any]]]]] = {
    yaml.MappingStartEvent: ("map", dict),
    yaml.SequenceStartEvent: ("seq", list),
}
"""Tag and empty value of what an event begins."""
_MERGE: Final = object()
"""Stands for the key `<<`."""


def read_yaml(text: str) -> list[Any]:
    """Give every document of a YAML text; an empty document is None.

    Raises MalformedBody with line and column, BodyTooLarge when aliases multiply too far.
    """
    try:
        return list(_documents(text))
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(text, error) from None
    except yaml.YAMLError as error:
        raise MalformedBody(f"not YAML: {error}", hint="remove unprintable characters") from None


def _documents(text: str) -> Iterator[Any]:
    builder = _Builder(text)
    # Events instead of `yaml.load`: constructors would resolve timestamps and merge keys their own
    # way, keep the last of two equal keys, and recurse once for each level.
    for event in yaml.parse(text, Loader=_LOADER):
        builder.take(event)
        if isinstance(event, yaml.DocumentEndEvent):
            yield builder.document
            builder = _Builder(text)


class _Builder:
    """Builds one document from its events."""

    def __init__(self, text: str) -> None:
        self.document: Any = None
        self._text = text
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored] = {}
        self._nodes = 0
        self._characters = 0
        self._sizes: list[tuple[int, int]] = []

    def take(self, event: yaml.Event) -> None:
        """Take the next event."""
        match event:
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._start(event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._end(event)
            case _:
                return

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        # Before anything is built: the refusal must come while the document is still small.
        self._count(event, 1, len(event.value))
        try:
            value = self._value(event)
        except ValueError as error:
            raise _refused(event, str(error), "write a plain, finite value") from None
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, 1, len(event.value))
        self._put(value, event)

    def _value(self, event: yaml.ScalarEvent) -> Any:
        if event.tag is not None:
            return tagged_scalar(event.tag, event.value)
        # False for quoted and block texts: "1" and 'yes' are never numbers or booleans.
        if not event.implicit[0]:
            return event.value
        # A merge key only as a plain word in the place of a key (YAML 1.1 type `merge`).
        is_merge = event.value == "<<" and self._expects_key()
        return _MERGE if is_merge else plain_scalar(event.value)

    def _alias(self, event: yaml.AliasEvent) -> None:
        found = self._anchors.get(event.anchor or "")
        if found is None:
            raise self._dangling(event)
        # Shared, not copied, yet counted in full: whoever writes it out later will pay.
        self._count(event, found.nodes, found.characters)
        self._put(found.value, event)

    def _dangling(self, event: yaml.AliasEvent) -> GatewayError:
        is_open = event.anchor in [each.anchor for each in self._open]
        detail = "contains itself" if is_open else "has no anchor before it"
        return _refused(event, f"the alias *{event.anchor} {detail}", "define the anchor first")

    def _start(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        self._count(event, 1, 0)
        kind, empty = _KINDS[type(event)]
        if event.tag not in {None, "!", f"tag:yaml.org,2002:{kind}"}:
            raise _refused(event, f"the tag {event.tag!r} is not allowed", "remove the tag")
        if len(self._open) >= MAX_DEPTH:
            raise _refused(event, f"nested deeper than {MAX_DEPTH} levels", "flatten the document")
        # An anchor given again hides the earlier one, also while it is being read.
        self._anchors.pop(event.anchor or "", None)
        # What they grow by until the end is the size of this value, aliases included.
        self._sizes.append((self._nodes, self._characters))
        self._open.append(_Open(empty(), event.anchor, _line(event)))

    def _end(self, event: yaml.Event) -> None:
        done = self._open.pop()
        nodes, characters = self._sizes.pop()
        if isinstance(done.value, dict):
            # What the mapping says itself wins over what is merged, earlier over later.
            for key, item in chain.from_iterable(map(dict.items, done.merged)):
                # Only at the end, so that keys below the `<<` win as well as those above it.
                done.value.setdefault(key, item)
        if done.anchor is not None:
            size = (self._nodes - nodes + 1, self._characters - characters)
            self._anchors[done.anchor] = _Anchored(done.value, *size)
        self._put(done.value, event)

    def _put(self, value: Any, event: yaml.Event) -> None:
        if not self._open:
            self.document = value
            return
        parent = self._open[-1]
        if isinstance(parent.value, list):
            parent.value.append(value)
        elif not parent.has_key:
            parent.key, parent.has_key = _key(value, parent.value, event), True
        else:
            parent.has_key = False
            self._set(parent, value, event)

    def _set(self, parent: _Open, value: Any, event: yaml.Event) -> None:
        if parent.key is not _MERGE:
            parent.value[parent.key] = value
            return
        merged = value if isinstance(value, list) else [value]
        if not all(isinstance(each, dict) for each in merged):
            raise _refused(event, "<< merges mappings only", "give an alias of a mapping")
        parent.merged.extend(merged)

    def _expects_key(self) -> bool:
        return (
            bool(self._open)
            and isinstance(self._open[-1].value, dict)
            and not self._open[-1].has_key
        )

    def _count(self, event: yaml.Event, nodes: int, characters: int) -> None:
        self._nodes += nodes
        self._characters += characters
        if self._nodes > MAX_NODES or self._characters > MAX_EXPANDED:
            raise BodyTooLarge(
                f"line {_line(event)}: with its aliases written out the document holds more than "
                f"{MAX_NODES} values or {MAX_EXPANDED} characters",
                allowed=(f"at most {MAX_NODES} values",),
                hint="use fewer aliases",
            )


def _key(value: Any, mapping: dict[Any, Any] | list[Any], event: yaml.Event) -> Any:
    if isinstance(value, dict | list):
        raise _refused(event, "a key must be a text", "put the key into quotes")
    if value is not _MERGE and value in mapping:
        raise _refused(
            event, f"the key {str(value)[:_KEY_SHOWN]!r} is given twice", "keep one of the two"
        )
    return value


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _refused(event: yaml.Event, detail: str, hint: str) -> GatewayError:
    return MalformedBody(f"line {_line(event)}: {detail}", hint=hint)


def _syntax_error(text: str, error: yaml.MarkedYAMLError) -> MalformedBody:
    mark = error.problem_mark or error.context_mark
    problem = error.problem or error.context or "cannot be read"
    if mark is None:
        return MalformedBody(f"not YAML: {problem}", hint="check the text")
    where = f"line {mark.line + 1}, column {mark.column + 1}"
    return _error_at(where, problem, "".join(text.splitlines()[mark.line : mark.line + 1]))


def _error_at(where: str, problem: str, line: str) -> MalformedBody:
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return MalformedBody(
            f"{where}: a tab indents this line",
            value=line[:_KEY_SHOWN],
            hint="YAML is indented by spaces: replace the tab",
        )
    return MalformedBody(
        f"{where}: {problem}",
        value=line[:_KEY_SHOWN],
        hint="check the indentation, the colons and the quotes of this line and the one above",
    )
