"""What a simulated job will do, as its manifest's annotations or labels say.

Reads one document and gives one value; what the script means over time is `life`'s concern.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from gateway.errors import ClusterRejected

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
    script = defaults
    for key in ("appear", "start", "run", "delete"):
        text = values.pop(f"{key}-seconds", None)
        if text is not None:
            script = _with_seconds(script, key, text)
    if "outcome" in values:
        script = replace(script, outcome=_outcome(values.pop("outcome")))
    if "fail-index" in values:
        script = replace(script, fail_index=_index(values.pop("fail-index")))
    for unknown in values:
        raise _refused(unknown, values[unknown], "no such script key")
    return script


def _scripted(manifest: Mapping[str, Any]) -> dict[str, str]:
    metadata = manifest.get("metadata") or {}
    merged = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    return {
        key.removeprefix(PREFIX): str(value)
        for key, value in merged.items()
        if key.startswith(PREFIX)
    }


def _with_seconds(script: Script, key: str, text: str) -> Script:
    seconds = _seconds(f"{key}-seconds", text)
    match key:
        case "appear":
            return replace(script, appear_seconds=seconds)
        case "start":
            return replace(script, start_seconds=seconds)
        case "run":
            return replace(script, run_seconds=seconds)
        case _:
            return replace(script, delete_seconds=seconds)


def _seconds(key: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise _refused(key, text, "not a number of seconds") from None
    if not math.isfinite(seconds) or seconds < 0:
        raise _refused(key, text, "not a finite number of seconds from 0")
    return seconds


def _index(text: str) -> int:
    if not text.isdecimal():
        raise _refused("fail-index", text, "not a rank from 0")
    return int(text)


def _outcome(text: str) -> Outcome:
    if text not in set(Outcome):
        raise _refused("outcome", text, f"not one of {', '.join(Outcome)}")
    return Outcome(text)


def _refused(key: str, text: str, problem: str) -> ClusterRejected:
    return ClusterRejected(
        f"{PREFIX}{key} is {text!r}: {problem}",
        pointer="/metadata/annotations/" + (PREFIX + key).replace("/", "~1"),
        value=text,
        hint="correct or remove the annotation",
    )
