"""Between a state and a snapshot: everything as a value, for what-if questions and for tests."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gateway.core.admission.state import Definitions, State
from gateway.core.admission.types import Held, Policies, Snapshot, Span, Usage, UserUsage
from gateway.core.admission.usage import holdings_of
from gateway.core.jobs.columns import WaitingJobs
from gateway.core.waiting.table import GONE, NewJob


def state_of(snapshot: Snapshot, policies: Policies, now_us: int) -> State:
    """Give the state of a whole snapshot; class ids are the indexes of its classes."""
    state = State(policies)
    # Before the definitions: the tree is then planted once, with its use already in it.
    for use in snapshot.usage:
        state.charge(use.queue, (use.flavor, use.resource), use.amount)
    state.recent = snapshot.recent
    state.node_holds = state.hoped = snapshot.node_holds
    state.move(snapshot.fleet, None)
    state.define(Definitions(snapshot.queues, snapshot.cohorts, snapshot.flavors))
    state.holdings = holdings_of(snapshot.held, snapshot.spans)
    state.learn(dict(enumerate(snapshot.waiting.classes)))
    state.lines.rate_users(_usage_of(snapshot))
    # Before the jobs come, so that each is placed once, where it stands at this instant.
    state.at(now_us)
    state.lines.add(_jobs_of(snapshot.waiting, [queue.name for queue in snapshot.queues]))
    return state


def snapshot_of(state: State, serial: int) -> Snapshot:
    """Give a state as a value; jobs of a queue or class that is not known are not in it."""
    return replace(setting_of(state, serial), waiting=waiting_of(state))


def setting_of(state: State, serial: int) -> Snapshot:
    """Give a state as a value with nobody waiting, which costs nothing for those who do."""
    return Snapshot(
        serial=serial,
        queues=state.definitions.queues,
        cohorts=state.definitions.cohorts,
        flavors=state.definitions.flavors,
        usage=tuple(
            Usage(queue=queue, flavor=pair[0], resource=pair[1], amount=amount)
            for queue, pair, amount in sorted(state.scene.tree.usage())
        ),
        waiting=_columns(state, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), {}),
        fleet=state.scene.fleet,
        held=_held(state),
        spans=tuple(
            Span(queue=queue, gpus=gpus, since_us=since_us, until_us=until_us)
            for queue, spans in sorted(state.holdings.spans.items())
            for gpus, since_us, until_us in sorted(spans)
        ),
        user_usage=tuple(
            UserUsage(queue=queue, user=user, usage=usage)
            for (queue, user), usage in sorted(state.lines.user_usage())
        ),
        node_holds=state.node_holds,
        recent=state.recent,
    )


def class_ids_of(state: State) -> tuple[int, ...]:
    """Give the ids of the snapshot's classes, in the order of their indexes."""
    table = state.lines.table
    # Slots past the count are spare, and slots of those who left are given back later.
    here = table.stage[: table.count] != GONE
    waiting = np.unique(table.class_id[: table.count][here]).tolist()
    return tuple(class_id for class_id in waiting if class_id in state.classes)


def waiting_of(state: State) -> WaitingJobs:
    """Give everybody who waits, by job."""
    table, class_ids = state.lines.table, class_ids_of(state)
    queue_index = {queue.name: index for index, queue in enumerate(state.definitions.queues)}
    queue_of = np.array([queue_index.get(name, -1) for name in table.words["queue"]] or [-1])
    class_of = dict(zip(class_ids, range(len(class_ids)), strict=True))
    slots = np.flatnonzero(table.stage[: table.count] != GONE)
    classes = [class_of.get(class_id, -1) for class_id in table.class_id[slots].tolist()]
    queues = queue_of[table.queue[slots]]
    # The rows that are missing come with a later reading, or the service sets the jobs aside.
    is_known = (queues >= 0) & (np.array(classes, dtype=np.int64) >= 0)
    slots = slots[is_known]
    # Slots are in the order of arrival, and equal states must give equal snapshots.
    slots = slots[np.argsort(table.job_id[slots], kind="stable")]
    return _columns(state, slots, queue_of, class_of)


def _columns(
    state: State, slots: NDArray[np.int64], queue_of: NDArray[np.int64], class_of: dict[int, int]
) -> WaitingJobs:
    table = state.lines.table
    users = [table.words["user"][code] for code in table.user[slots].tolist()]
    # Codes of the table depend on who came when; a value must not.
    names = sorted(set(users))
    user_of = {name: index for index, name in enumerate(names)}
    listed = slots.tolist()
    return WaitingJobs(
        job_id=table.job_id[slots],
        version=table.version[slots].astype(np.int64),
        queue=queue_of[table.queue[slots]].astype(np.int32),
        request_class=np.array(
            [class_of[class_id] for class_id in table.class_id[slots].tolist()], dtype=np.int32
        ),
        priority=table.priority[slots].astype(np.int64),
        submitted_us=table.submitted_us[slots],
        user=np.array([user_of[name] for name in users], dtype=np.int32),
        rank=table.rank[slots].astype(np.int64),
        eligible_us=table.sparse("eligible_us", listed),
        deadline_us=table.sparse("deadline_us", listed),
        expected_seconds=table.sparse("expected_seconds", listed),
        users=tuple(names),
        classes=tuple(state.classes[class_id] for class_id in class_of),
    )


def _held(state: State) -> tuple[Held, ...]:
    holdings = state.holdings
    return tuple(
        Held(queue=queue, user=user, jobs=jobs, gpus=holdings.gpus[queue, user])
        for (queue, user), jobs in sorted(holdings.jobs.items())
        if jobs
    )


def _usage_of(snapshot: Snapshot) -> dict[str, dict[str, int]]:
    usage: dict[str, dict[str, int]] = {}
    for each in snapshot.user_usage:
        usage.setdefault(each.queue, {})[each.user] = each.usage
    return usage


def _jobs_of(waiting: WaitingJobs, queues: list[str]) -> list[NewJob]:
    columns = (
        waiting.job_id.tolist(),
        waiting.version.tolist(),
        [queues[index] for index in waiting.queue.tolist()],
        waiting.request_class.tolist(),
        [waiting.users[index] for index in waiting.user.tolist()],
        waiting.priority.tolist(),
        waiting.rank.tolist(),
        waiting.submitted_us.tolist(),
        waiting.eligible_us.tolist(),
        waiting.deadline_us.tolist(),
        waiting.expected_seconds.tolist(),
    )
    return [NewJob(*values) for values in zip(*columns, strict=True)]
