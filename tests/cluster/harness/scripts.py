"""What a fake kubelet does with a pod: when it starts, how long it runs, how it ends and goes.

Scripts are plain values; `fake_kubelet.py` plays them.
"""

import re
from dataclasses import dataclass, field

from tests.cluster.harness.rest import JsonObject

PREFIX = "training.kubeflow.org"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodScript:
    """The life of every pod it matches; without any script a pod runs until told otherwise."""

    job: str = ".*"
    """Regular expression for the whole job name (the whole pod name where there is no job)."""
    replica_type: str = ""
    """master or worker; empty is any."""
    index: int | None = None
    start_seconds: float = 0.0
    """Between binding and running."""
    stuck: str = ""
    """A waiting reason such as ImagePullBackOff: the pod stays Pending with it for ever."""
    run_seconds: float | None = None
    """How long each start of the containers lasts; None runs until told."""
    exit_codes: tuple[int, ...] = (0,)
    """Exit code of the first start, the second, ...; the last one is repeated."""
    stop_seconds: float = 0.0
    """Between the deletion and the end, at most the pod's grace."""
    terminates: bool = True
    """False: a deleted pod stays Terminating until somebody forces it."""
    lines: tuple[str, ...] = ()
    """What the containers print when they start."""

    def matches(self, pod: JsonObject) -> bool:
        """Say whether this script is about the pod."""
        labels = pod["metadata"].get("labels", {})
        job = labels.get(f"{PREFIX}/job-name", pod["metadata"]["name"])
        if not re.fullmatch(self.job, job):
            return False
        if self.replica_type and labels.get(f"{PREFIX}/replica-type") != self.replica_type:
            return False
        return self.index is None or labels.get(f"{PREFIX}/replica-index") == str(self.index)

    def exit_code(self, restarts: int) -> int:
        """Give the exit code after so many restarts."""
        return self.exit_codes[min(restarts, len(self.exit_codes) - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How one pod was told to end, by name."""

    exit_code: int = 0
    reason: str = ""
    """Set for an end of the whole pod, such as Evicted: nothing restarts in place then."""
    message: str = ""


@dataclass(slots=True)
class ScriptBook:
    """The scripts in force; the one added last is asked first."""

    _scripts: list[PodScript] = field(default_factory=list)

    def add(self, script: PodScript) -> None:
        """Put a script before all others."""
        self._scripts.insert(0, script)

    def clear(self) -> None:
        """Forget all scripts."""
        self._scripts.clear()

    def script_of(self, pod: JsonObject) -> PodScript:
        """Give the first script that matches, else the one that runs until told."""
        for script in tuple(self._scripts):
            if script.matches(pod):
                return script
        return PodScript()
