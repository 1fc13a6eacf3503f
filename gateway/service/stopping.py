"""Ends attempts: stops what runs, waits until it is gone, frees the devices, tidies up later."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import structlog

from gateway.backends.base import ForeignObject, ObjectOutcome, ObjectRef
from gateway.core.vocabulary import EndReason
from gateway.db import attempts as attempt_rows
from gateway.db import jobs as job_rows
from gateway.db.engine import Row, Writer
from gateway.errors import ClusterRejected, ClusterUnreachable, GatewayError
from gateway.service.calls import may_call
from gateway.service.changes import settle_all
from gateway.service.context import SYSTEM_ACTOR, Gateway
from gateway.service.crash_points import reach
from gateway.service.launches import Work, load, ref_of
from gateway.service.launching import INTENT_SECONDS
from gateway.service.moves import guard, store_or_blame
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


class Leaving(NamedTuple):
    """An attempt of which nothing can use a device any more, with its last lines."""

    work: Work
    tails: Mapping[int, str]
    """By rank."""


def leaving(gateway: Gateway, work: Work) -> Leaving | None:
    """Bring one stopping attempt nearer to its end; gives it once its devices may be freed.

    Raises:
        ClusterUnreachable: nothing is known, so nothing is freed.
    """
    if work.attempt["sent_us"] is None:
        return Leaving(work, {})  # nothing was ever sent to the cluster
    ref = _object_of(gateway, work)
    if ref is None:
        # Freed now, the devices could be granted again and then be used by a late object.
        return None if _may_still_appear(gateway, work) else Leaving(work, {})
    if not _is_gone(gateway, work, ref):
        return None
    # Whatever was written while it stopped is often the reason why.
    return Leaving(work, _log_tails(gateway, work))


def _is_gone(gateway: Gateway, work: Work, ref: ObjectRef) -> bool:
    """Whether nothing of it can use a device any more; stops it where need be."""
    seen = gateway.backend.observe(work.launch, ref)
    has_ended = not seen.exists or seen.outcome is not ObjectOutcome.UNDECIDED
    # An object that is gone says nothing of its pods; they may outlive it by their grace period.
    if has_ended and seen.are_pods_gone:
        return True
    _keep_first_tails(gateway, work)
    return _is_stopped(gateway, work, ref, has_ended=has_ended)


def settle_stops(gateway: Gateway, leavings: Sequence[Leaving]) -> set[int]:
    """Free the devices of many at once and let their outcomes take effect; gives the attempts."""

    def store(some: Sequence[Leaving]) -> list[int]:
        reach("before_free")
        gateway.database.run_write(partial(_settle, gateway, some))
        reach("after_free")
        return [each.work.attempt_id for each in some]

    return set(store_or_blame(gateway, store, [(each.work, each) for each in leavings]))


def _settle(gateway: Gateway, leavings: Sequence[Leaving], writer: Writer) -> None:
    guard(gateway, writer)
    at_us, half_life = gateway.clock.now_us(), gateway.settings.usage_half_life_seconds
    pairs = [(each.work.job, each.work.attempt) for each in leavings]
    settle_all(writer, pairs, at_us, SYSTEM_ACTOR)
    settle_usage(writer, pairs, at_us, half_life)
    for _, attempt in pairs:
        if attempt["sent_us"] is None:
            attempt_rows.mark_object_deleted(writer, attempt["id"])
    _store_tails(writer, leavings)
    reach("in_free")


def _store_tails(writer: Writer, leavings: Iterable[Leaving]) -> None:
    tails = [
        (each.work.attempt["id"], rank, lines)
        for each in leavings
        for rank, lines in each.tails.items()
        if lines
    ]
    attempt_rows.store_log_tails(writer, tails)


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
    # The create may have gone out a little later than its intent was stored.
    fence = INTENT_SECONDS + gateway.settings.cluster_call_seconds + SERVER_TIMEOUT_SECONDS
    waited_us: int = gateway.clock.now_us() - work.attempt["sent_us"]
    return waited_us < fence * 1_000_000


def _is_stopped(gateway: Gateway, work: Work, ref: ObjectRef, *, has_ended: bool) -> bool:
    """Stop what may still run or start; True once nothing of it can use a device."""
    stopping_us: int = gateway.clock.now_us() - work.job["stopping_us"]
    if has_ended and stopping_us < CLEAN_UP_SECONDS * 1_000_000:
        return False  # the cluster cleans up by itself
    if not may_call(gateway):
        return False
    gateway.backend.stop(work.launch, ref)
    reach("after_stop")
    # Looked at again, since deleted pods live until their processes have ended.
    return gateway.backend.observe(work.launch, ref).are_pods_gone


def _keep_first_tails(gateway: Gateway, work: Work) -> None:
    """Keep the last lines of each rank while they can be had: stopping may take the pods away."""
    with gateway.database.read() as connection:
        if attempt_rows.has_log_tails(connection, work.attempt["id"]):
            return
    leaving = Leaving(work, _log_tails(gateway, work))
    if any(leaving.tails.values()):
        gateway.database.run_write(lambda writer: _store_tails(writer, [leaving]))


def _log_tails(gateway: Gateway, work: Work) -> dict[int, str]:
    """Give the last lines of each rank, as far as they can be had."""
    wanted = gateway.settings.log_tail_lines
    tails: dict[int, str] = {}
    for pod in work.launch.pods[: MOST_TAILS if wanted else 0]:
        try:
            lines = gateway.backend.logs(work.launch, pod.rank, follow=False, tail=wanted)
            tails[pod.rank] = "\n".join(lines)
        except ClusterUnreachable:
            break
        except GatewayError:
            continue  # logs are a courtesy and never keep devices
    return tails


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
