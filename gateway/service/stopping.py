"""Ends attempts: stops what runs, waits until it is gone, frees the devices, tidies up later."""

from gateway.backends.base import ForeignObject, ObjectRef
from gateway.core.vocabulary import AttemptPhase
from gateway.db import attempts as attempt_rows
from gateway.db import jobs as job_rows
from gateway.db.engine import Row, Writer
from gateway.db.leases import require_epoch
from gateway.errors import ClusterRejected, ClusterUnreachable, NotFound
from gateway.service.changes import settle
from gateway.service.context import SYSTEM_ACTOR, Gateway
from gateway.service.crash_points import reach
from gateway.service.launches import launch_of, ref_of
from gateway.service.launching import Work

SERVER_TIMEOUT_SECONDS = 60
"""How long an API server may still act on a request whose answer was lost (its default)."""
MOST_DELETIONS = 100


def finish_stop(gateway: Gateway, work: Work) -> bool:
    """Bring one stopping attempt nearer to its end; True once its devices are free."""
    try:
        if work.attempt["phase"] == AttemptPhase.INTENDED:
            ref = _late_object(gateway, work)
        else:
            ref = ref_of(work.job, work.attempt)
        if ref is not None and not _is_gone(gateway, work, ref):
            return False
        if ref is None and _may_still_appear(gateway, work):
            return False
        tails = _log_tails(gateway, work) if ref is not None else {}
    except ClusterUnreachable:
        return False
    _settle(gateway, work, tails)
    return True


def _late_object(gateway: Gateway, work: Work) -> ObjectRef | None:
    """Look for an object whose create was sent but never recorded, and record it."""
    try:
        ref = gateway.backend.find(work.launch)
    except ForeignObject:
        return None
    if ref is not None:

        def store(writer: Writer) -> None:
            require_epoch(writer, gateway.leadership.epoch or -1)
            attempt_rows.change_attempt(writer, work.attempt, {"object_uid": ref.uid})

        gateway.database.run_write(store)
    return ref


def _may_still_appear(gateway: Gateway, work: Work) -> bool:
    """Whether a create that was sent could still take effect, so "not found" frees nothing."""
    sent = work.attempt["sent_us"]
    if work.attempt["phase"] != AttemptPhase.INTENDED or sent is None:
        return False
    if work.job["end_reason"] in {"RejectedByCluster", "ForeignObject"}:
        return False  # the server answered: it did not take it
    fence = gateway.settings.cluster_call_seconds + SERVER_TIMEOUT_SECONDS
    return bool(gateway.clock.now_us() < sent + int(fence * 1_000_000))


def _is_gone(gateway: Gateway, work: Work, ref: ObjectRef) -> bool:
    gateway.backend.stop(work.launch, ref)
    reach("after_stop")
    return gateway.backend.observe(work.launch, ref).are_pods_gone


def _log_tails(gateway: Gateway, work: Work) -> dict[int, str]:
    """Read the last lines of each rank while they can still be had."""
    tails: dict[int, str] = {}
    wanted = gateway.settings.log_tail_lines
    for pod in work.launch.pods if wanted else ():
        try:
            lines = gateway.backend.logs(work.launch, pod.rank, follow=False, tail=wanted)
            tails[pod.rank] = "\n".join(lines)
        except (ClusterRejected, ClusterUnreachable, NotFound):
            continue  # logs are a courtesy and never keep devices
    return tails


def _settle(gateway: Gateway, work: Work, tails: dict[int, str]) -> None:
    reach("before_free")

    def store(writer: Writer) -> None:
        require_epoch(writer, gateway.leadership.epoch or -1)
        for rank, lines in tails.items():
            if lines:
                attempt_rows.store_log_tail(writer, work.attempt["id"], rank, lines)
        settle(writer, work.job, work.attempt, gateway.clock.now_us(), SYSTEM_ACTOR)

    gateway.database.run_write(store)
    reach("after_free")


def delete_finished(gateway: Gateway) -> int:
    """Remove objects of closed attempts once they were kept long enough; gives how many."""
    keep_us = gateway.settings.keep_finished_seconds * 1_000_000
    before_us = gateway.clock.now_us() - keep_us
    with gateway.database.read() as connection:
        found = attempt_rows.undeleted_objects(connection, before_us, MOST_DELETIONS)
    return sum(_delete_object(gateway, attempt) for attempt in found)


def _delete_object(gateway: Gateway, attempt: Row) -> bool:
    if not gateway.leadership.outlives(gateway.settings.cluster_call_seconds):
        return False
    with gateway.database.read() as connection:
        job = job_rows.get_job_by_row(connection, attempt["job_id"])
        if job is None:
            return False
        launch = launch_of(connection, job, attempt)
    try:
        # By name, because an object may have appeared after its attempt was closed.
        ref = gateway.backend.find(launch)
        if ref is not None:
            gateway.backend.delete(ref)
    except ClusterUnreachable:
        return False
    except ForeignObject:
        pass  # somebody else's: leave it alone and forget ours
    gateway.database.run_write(
        lambda writer: attempt_rows.mark_object_deleted(writer, attempt["id"])
    )
    return True
