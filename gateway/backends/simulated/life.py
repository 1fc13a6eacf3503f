"""The course of a gang over time: pure functions of stored times, the script and `now`.

`settle` brings an object up to `now`, in the order in which things happened, so that it does not
matter how often or how late somebody looks.
"""

from collections.abc import Iterable, Iterator

from gateway.backends.base import ObjectOutcome, ReplicaPhase, ReplicaSeen
from gateway.backends.simulated.objects import VirtualObject, VirtualReplica
from gateway.backends.simulated.script import Outcome, Script

FAILURE_CODE = 1


def settle(found: VirtualObject, now: float) -> bool:
    """Let everything happen that the script says happens until `now`; True when anything did."""
    if found.outcome:
        return False
    changed = False
    # At each end's own time, not at `now`: a late look must not let a survivor's own end count
    # that came after the gang was decided.
    for replica, at in _script_ends(found, now):
        _end_by_script(found, replica, at)
        changed = True
        # The rest is terminated at this instant, so their scripts run no further.
        if decide(found, at):
            break
    return changed


def decide(found: VirtualObject, now: float) -> bool:
    """Conclude the object's outcome from its ended replicas and clean up the rest.

    As the training-operator does: one failure fails it, the Master's success (all workers' success
    without a Master) makes it succeed, and what still runs then is terminated.
    """
    if found.outcome:
        return True
    # Failure first, as the operator reads it: a Master that succeeded at the same instant as a
    # worker failed does not save the gang.
    if _has_failed(found):
        found.outcome = ObjectOutcome.FAILED
    elif _leaders_succeeded(found.replicas):
        found.outcome = ObjectOutcome.SUCCEEDED
    else:
        return False
    terminate(found, now)
    return True


def _has_failed(found: VirtualObject) -> bool:
    return found.is_lost or any(replica.exit_code for replica in found.replicas)


def terminate(found: VirtualObject, now: float) -> None:
    """Ask every replica that has not ended to go."""
    for replica in found.replicas:
        if _is_alive(replica, now) and replica.terminating_at is None:
            replica.terminating_at = now


def appear(found: VirtualObject, now: float) -> None:
    """Plan when the pods of a just unsuspended object appear."""
    for replica in found.replicas:
        # The operator creates pods one after another, so a large gang is incomplete for a while.
        replica.appears_at = now + replica.rank * found.script.appear_seconds


def _phase_of_leaving(terminating_at: float, script: Script, now: float) -> ReplicaPhase:
    is_gone = now >= terminating_at + script.delete_seconds
    return ReplicaPhase.ABSENT if is_gone else ReplicaPhase.TERMINATING


def phase_of(replica: VirtualReplica, script: Script, now: float) -> ReplicaPhase:
    """Give a settled replica's phase at an instant."""
    if replica.ended_at is not None:
        return ReplicaPhase.FAILED if replica.exit_code else ReplicaPhase.SUCCEEDED
    # Order matters: an end outlasts a later termination, and a vanished pod has no phase at all.
    if replica.is_vanished or replica.appears_at is None:
        return ReplicaPhase.ABSENT
    if replica.terminating_at is not None:
        return _phase_of_leaving(replica.terminating_at, script, now)
    if replica.opened_at is None:
        return ReplicaPhase.GATED if now >= replica.appears_at else ReplicaPhase.ABSENT
    return _phase_of_opened(replica.opened_at, script, now)


def _phase_of_opened(opened_at: float, script: Script, now: float) -> ReplicaPhase:
    has_started = now >= opened_at + script.start_seconds
    is_stuck = script.outcome is Outcome.NEVER_STARTS
    return ReplicaPhase.READY if has_started and not is_stuck else ReplicaPhase.PENDING


def seen(found: VirtualObject, now: float) -> tuple[ReplicaSeen, ...]:
    """Give the replicas as an observer sees them."""
    return tuple(
        ReplicaSeen(
            pod_set=replica.pod_set,
            index=replica.index,
            phase=phase_of(replica, found.script, now),
            uid=f"{found.uid}-{replica.rank}-{replica.generation}",
            node=replica.node,
            exit_code=replica.exit_code,
            message=replica.message,
        )
        for replica in found.replicas
    )


def lingers(found: VirtualObject, now: float) -> bool:
    """Whether any of its pods may still hold its devices."""
    return any(
        phase_of(replica, found.script, now) is ReplicaPhase.TERMINATING
        for replica in found.replicas
    )


def _script_ends(found: VirtualObject, now: float) -> Iterable[tuple[VirtualReplica, float]]:
    """Give the replicas whose script has run out, earliest first; at one instant rank by rank.

    At one instant workers come before the Master, and the one that fails first of all: a gang that
    ends together ends with every replica's own result.
    """
    script = found.script
    if script.outcome is Outcome.NEVER_STARTS:
        return ()
    # Of each replica's own opening: a re-created one begins its whole course again.
    course = script.start_seconds + script.run_seconds
    ends = ((each, opened_at + course) for each, opened_at in _going(found))
    return sorted(
        (end for end in ends if end[1] <= now),
        key=lambda end: (end[1], not _fails(script, end[0]), -end[0].rank),
    )


def _going(found: VirtualObject) -> Iterator[tuple[VirtualReplica, float]]:
    """Give the opened replicas that nothing has ended yet, with when they were opened."""
    for replica in found.replicas:
        is_ending = replica.ended_at is not None or replica.terminating_at is not None
        if replica.opened_at is not None and not is_ending:
            yield replica, replica.opened_at


def _fails(script: Script, replica: VirtualReplica) -> bool:
    return script.outcome is Outcome.FAILED and replica.rank == script.fail_index


def _end_by_script(found: VirtualObject, replica: VirtualReplica, at: float) -> None:
    script = found.script
    if script.outcome is Outcome.LOST:
        lose(found, found.replicas, "its pods vanished")
        return
    end(replica, FAILURE_CODE if _fails(script, replica) else 0, at)


def end(replica: VirtualReplica, exit_code: int, at: float) -> None:
    """Let a replica exit."""
    replica.ended_at = at
    replica.exit_code = exit_code
    replica.message = f"exited with code {exit_code}" if exit_code else ""


def lose(found: VirtualObject, replicas: Iterable[VirtualReplica], message: str) -> None:
    """Let replicas vanish without a result."""
    for replica in replicas:
        # What ended has its result; a node that is lost afterwards cannot take it back.
        if replica.ended_at is None:
            replica.is_vanished = True
            replica.message = message
    found.is_lost = True
    found.message = message


def _is_alive(replica: VirtualReplica, now: float) -> bool:
    has_appeared = replica.appears_at is not None and replica.appears_at <= now
    if not has_appeared:
        replica.appears_at = None  # nothing of it may appear any more
    return has_appeared and replica.ended_at is None and not replica.is_vanished


def _leaders_succeeded(replicas: list[VirtualReplica]) -> bool:
    # all() needs somebody: a gang has a Master or at least one worker.
    leaders = [replica for replica in replicas if replica.pod_set == "Master"] or replicas
    return all(replica.ended_at is not None for replica in leaders)
