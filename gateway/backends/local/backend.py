"""The launch back end protocol over attempt folders and supervisor programs.

Keeps nothing in memory that a restart would miss. It never starts a replica itself: it writes what
is wanted, starts the supervisor, and reads what the supervisor wrote.
"""

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from gateway.backends.base import (
    GONE_PHASES,
    ForeignObject,
    Launch,
    NodeSeen,
    ObjectRef,
    Observation,
    ReplicaPhase,
)
from gateway.backends.environment import plan_environment
from gateway.backends.local import keeping
from gateway.backends.local.folder import AttemptFolder, StateFolder
from gateway.backends.local.launching import identity_of, record_of
from gateway.backends.local.logs import follow_lines, last_lines
from gateway.backends.local.observing import observe_attempt, observe_leaving
from gateway.backends.local.records import LaunchRecord, ReplicaStatus
from gateway.backends.local.spawning import Spawner
from gateway.core.vocabulary import BackendName, Guarantee
from gateway.errors import ClusterUnreachable


@contextmanager
def _answering() -> Iterator[None]:
    """Report a disk that is full, or a folder that went away in between, as the protocol does."""
    try:
        yield
    except OSError as error:
        raise ClusterUnreachable(
            f"the state folder cannot be used: {error}", hint="look at the disk and try again"
        ) from error


class LocalBackend:
    """Runs gangs on this machine under the given state folder.

    `fleet` is what inventory shows. A gang ends itself `orphan_seconds` after the last sign of a
    gateway; failed replicas are re-created at most `most_restarts` times where their restart policy
    says so.
    """

    name: ClassVar[BackendName] = BackendName.LOCAL
    calls_at_once: ClassVar[int] = 1
    guarantee: Guarantee = Guarantee.ADVISORY

    def __init__(
        self,
        state_dir: Path,
        fleet: Sequence[NodeSeen],
        orphan_seconds: float = 60,
        *,
        most_restarts: int = 3,
    ) -> None:
        """Adopt whatever lies in the folder."""
        self._state = StateFolder(state_dir)
        self._fleet = tuple(fleet)
        self._orphan_seconds = orphan_seconds
        self._most_restarts = most_restarts
        self._spawner = Spawner()
        keeping.clear_incoming(self._state)
        self.heartbeat()

    @_answering()
    def heartbeat(self) -> None:
        """Show the supervisors that a gateway is there; every other call does so too."""
        self._state.heartbeat.touch(mode=0o600)
        self._spawner.reap()

    @_answering()
    def inventory(self) -> Sequence[NodeSeen]:
        """Give the fleet."""
        self.heartbeat()
        return self._fleet

    @_answering()
    def create(self, launch: Launch) -> ObjectRef:
        """Write the attempt's folder; raises ClusterRejected for what cannot run here."""
        existing = self.find(launch)
        if existing is not None:
            return existing
        record = record_of(
            launch,
            uid=str(uuid.uuid4()),
            heartbeat_file=self._state.heartbeat,
            orphan_seconds=self._orphan_seconds,
            most_restarts=self._most_restarts,
        )
        # One rename decides between two gateways that create at once; no lock can stay behind.
        if keeping.place(self._state, record):
            return _ref(launch, record.uid)
        return self.create(launch)  # somebody was faster: adopt it or find it foreign

    @_answering()
    def find(self, launch: Launch) -> ObjectRef | None:
        """Look for this attempt's folder."""
        self.heartbeat()
        folder = self._folder(launch)
        record = _record(folder, launch)
        if record is not None:
            return _ref(launch, record.uid)
        # Also what cannot be read: a file of another release or of a stranger is never overwritten.
        if folder.path.exists():
            raise ForeignObject(
                f"an object {launch.namespace}/{launch.object_name} exists that is not this "
                "attempt's",
                value=folder.uid(),
                hint=f"remove or rename {folder.path}, then requeue the job",
            )
        return None

    def hold(self, launch: Launch, ref: ObjectRef) -> None:
        """Hold nothing: the guarantee is advisory."""
        self.heartbeat()

    @_answering()
    def unsuspend(self, launch: Launch, ref: ObjectRef) -> None:
        """Start the supervisor; its replicas appear gated. Nothing for a stopped or gone object."""
        self.heartbeat()
        folder = self._own(ref)
        if folder is None or folder.stopped.exists():
            return
        # The mark first: a gateway killed in between is repeated, and open_gates starts anew what
        # never introduced itself. A supervisor without the mark would end at once.
        folder.mark(folder.started)
        if folder.supervisor() is None:
            self._spawner.start(folder)

    @_answering()
    def open_gates(self, launch: Launch, ref: ObjectRef) -> bool:
        """Write each gated replica's plan; the supervisor starts none before all are written."""
        self.heartbeat()
        folder = self._own(ref)
        if folder is None or not folder.started.exists():
            return False
        self._spawner.start_again(folder)
        status = folder.status()
        if status is None:
            return False
        # A gate is a file, so a pass that died half-way goes on. It is the supervisor that waits
        # until all are there.
        gated = [each for each in status.replicas if each.phase is ReplicaPhase.GATED]
        for replica in gated:
            _open(folder, launch, replica)
        return True

    @_answering()
    def observe(self, launch: Launch, ref: ObjectRef) -> Observation:
        """Look at the folder and at what runs."""
        self.heartbeat()
        folder = self._own(ref)
        if folder is not None:
            return observe_attempt(folder, ref.uid)
        return observe_leaving(
            self._state, self._state.kept(ref.namespace, ref.name, ref.uid), ref.uid
        )

    @_answering()
    def stop(self, launch: Launch, ref: ObjectRef) -> None:
        """Tell the supervisor to end its gang; a later unsuspend starts nothing."""
        self.heartbeat()
        folder = self._own(ref)
        if folder is not None:
            folder.mark(folder.stopped)

    @_answering()
    def delete(self, ref: ObjectRef) -> None:
        """Stop it and move its folder to the kept ones, where its logs stay readable."""
        self.heartbeat()
        folder = self._own(ref)
        if folder is not None:
            folder.mark(folder.stopped)
            keeping.keep(self._state, folder, ref)

    @_answering()
    def logs(self, launch: Launch, rank: int, *, follow: bool, tail: int | None) -> Iterator[str]:
        """Give lines of one rank, of a kept attempt too; `follow` waits until it has ended."""
        self.heartbeat()
        folder = self._with_logs(launch)
        if folder is None:
            return iter(())
        if not follow:
            return last_lines(folder.log(rank), tail)
        return follow_lines(folder.log(rank), tail, lambda: _has_ended(folder, rank))

    def is_reachable(self) -> bool:
        """Whether the state folder can be written."""
        # Both bits: to create a file in a folder takes the right to search it too.
        return os.access(self._state.path, os.W_OK | os.X_OK)

    def _folder(self, launch: Launch) -> AttemptFolder:
        return self._state.attempt(launch.namespace, launch.object_name)

    def _own(self, ref: ObjectRef) -> AttemptFolder | None:
        folder = self._state.attempt(ref.namespace, ref.name)
        return folder if folder.uid() == ref.uid else None

    def _with_logs(self, launch: Launch) -> AttemptFolder | None:
        kept = self._state.kept_of(launch.namespace, launch.object_name)
        folders = (self._folder(launch), *kept)
        return next((folder for folder in folders if _record(folder, launch)), None)


def _ref(launch: Launch, uid: str) -> ObjectRef:
    return ObjectRef(namespace=launch.namespace, name=launch.object_name, uid=uid)


def _record(folder: AttemptFolder, launch: Launch) -> LaunchRecord | None:
    """Give what was written of this attempt; None for another's folder or none."""
    record = folder.launch()
    is_own = record is not None and record.identity == identity_of(launch)
    return record if is_own else None


def _open(folder: AttemptFolder, launch: Launch, replica: ReplicaStatus) -> None:
    """Write a gated replica's plan, once."""
    if folder.plan(replica.rank, replica.generation) is None:
        plan = plan_environment(launch, launch.pods[replica.rank])
        folder.write_plan(replica.rank, replica.generation, plan)


def _has_ended(folder: AttemptFolder, rank: int) -> bool:
    """Whether nothing will be written to a rank's log any more."""
    if not folder.path.exists():
        return True
    seen = observe_attempt(folder, "")
    # Nothing was started yet; only a stop says that nothing ever will be.
    if rank >= len(seen.replicas):
        return folder.stopped.exists()
    return seen.replicas[rank].phase in GONE_PHASES
