"""The gateway's own fields of a job, as one table: name, type, and whether they are built.

The same fields are written as `training-gateway.io/` annotations, as keys of the short form and as
overrides. A field that is not built accepts only values that ask for nothing.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import MAXYEAR, UTC, datetime
from typing import Any, Final

from gateway.core.vocabulary import LABEL_PREFIX, MOST_DEVICES, Guarantee, PairRule, PartitionRule
from gateway.errors import GatewayError, InvalidInput, NotSupportedYet
from gateway.manifests.json_text import read_json
from gateway.manifests.options import TOPOLOGY_LABELS
from gateway.manifests.plain import plain
from gateway.manifests.spot import Spot, is_number

# The bound that Kubernetes sets for the values of users' PriorityClasses.
MAX_PRIORITY: Final = 1_000_000_000
# Ten years: as microseconds since the epoch it stays far below 64 bits, whatever it is added to.
MAX_SECONDS: Final = 10 * 366 * 24 * 3600
_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NODE_NAME: Final = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
_TEXT_FORMS: Final[tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...]] = (
    # `\Z`, because `$` would take a text that ends in a line break. `yes` and `on` stay texts: an
    # annotation is no YAML, and Kubernetes' own annotations know only true and false.
    (re.compile(r"(true|false)\Z"), json.loads),
    (re.compile(r"[-+]?[0-9]{1,40}\Z"), int),
    (re.compile(r"[-+]?[0-9]{1,18}\.[0-9]{1,18}\Z"), float),
    (re.compile(r"[\[{]"), lambda text: plain(read_json(text))),
)
"""What a text must look like to stand for something else, and how that is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field. `neutral` is None for a field that is built, else the values that ask nothing."""

    name: str
    read: Callable[[Spot], Any]
    neutral: tuple[object, ...] | None = None
    hint: str = ""
    is_text: bool = False
    """A text stays one even where numbers are written as text: a queue may be named 2024."""

    @property
    def annotation(self) -> str:
        """Key of the annotation that carries it."""
        return LABEL_PREFIX + self.name.replace("_", "-")

    def value_in_text(self, spot: Spot) -> Any:
        """Give the value where numbers and booleans may be written as text."""
        return self.value_of(spot if self.is_text else from_text(spot))

    def value_of(self, spot: Spot) -> Any:
        """Give the value in its type.

        Raises InvalidInput for a wrong one, NotSupportedYet for one whose behaviour is not built.
        """
        value = self.read(spot)
        if self.neutral is None or value in self.neutral:
            return value
        raise spot.refuse(
            f"{self.name} is not supported yet",
            allowed=tuple(map(_word, self.neutral)),
            hint=self.hint or "leave it out",
            kind=NotSupportedYet,
        )


def dns_label(spot: Spot) -> str:
    """Give a DNS label: lower case letters, digits and dashes, at most 63."""
    text = spot.text()
    if not _DNS_LABEL.fullmatch(text):
        raise spot.refuse(
            f"{text[:80]!r} is not a DNS label",
            allowed=("lower case letters, digits and dashes, at most 63",),
            hint="use lower case letters, digits and dashes; start and end with none of the last",
        )
    return text


def from_text(spot: Spot) -> Spot:
    """Give the value that a text stands for, as annotations and flags carry numbers and booleans.

    Text that stands for nothing else stays as it is.
    """
    if not isinstance(spot.value, str):
        return spot
    try:
        return Spot(_value_in(spot.value), spot.pointer)
    except ValueError:
        raise spot.refuse("not JSON", hint="write a JSON list or mapping") from None


def _value_in(text: str) -> Any:
    return next((read(text) for form, read in _TEXT_FORMS if form.match(text)), text)


def _word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def to_text(value: object) -> str:
    """Give the text that stands for a value in an annotation."""
    return _word(value)


def _text(spot: Spot) -> Any:
    return str(spot.value) if isinstance(spot.value, int | float) else spot.text()


def _whole(least: int, most: int) -> Callable[[Spot], int]:
    return lambda spot: spot.whole(least, most)


def _choice(*words: str) -> Callable[[Spot], str]:
    return lambda spot: spot.choice(words)


def _number(spot: Spot) -> Any:
    if not is_number(spot.value) or spot.value < 0:
        raise spot.wrong_type("a number from 0")
    return spot.value


def _list(spot: Spot) -> Any:
    if isinstance(spot.value, str):
        return [each.strip() for each in spot.value.split(",") if each.strip()]
    spot.items()
    return spot.value


def _names(spot: Spot) -> list[str]:
    """Read names of nodes, sorted: the order in which they are written says nothing."""
    names = Spot(_list(spot), spot.pointer).texts()
    for name in names:
        spot.demand(bool(_NODE_NAME.fullmatch(name)), f"{name[:80]!r} names no node", "correct it")
    return sorted(set(names))


def _each(read: Callable[[Spot], Any]) -> Callable[[Spot], Any]:
    """Read one value, or several as a list or as text with commas."""

    def read_all(spot: Spot) -> Any:
        if isinstance(spot.value, str) and "," in spot.value:
            spot = Spot([from_text(Spot(each)).value for each in _list(spot)], spot.pointer)
        if not isinstance(spot.value, list):
            return read(spot)
        return [read(each) for each in spot.items()]

    return read_all


def _time(spot: Spot) -> str:
    text = spot.text()
    try:
        # Without a zone it would be another instant on every machine that reads it. Kept as text,
        # so that reading it again gives the same digest.
        at = datetime.fromisoformat(text)
        # In UTC, for near the ends of the calendar only that has a year that no date can hold.
        is_aware = at.tzinfo is not None and at.astimezone(UTC).year < MAXYEAR
    except (ValueError, OverflowError):
        is_aware = False
    if not is_aware:
        raise spot.refuse(
            f"{text[:40]!r} is not a time with a zone",
            hint="write for example 2030-01-31T18:00:00Z",
        )
    return text


def _elsewhere(hint: str) -> Callable[[Spot], Any]:
    def read(spot: Spot) -> Any:
        error: GatewayError = spot.refuse("does not belong here", hint=hint, kind=InvalidInput)
        raise error

    return read


_SECONDS: Final = _whole(1, MAX_SECONDS)
_GATEWAY_RETRIES: Final = "leave it out; the job runs once, and `requeue` runs it again"

FIELDS: Final = {
    each.name: each
    for each in (
        Field(name="queue", read=dns_label, is_text=True),
        Field(name="priority", read=_whole(-MAX_PRIORITY, MAX_PRIORITY)),
        Field(name="hold", read=Spot.flag),
        Field(name="queue_timeout_seconds", read=_SECONDS),
        Field(name="run_timeout_seconds", read=_SECONDS),
        Field(name="start_timeout_seconds", read=_SECONDS),
        Field(name="pair", read=_choice(*PairRule)),
        Field(name="pair_required", read=Spot.flag),
        Field(name="min_available", read=_whole(1, 2**31 - 1)),
        Field(name="priority_class", read=dns_label, is_text=True),
        Field(name="flavors", read=_list, neutral=([],), hint="use a nodeSelector"),
        Field(name="nics_per_gpu", read=_number),
        Field(name="nics", read=_whole(0, MOST_DEVICES)),
        Field(name="all_nics", read=Spot.flag, neutral=(False,), hint="ask for a number of nics"),
        Field(name="partition", read=_choice(*PartitionRule)),
        Field(name="guarantee", read=_choice(*Guarantee), neutral=(Guarantee.ADVISORY.value,)),
        Field(name="accept_advisory", read=Spot.flag, neutral=(True, False)),
        Field(name="topology_level", read=_choice(*TOPOLOGY_LABELS)),
        Field(name="topology_mode", read=_choice("required", "preferred")),
        Field(name="topology_slice_level", read=_each(_choice(*TOPOLOGY_LABELS))),
        Field(name="topology_slice_size", read=_each(_whole(1, 2**31 - 1))),
        Field(name="topology_avoid_nodes", read=_names),
        Field(name="topology_avoid_mode", read=_choice("required", "preferred")),
        Field(name="not_before_at", read=_time),
        Field(name="retries_limit", read=_whole(0, 1000), neutral=(0,), hint=_GATEWAY_RETRIES),
        Field(name="retries_interval_seconds", read=_number, neutral=(30,), hint=_GATEWAY_RETRIES),
        Field(name="retries_backoff", read=_number, neutral=(2,), hint=_GATEWAY_RETRIES),
        Field(
            name="retries_max_interval_seconds",
            read=_number,
            neutral=(3600,),
            hint=_GATEWAY_RETRIES,
        ),
        Field(name="retries_on", read=_list, neutral=([],), hint=_GATEWAY_RETRIES),
        Field(name="deadline_at", read=_time),
        Field(name="expected_seconds", read=_SECONDS),
        Field(
            name="depends_on",
            read=_list,
            neutral=([],),
            hint="wait for the other job, or submit with hold and release it then",
        ),
        Field(
            name="array_indices",
            read=_text,
            is_text=True,
            neutral=(),
            hint="submit the jobs one by one",
        ),
        Field(name="array_max_parallel", read=_whole(1, 2**31 - 1), neutral=()),
        Field(name="preemptible", read=Spot.flag, neutral=(True,)),
        Field(name="min_runtime_seconds", read=_whole(0, MAX_SECONDS), neutral=(0,)),
        Field(name="checkpoint_grace_seconds", read=_whole(0, MAX_SECONDS), neutral=(30,)),
        Field(name="on_orphan", read=_choice("keep", "cancel"), neutral=("keep",)),
        Field(
            name="idempotency_key",
            read=_elsewhere("send it beside the job: header Idempotency-Key, or the argument"),
        ),
    )
}
GROUPS: Final = {
    "devices": {
        "pair": "pair",
        "required": "pair_required",
        "nics_per_gpu": "nics_per_gpu",
        "nics": "nics",
        "all_nics": "all_nics",
        "partition": "partition",
        "guarantee": "guarantee",
        "accept_advisory": "accept_advisory",
    },
    "topology": {
        each: f"topology_{each}"
        for each in ("level", "mode", "slice_level", "slice_size", "avoid_nodes", "avoid_mode")
    },
    "retries": {
        each: f"retries_{each}"
        for each in ("limit", "interval_seconds", "backoff", "max_interval_seconds", "on")
    },
    "array": {each: f"array_{each}" for each in ("indices", "max_parallel")},
}
"""Nested forms of the fields in the short form and in overrides: group, key, field."""
ALIASES: Final = {
    f"{group}_{key}": name for group, keys in GROUPS.items() for key, name in keys.items()
}
"""Other flat names of a field, such as devices_pair for pair."""
