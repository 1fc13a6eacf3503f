"""Turns what stands in an attempt's folder, and what really runs, into an observation.

Reads only, except that replicas which outlived their supervisor are killed when they are met.
"""

import signal
from collections.abc import Iterable, Mapping

from gateway.backends.base import ObjectOutcome, Observation, ReplicaPhase, ReplicaSeen
from gateway.backends.local.folder import AttemptFolder, StateFolder
from gateway.backends.local.liveness import still_runs
from gateway.backends.local.records import ORPHANED, STOPPED, GangStatus, ReplicaStatus

ENDED = frozenset({ReplicaPhase.SUCCEEDED, ReplicaPhase.FAILED})
UNSUPERVISED = "unsupervised"
LOST_OUTCOMES = frozenset({ORPHANED, UNSUPERVISED})
OUTCOMES: Mapping[str, ObjectOutcome] = {
    **{outcome.value: outcome for outcome in ObjectOutcome},
    **dict.fromkeys(LOST_OUTCOMES, ObjectOutcome.FAILED),
    STOPPED: ObjectOutcome.UNDECIDED,
}
"""What a supervisor's word, or its silence, means to the gateway."""


def observe_attempt(folder: AttemptFolder, uid: str) -> Observation:
    """Look at an attempt that exists."""
    # Before the status: a supervisor that ends in between has written its last word by then.
    supervisor = folder.supervisor()
    is_supervised = still_runs(supervisor)
    status = folder.status()
    is_suspended = _is_suspended(folder)
    # Without a supervisor yet there is nothing to judge: the back end starts it again.
    if supervisor is not None and not is_supervised:
        status = _settled(status or GangStatus(), is_suspended=is_suspended)
    if supervisor is None or status is None:
        return Observation(exists=True, uid=uid, is_suspended=is_suspended)
    return _told(status, uid, is_suspended=is_suspended)


def observe_leaving(state: StateFolder, folder: AttemptFolder, uid: str) -> Observation:
    """Look at what still runs of an object that is gone."""
    is_supervised = still_runs(state.supervisor(uid))
    replicas = _known_replicas(folder)
    if not is_supervised:
        replicas = list(map(_swept, replicas))
    elif not replicas:
        # Without the folder nobody can say what runs: one replica stands for all of it.
        replicas = [_unknown()]
    return Observation(exists=False, uid=uid, replicas=_seen(uid, replicas))


def _is_suspended(folder: AttemptFolder) -> bool:
    return folder.stopped.exists() or not folder.started.exists()


def _known_replicas(folder: AttemptFolder) -> list[ReplicaStatus]:
    status = folder.status()
    return [] if status is None else status.replicas


def _told(status: GangStatus, uid: str, *, is_suspended: bool) -> Observation:
    return Observation(
        exists=True,
        uid=uid,
        is_suspended=is_suspended,
        outcome=OUTCOMES.get(status.outcome, ObjectOutcome.UNDECIDED),
        replicas=_seen(uid, status.replicas),
        recreations=status.recreations,
        is_lost=status.outcome in LOST_OUTCOMES,
        message="" if status.outcome == STOPPED else status.message,
    )


def _settled(status: GangStatus, *, is_suspended: bool) -> GangStatus:
    """Judge a gang whose supervisor is gone: what had been decided counts, the rest is lost."""
    # It saw every replica end before it wrote this, so there is nothing to sweep.
    if status.is_final:
        return status
    status.replicas = list(map(_swept, status.replicas))
    # Nothing is lost of a gang that was told to stop, or never was told to start.
    if status.outcome == ObjectOutcome.UNDECIDED and not is_suspended:
        status.outcome, status.message = UNSUPERVISED, "the gang's supervisor vanished"
    return status


def _swept(replica: ReplicaStatus) -> ReplicaStatus:
    """Kill what outlived its supervisor; it counts as terminating until it is gone."""
    if replica.running is not None and replica.running.is_alive():
        replica.running.signal_group(signal.SIGKILL)
        replica.phase = ReplicaPhase.TERMINATING
    elif replica.phase not in ENDED:
        replica.phase = ReplicaPhase.ABSENT
    return replica


def _seen(uid: str, replicas: Iterable[ReplicaStatus]) -> tuple[ReplicaSeen, ...]:
    return tuple(
        ReplicaSeen(
            pod_set=replica.pod_set,
            index=replica.index,
            phase=replica.phase,
            uid=f"{uid}-{replica.rank}-{replica.generation}",
            node="" if replica.phase is ReplicaPhase.GATED else replica.node,
            exit_code=replica.exit_code,
            message=replica.message,
        )
        for replica in replicas
    )


def _unknown() -> ReplicaStatus:
    return ReplicaStatus(pod_set="Master", index=0, rank=0, node="", phase=ReplicaPhase.TERMINATING)
