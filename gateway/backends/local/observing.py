"""Turns what stands in an attempt's folder, and what really runs, into an observation.

Reads only, except that replicas which outlived their supervisor are killed when they are met.
"""

import signal
from collections.abc import Iterable, Mapping

from gateway.backends.base import ObjectOutcome, Observation, ReplicaPhase, ReplicaSeen
from gateway.backends.local.folder import AttemptFolder, StateFolder
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
    is_supervised = supervisor is not None and supervisor.is_alive()
    status = folder.status()
    is_suspended = folder.stopped.exists() or not folder.started.exists()
    has_begun = supervisor is not None and (status is not None or not is_supervised)
    if not has_begun:
        return Observation(exists=True, uid=uid, is_suspended=is_suspended)
    status = status or GangStatus()
    if is_supervised or status.is_final:
        return _told(status, uid, is_suspended=is_suspended)
    return _told(_lost(status, is_suspended=is_suspended), uid, is_suspended=is_suspended)


def observe_leaving(state: StateFolder, folder: AttemptFolder, uid: str) -> Observation:
    """Look at what still runs of an object that is gone."""
    supervisor = state.supervisor(uid)
    if supervisor is None or not supervisor.is_alive():
        status = folder.status()
        replicas = _sweep(status.replicas) if status else ()
        return Observation(exists=False, uid=uid, replicas=_seen(uid, replicas))
    status = folder.status()
    # Without the folder nobody can say what runs: one replica stands for all of it.
    replicas = status.replicas if status else [_unknown()]
    return Observation(exists=False, uid=uid, replicas=_seen(uid, replicas))


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


def _lost(status: GangStatus, *, is_suspended: bool) -> GangStatus:
    """Judge a gang whose supervisor vanished: what had been decided counts, the rest is lost."""
    status.replicas = _sweep(status.replicas)
    if status.outcome == ObjectOutcome.UNDECIDED and not is_suspended:
        status.outcome, status.message = UNSUPERVISED, "the gang's supervisor vanished"
    return status


def _sweep(replicas: Iterable[ReplicaStatus]) -> list[ReplicaStatus]:
    """Kill what outlived its supervisor; it counts as terminating until it is gone."""
    swept = []
    for replica in replicas:
        if replica.running is not None and replica.running.is_alive():
            replica.running.signal_group(signal.SIGKILL)
            replica.phase = ReplicaPhase.TERMINATING
        elif replica.phase not in ENDED:
            replica.phase = ReplicaPhase.ABSENT
        swept.append(replica)
    return swept


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
