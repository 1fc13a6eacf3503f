"""Moves one pod on by one step of its script: starts, restarts, ends or removes it.

It decides by its own records, never by a status it wrote: the lists it is fed may lag behind.
"""

import itertools
import time
from dataclasses import dataclass, field
from enum import StrEnum

from tests.cluster.harness import pod_status
from tests.cluster.harness.environment import UnresolvedVariable, resolve
from tests.cluster.harness.log_book import LogBook
from tests.cluster.harness.rest import JsonObject, Rest
from tests.cluster.harness.scripts import Ending, PodScript, ScriptBook

# A container that fails at once must not restart with every look.
SHORTEST_RESTART_SECONDS = 0.5
ENDED_BY_SIGNAL = 143
PodKey = tuple[str, str]
"""Namespace and name."""
Environment = dict[str, dict[str, str]]
"""Variables by container."""


class Stage(StrEnum):
    """How far a pod came on its node."""

    BOUND = "bound"
    RUNNING = "running"
    FINISHED = "finished"
    GONE = "gone"


@dataclass(slots=True)
class PodRun:
    """The kubelet's own record of one pod."""

    address: str
    stage: Stage = Stage.BOUND
    since: float = field(default_factory=time.monotonic)
    """When the present stage or start began."""
    restarts: int = 0
    waiting: str = ""
    """The waiting reason written last."""
    deleted_since: float | None = None


class PodPlayer:
    """Plays the scripts; used by one thread, told and asked by others."""

    def __init__(self, rest: Rest, book: LogBook, scripts: ScriptBook) -> None:
        self._rest = rest
        self._book = book
        self._scripts = scripts
        self._runs: dict[str, PodRun] = {}
        self._addresses = (f"10.244.{n // 250 % 250}.{n % 250 + 2}" for n in itertools.count())
        self.told: dict[PodKey, Ending] = {}
        self.environments: dict[str, Environment] = {}
        """What each pod's containers got when they started last, by uid."""
        self.uids: dict[PodKey, str] = {}
        """The pod that started last under each name."""

    def play(self, pod: JsonObject) -> None:
        """Move one bound pod on.

        Raises:
            Refused: the API server did not take a write; the next call tries again.
        """
        uid = pod["metadata"]["uid"]
        run = self._runs.setdefault(uid, PodRun(next(self._addresses)))
        script = self._scripts.script_of(pod)
        if "deletionTimestamp" in pod["metadata"]:
            self._remove(pod, run, script)
        elif run.stage is Stage.BOUND:
            self._start_when_due(pod, run, script)
        elif run.stage is Stage.RUNNING:
            self._end_when_due(pod, run, script)

    def forget_all_but(self, uids: set[str]) -> None:
        """Drop the records of pods that do not exist any more."""
        self._runs = {uid: run for uid, run in self._runs.items() if uid in uids}

    def _start_when_due(self, pod: JsonObject, run: PodRun, script: PodScript) -> None:
        if time.monotonic() - run.since < script.start_seconds:
            return
        reason = script.stuck
        try:
            environment = {} if reason else self._resolve(pod)
        except UnresolvedVariable:
            environment, reason = {}, "CreateContainerConfigError"
        if not reason:
            self._start(pod, run, script, environment)
        elif reason != run.waiting:
            self._write(pod, pod_status.waiting(pod, reason))
            run.waiting = reason

    def _start(
        self, pod: JsonObject, run: PodRun, script: PodScript, environment: Environment
    ) -> None:
        metadata = pod["metadata"]
        # Whoever sees the pod running must also find its environment and its log.
        self.environments[metadata["uid"]] = environment
        self.uids[metadata["namespace"], metadata["name"]] = metadata["uid"]
        for container in environment:
            key = (metadata["namespace"], metadata["name"], container)
            self._book.begin(key, is_restart=run.restarts > 0)
            for line in script.lines:
                self._book.write(key, line)
        self._write(pod, pod_status.running(pod, run.restarts, run.address))
        run.stage, run.since = Stage.RUNNING, time.monotonic()

    def _end_when_due(self, pod: JsonObject, run: PodRun, script: PodScript) -> None:
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        ending = self.told.get(key) or scripted_ending(run, script)
        if ending is None:
            return
        if pod_status.restarts_in_place(pod, ending):
            run.restarts += 1
            self._start(pod, run, script, self._resolve(pod))
        else:
            self._finish(pod, run, ending)
        self.told.pop(key, None)

    def _finish(self, pod: JsonObject, run: PodRun, ending: Ending) -> None:
        self._write(pod, pod_status.finished(pod, ending, run.restarts))
        for container in pod["spec"]["containers"]:
            metadata = pod["metadata"]
            self._book.end((metadata["namespace"], metadata["name"], container["name"]))
        run.stage = Stage.FINISHED

    def _remove(self, pod: JsonObject, run: PodRun, script: PodScript) -> None:
        now = time.monotonic()
        run.deleted_since = run.deleted_since or now
        grace = pod["metadata"].get("deletionGracePeriodSeconds", 0)
        is_early = now - run.deleted_since < min(script.stop_seconds, grace)
        if run.stage is Stage.GONE or not script.terminates or is_early:
            return
        if run.stage is Stage.RUNNING:
            # A real kubelet writes the final phase before it lets a deleted pod go.
            self._finish(pod, run, Ending(exit_code=ENDED_BY_SIGNAL))
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": pod["metadata"]["uid"]},
        }
        self._rest.delete(path_of(pod), options)
        run.stage = Stage.GONE

    def _resolve(self, pod: JsonObject) -> Environment:
        namespace = pod["metadata"]["namespace"]

        def fetch(plural: str, name: str) -> JsonObject | None:
            return self._rest.find(f"/api/v1/namespaces/{namespace}/{plural}/{name}")

        return {
            container["name"]: resolve(pod, container, fetch)
            for container in pod["spec"]["containers"]
        }

    def _write(self, pod: JsonObject, body: JsonObject) -> None:
        self._rest.strategic_patch(f"{path_of(pod)}/status", body)


def scripted_ending(run: PodRun, script: PodScript) -> Ending | None:
    """Give how the present start ends by its script; None while it goes on."""
    if script.run_seconds is None:
        return None
    shortest = SHORTEST_RESTART_SECONDS if run.restarts else 0.0
    if time.monotonic() - run.since < max(script.run_seconds, shortest):
        return None
    return Ending(exit_code=script.exit_code(run.restarts))


def path_of(pod: JsonObject) -> str:
    """Give the API path of a pod."""
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
