"""Ends attempts: stops what runs, waits until it is gone, frees the devices, tidies up later."""

import structlog

from gateway.backends.base import ForeignObject, ObjectOutcome, ObjectRef
from gateway.core.vocabulary import EndReason
from gateway.db import attempts as attempt_rows
from gateway.db import jobs as job_rows
from gateway.db.engine import Row, Writer
from gateway.errors import ClusterRejected, ClusterUnreachable, GatewayError
from gateway.service.changes import settle
from gateway.service.context import SYSTEM_ACTOR, Gateway
from gateway.service.crash_points import reach
from gateway.service.launches import Work, load, ref_of
from gateway.service.launching import guard, may_call
from gateway.service.quarantine import POISON
from gateway.service.user_usage import settle_usage

log = structlog.get_logger()
SERVER_TIMEOUT_SECONDS = 60
"""How long an API server may still act on a request whose answer was lost (its default)."""
CLEAN_UP_SECONDS = 30
"""How long the pods of a gang that ended by itself may take to go before they are told to."""
MOST_DELETIONS = 100
MOST_TAILS = 64
"""Ranks whose last lines are kept."""
REFUSALS = frozenset({EndReason.REJECTED_BY_CLUSTER.value, EndReason.FOREIGN_OBJECT.value})


def finish_stop(gateway: Gateway, work: Work) -> bool:
    """Bring one stopping attempt nearer to its end; True once its devices are free.

    Raises:
        ClusterUnreachable: nothing is known, so nothing is freed.
    """
    if work.attempt["sent_us"] is None:
        _settle(gateway, work)  # nothing was ever sent to the cluster
        return True
    ref = _object_of(gateway, work)
    if ref is None:
        # Freed now, the devices could be granted again and then be used by a late object.
        if _may_still_appear(gateway, work):
            return False
    else:
        _keep_log_tails(gateway, work)
        if not _is_gone(gateway, work, ref):
            return False
        # Whatever was written while it stopped is often the reason why.
        _keep_log_tails(gateway, work, again=True)
    _settle(gateway, work)
    return True


def _object_of(gateway: Gateway, work: Work) -> ObjectRef | None:
    """Give the attempt's object; one whose create was never answered is looked for by name."""
    if work.attempt["object_uid"]:
        return ref_of(work.job, work.attempt)
    try:
        # Its UID was never stored: the process died between the create and the record.
        ref = gateway.backend.find(work.launch)
    except ForeignObject:
        return None
    except ClusterRejected:
        if work.job["end_reason"] in REFUSALS:
            return None  # it took nothing, and who may not create may often not look either
        raise
    if ref is not None:

        def store(writer: Writer) -> None:
            guard(gateway, writer)
            attempt_rows.change_attempt(writer, work.attempt, {"object_uid": ref.uid})

        gateway.database.run_write(store)
    return ref


def _may_still_appear(gateway: Gateway, work: Work) -> bool:
    """Whether a create that was sent could still take effect, so "not found" frees nothing."""
    if work.job["end_reason"] in REFUSALS:
        return False  # the server answered: it did not take it
    fence = gateway.settings.cluster_call_seconds + SERVER_TIMEOUT_SECONDS
    waited_us: int = gateway.clock.now_us() - work.attempt["sent_us"]
    return waited_us < fence * 1_000_000


def _is_gone(gateway: Gateway, work: Work, ref: ObjectRef) -> bool:
    """Stop what may still run or start; True once nothing of it can use a device."""
    seen = gateway.backend.observe(work.launch, ref)
    has_ended = not seen.exists or seen.outcome is not ObjectOutcome.UNDECIDED
    # An object that is gone says nothing of its pods; they may outlive it by their grace period.
    if has_ended and seen.are_pods_gone:
        return True
    stopping_us: int = gateway.clock.now_us() - work.job["stopping_us"]
    if has_ended and stopping_us < CLEAN_UP_SECONDS * 1_000_000:
        return False  # the cluster cleans up by itself
    if not may_call(gateway):
        return False
    gateway.backend.stop(work.launch, ref)
    reach("after_stop")
    # Looked at again, since deleted pods live until their processes have ended.
    return gateway.backend.observe(work.launch, ref).are_pods_gone


def _keep_log_tails(gateway: Gateway, work: Work, *, again: bool = False) -> None:
    """Keep the last lines of each rank while they can be had: stopping may take the pods away."""
    wanted = gateway.settings.log_tail_lines
    with gateway.database.read() as connection:
        if not wanted or (not again and attempt_rows.has_log_tails(connection, work.attempt["id"])):
            return
    tails = {}
    for pod in work.launch.pods[:MOST_TAILS]:
        try:
            lines = gateway.backend.logs(work.launch, pod.rank, follow=False, tail=wanted)
            tails[pod.rank] = "\n".join(lines)
        except ClusterUnreachable:
            break
        except GatewayError:
            continue  # logs are a courtesy and never keep devices

    def store(writer: Writer) -> None:
        for rank, lines in tails.items():
            if lines:
                attempt_rows.store_log_tail(writer, work.attempt["id"], rank, lines)

    if any(tails.values()):
        gateway.database.run_write(store)


def _settle(gateway: Gateway, work: Work) -> None:
    reach("before_free")

    def store(writer: Writer) -> None:
        guard(gateway, writer)
        at_us, half_life = gateway.clock.now_us(), gateway.settings.usage_half_life_seconds
        settle(writer, work.job, work.attempt, at_us, SYSTEM_ACTOR)
        settle_usage(writer, work.job, work.attempt, at_us, half_life)
        if work.attempt["sent_us"] is None:
            attempt_rows.mark_object_deleted(writer, work.attempt["id"])
        reach("in_free")

    gateway.database.run_write(store)
    reach("after_free")


def delete_finished(gateway: Gateway) -> int:
    """Remove objects of closed attempts once they were kept long enough; gives how many.

    Also those that appeared only after their attempt was closed.
    """
    now_us, deleted = gateway.clock.now_us(), 0
    kept_until_us = now_us - gateway.settings.keep_finished_seconds * 1_000_000
    late_until_us = now_us - SERVER_TIMEOUT_SECONDS * 1_000_000
    with gateway.database.read() as connection:
        found = attempt_rows.undeleted_objects(
            connection, kept_until_us, late_until_us, MOST_DELETIONS
        )
    for attempt in found:
        if not may_call(gateway):
            break
        try:
            _delete_object(gateway, attempt)
        except ClusterUnreachable:
            break
        except ClusterRejected as error:
            log.warning("object_not_deleted", name=attempt["object_name"], detail=error.detail)
            continue
        except POISON:
            pass  # rows that make no sense: forget the object, no device hangs on it
        _mark_deleted(gateway, attempt)
        deleted += 1
    return deleted


def _delete_object(gateway: Gateway, attempt: Row) -> None:
    with gateway.database.read() as connection:
        job = job_rows.get_job_head(connection, attempt["job_id"])
    if job is None:
        return
    launch = load(gateway, job, attempt).launch
    try:
        # By name, because an object may have appeared after its attempt was closed.
        ref = gateway.backend.find(launch)
    except ForeignObject:
        return  # somebody else's: leave it alone and forget ours
    if ref is not None and may_call(gateway):
        gateway.backend.delete(ref)


def _mark_deleted(gateway: Gateway, attempt: Row) -> None:
    gateway.database.run_write(
        lambda writer: attempt_rows.mark_object_deleted(writer, attempt["id"])
    )
