"""One gang's course: gates, start, restarts, outcome, clean-up, in steps with the time passed in.

As the training-operator does: one failed replica fails the gang unless its restart policy
re-creates it, the Master's success (every worker's without a Master) is the gang's, and what still
runs then is ended. Talks to programs through `RunningProgram` and to the gateway through the
attempt's folder only.
"""

import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from gateway.backends.base import ObjectOutcome, ReplicaPhase
from gateway.backends.local.folder import AttemptFolder
from gateway.backends.local.liveness import Running
from gateway.backends.local.program import expand
from gateway.backends.local.records import (
    ORPHANED,
    STOPPED,
    GangStatus,
    LaunchRecord,
    ReplicaRecord,
    ReplicaStatus,
)
from gateway.backends.local.rendezvous import MASTER, rendezvous_environment
from gateway.backends.local.running import RunningReplica

TERM_SECONDS: Final = 5.0
"""From SIGTERM to SIGKILL."""
FAREWELL_SECONDS: Final = 2.0
"""How long workers may go on after the Master's success before they are ended."""
# The shell's convention: 128 + n for an end by signal n, 126 for what cannot be executed. The
# operator's ExitCode policy draws its line between retryable and not at 128, too.
FIRST_SIGNAL_CODE: Final = 128
NOT_STARTED_CODE: Final = 126


class RunningProgram(Protocol):
    """A program that was started, as far as a gang deals with it."""

    running: Running | None

    def exit_code(self) -> int | None:
        """Give the exit code once it has ended."""

    def signal(self, number: int) -> None:
        """Send a signal to everything of it."""


StartProgram = Callable[[list[str], dict[str, str], str, Path], RunningProgram]
"""Command, environment, working folder and log of a program that is to run."""


@dataclass(slots=True)
class Ending:
    """When what still runs is told to go."""

    term_at: float
    is_told: bool = False

    def due_signal(self, now: float) -> signal.Signals | None:
        """Give the signal to send now: SIGTERM once, after a while SIGKILL again and again."""
        if now >= self.term_at + TERM_SECONDS:
            return signal.SIGKILL
        return None if self.is_told else signal.SIGTERM


class Gang:
    """The replicas of one attempt, run by the supervisor that made this object."""

    def __init__(
        self,
        folder: AttemptFolder,
        record: LaunchRecord,
        port: int,
        start: StartProgram = RunningReplica,
    ) -> None:
        """Start with every replica gated; `start` runs a program, or raises OSError."""
        self._folder = folder
        self._start_program = start
        self._record = record
        self._port = port
        self._programs: dict[int, RunningProgram] = {}
        self._ending: Ending | None = None
        self._was_started = False
        self.status = GangStatus(
            replicas=[
                ReplicaStatus(
                    pod_set=replica.pod_set,
                    index=replica.index,
                    rank=replica.rank,
                    node=replica.node,
                )
                for replica in record.replicas
            ]
        )

    def step(self, now: float) -> None:
        """Do what is due; `now` in seconds of a monotonic clock."""
        # First, so that a replica that ended by itself keeps its code although a stop came too.
        self._reap(now)
        if self._ending is None:
            self._start_open()
        else:
            self._go_on_ending(self._ending, now)

    def end(self, outcome: str, message: str, now: float, *, grace_seconds: float = 0.0) -> None:
        """Settle the outcome, once, and begin to end what runs."""
        if self._ending is not None:
            return
        self.status.outcome = outcome
        self.status.message = message
        self._ending = Ending(term_at=now + grace_seconds)
        for replica in self.status.replicas:
            # What never ran leaves nothing behind; what ended keeps its phase and code for people.
            if replica.rank not in self._programs and replica.exit_code is None:
                replica.phase = ReplicaPhase.ABSENT

    def stop(self, now: float) -> None:
        """End it because the gateway said so."""
        self.end(STOPPED, "stopped", now)
        if self._ending is not None:
            # A stop during the farewell after a success cuts it short; the outcome stays.
            self._ending.term_at = min(self._ending.term_at, now)

    def orphan(self, now: float) -> None:
        """End it because no gateway is there any more."""
        words = f"no gateway was there for {self._record.orphan_seconds:g} s"
        self.end(ORPHANED, words, now)

    def is_over(self) -> bool:
        """Whether an outcome stands and nothing runs."""
        return self._ending is not None and not self._programs

    def _start_open(self) -> None:
        """Start the whole gang when all of it is open, later each re-created replica alone."""
        plans = self._open_plans()
        # A rank that starts alone would wait for its peers until its rendezvous times out.
        if not self._was_started and len(plans) < len(self.status.replicas):
            return
        self._was_started = True
        for rank, plan in plans.items():
            self._start(rank, plan)

    def _open_plans(self) -> dict[int, dict[str, str]]:
        """Give the plans of gated replicas whose gates are open, by rank."""
        gated = [each for each in self.status.replicas if each.phase is ReplicaPhase.GATED]
        plans = {each.rank: self._folder.plan(each.rank, each.generation) for each in gated}
        return {rank: plan for rank, plan in plans.items() if plan is not None}

    def _start(self, rank: int, plan: dict[str, str]) -> None:
        replica, record = self.status.replicas[rank], self._record.replicas[rank]
        rendezvous = rendezvous_environment(self._record.rendezvous, rank, self._port)
        command, environment = expand(record.program, rendezvous, sys.executable)
        try:
            program = self._start_program(
                command, environment | plan, record.program.folder, self._folder.log(rank)
            )
        except OSError as error:
            replica.phase, replica.message = ReplicaPhase.FAILED, f"cannot start: {error}"
            replica.exit_code = NOT_STARTED_CODE
            return
        self._programs[rank] = program
        replica.phase, replica.running = ReplicaPhase.READY, program.running

    def _reap(self, now: float) -> None:
        for rank, program in list(self._programs.items()):
            code = program.exit_code()
            if code is not None:
                del self._programs[rank]
                self._settle(self.status.replicas[rank], self._record.replicas[rank], code)
        if self._ending is None:
            self._judge(now)

    def _settle(self, replica: ReplicaStatus, record: ReplicaRecord, code: int) -> None:
        """Note how a replica ended, and gate its successor where its policy asks for one."""
        replica.exit_code = code
        replica.running = None
        if replica.phase is ReplicaPhase.TERMINATING:
            # A pod that is told to go leaves nothing behind, whatever its code.
            replica.phase = ReplicaPhase.ABSENT
            return
        if code == 0:
            replica.phase = ReplicaPhase.SUCCEEDED
            return
        replica.phase, replica.message = ReplicaPhase.FAILED, f"exited with code {code}"
        # A whole new generation with a gate of its own, as a re-created pod comes gated again.
        if self._may_restart() and _restarts(record.program.restart_policy, code):
            self.status.recreations += 1
            replica.generation += 1
            replica.exit_code = None
            replica.phase = ReplicaPhase.GATED

    def _may_restart(self) -> bool:
        return self._ending is None and self.status.recreations < self._record.most_restarts

    def _judge(self, now: float) -> None:
        failed = [r for r in self.status.replicas if r.phase is ReplicaPhase.FAILED]
        if failed:
            words = f"{failed[0].pod_set} {failed[0].index} {failed[0].message}"
            self.end(ObjectOutcome.FAILED, words, now)
        elif self._has_succeeded():
            self.end(ObjectOutcome.SUCCEEDED, "", now, grace_seconds=FAREWELL_SECONDS)

    def _has_succeeded(self) -> bool:
        """By the Master alone, else by all workers, of an elastic gang by any."""
        leaders = [replica for replica in self.status.replicas if replica.pod_set == MASTER]
        # The operator's rule: with an elasticPolicy any single worker's success is the job's.
        if leaders or self._record.rendezvous.elastic is None:
            return all(map(_succeeded, leaders or self.status.replicas))
        return any(map(_succeeded, self.status.replicas))

    def _go_on_ending(self, ending: Ending, now: float) -> None:
        if now < ending.term_at:
            return
        due = ending.due_signal(now)
        for rank, program in self._programs.items():
            if due is not None:
                program.signal(due)
            self.status.replicas[rank].phase = ReplicaPhase.TERMINATING
        ending.is_told = True


def _succeeded(replica: ReplicaStatus) -> bool:
    return replica.phase is ReplicaPhase.SUCCEEDED


def _restarts(policy: str, code: int) -> bool:
    """Whether a failed replica is re-created; a policy nobody wrote counts as Never."""
    if policy == "ExitCode":
        return code >= FIRST_SIGNAL_CODE
    return policy in {"OnFailure", "Always"}
