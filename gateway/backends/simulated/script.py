"""What a simulated job will do, as its manifest's annotations or labels say.

Reads one document and gives one value; what the script means over time is `life`'s concern.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from gateway.errors import ClusterRejected

# Annotations, so that one manifest runs here as scripted and elsewhere as it is.
PREFIX: Final = "simulated.training-gateway.io/"


class Outcome(StrEnum):
    """How a simulated gang ends."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    NEVER_STARTS = "never-starts"
    """Its opened pods stay pending for ever."""
    LOST = "lost"
    """Its pods vanish without a result."""
    REJECTED = "rejected"
    """The cluster refuses to create the object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The course of one gang; seconds of the back end's clock."""

    outcome: Outcome = Outcome.SUCCEEDED
    appear_seconds: float = 0.0
    """The pod of rank r appears r times this after the object is unsuspended."""
    start_seconds: float = 1.0
    """From an opened gate to ready."""
    run_seconds: float = 10.0
    """From ready to the end."""
    fail_index: int = 0
    """Rank that fails when the outcome is failed."""
    delete_seconds: float = 0.0
    """How long a stopped pod lingers terminating."""


def read_script(manifest: Mapping[str, Any], defaults: Script) -> Script:
    """Give the script of a manifest; annotations win over labels.

    Raises ClusterRejected, as a cluster would at create, for a value that cannot be meant.
    """
    values = _scripted(manifest)
    known = [key for key in _READERS if key in values]
    fields = {key.replace("-", "_"): _READERS[key](key, values.pop(key)) for key in known}
    # A misspelt key would silently give the default course, and a replay that proves nothing.
    for unknown, text in values.items():
        raise _refused(unknown, text, "no such script key")
    return replace(defaults, **fields)


def _scripted(manifest: Mapping[str, Any]) -> dict[str, str]:
    metadata = _mapping(manifest, "metadata")
    merged = {**_mapping(metadata, "labels"), **_mapping(metadata, "annotations")}
    return {
        key.removeprefix(PREFIX): str(value)
        for key, value in merged.items()
        if key.startswith(PREFIX)
    }


def _mapping(holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return holder.get(key) or {}


def _seconds(key: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise _refused(key, text, "not a number of seconds") from None
    # float() reads "nan" and "inf", and no instant compares with either as time should.
    if not math.isfinite(seconds) or seconds < 0:
        raise _refused(key, text, "not a finite number of seconds from 0")
    return seconds


def _index(key: str, text: str) -> int:
    # isdecimal, for int("²") raises although "²".isdigit() holds.
    if not text.isdecimal():
        raise _refused(key, text, "not a rank from 0")
    return int(text)


def _outcome(key: str, text: str) -> Outcome:
    if text not in set(Outcome):
        raise _refused(key, text, f"not one of {', '.join(Outcome)}")
    return Outcome(text)


_READERS: Final[Mapping[str, Callable[[str, str], Any]]] = {
    "appear-seconds": _seconds,
    "start-seconds": _seconds,
    "run-seconds": _seconds,
    "delete-seconds": _seconds,
    "outcome": _outcome,
    "fail-index": _index,
}
"""How the text of each script key is read, in the order in which they are judged."""


def _refused(key: str, text: str, problem: str) -> ClusterRejected:
    return ClusterRejected(
        f"{PREFIX}{key} is {text!r}: {problem}",
        pointer="/metadata/annotations/" + (PREFIX + key).replace("/", "~1"),
        value=text,
        hint="correct or remove the annotation",
    )
