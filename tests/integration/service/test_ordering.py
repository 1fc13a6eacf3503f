"""The ranked list of a queue, as the service gives it, on each database."""

import pytest

from gateway.core.vocabulary import JobState, OrderPolicy, Reason
from gateway.errors import InvalidInput, NotFound
from gateway.schemas.definitions import QueueSpec
from gateway.schemas.order import OrderEntry
from gateway.schemas.queue_rules import AgeingSpec, CapsSpec
from gateway.service import queues
from gateway.service.context import Leadership
from gateway.service.explaining import explain
from gateway.service.ordering import queue_order
from gateway.service.verbs import cancel
from tests.service_world import ADMIN, ANNA, BEN, World, a_spec


def define(world: World, **fields: object) -> None:
    """Give queue `default` other rules."""
    spec = QueueSpec.model_validate({"name": "default", **fields})
    queues.update_queue(world.gateway, ADMIN, "default", spec)


def listed(world: World, limit: int = 100) -> tuple[OrderEntry, ...]:
    return queue_order(world.gateway, ADMIN, "default", limit=limit).items


def fill(world: World) -> None:
    """Let a gang take the whole fleet, so that everybody else waits."""
    world.until(world.submit(name="first", workers=1), JobState.RUNNING)


def test_the_list_tells_priority_and_age(world: World) -> None:
    define(world, ageing=AgeingSpec(per_hour=2, cap=10))
    fill(world)
    world.submit(name="old", priority=1)
    world.clock.advance(7200)
    world.submit(name="new", priority=4)
    world.decide()
    first, second = listed(world)
    assert (first.name, first.priority, first.age, first.effective) == ("old", 1, 4.0, 5.0)
    assert (second.name, second.priority, second.age, second.effective) == ("new", 4, 0.0, 4.0)
    assert (first.waited_seconds, second.waited_seconds) == (7200.0, 0.0)
    assert {first.reason, second.reason} == {Reason.GANG_DOES_NOT_FIT}


def test_the_list_says_what_bars_a_job(world: World) -> None:
    define(world, caps=CapsSpec(user_gpus=4))
    world.submit(name="later", gpu=1, not_before_at="2030-01-31T18:00:00Z")
    world.submit(name="large", gpu=8)
    large, later = listed(world)
    assert (large.name, large.reason) == ("large", Reason.OVER_CAP)
    assert large.barred == (
        "anna holds 0 GPUs in queue default, where one user may hold 4; this job asks for 8"
    )
    assert (later.name, later.reason) == ("later", Reason.NOT_BEFORE)
    assert later.barred == "not before 2030-01-31T18:00:00+00:00"
    queues.pause_queue(world.gateway, ADMIN, "default")
    assert next(each.barred for each in listed(world)) == "queue default is paused"


def test_by_deadline_the_slack_is_told(world: World) -> None:
    define(world, order=OrderPolicy.DEADLINE.value)
    fill(world)
    start = "2027-01-15T09:00:00Z"
    world.submit(name="none")
    world.submit(name="soon", deadline_at=start, expected_seconds=600)
    soon, none = listed(world)
    now_us = world.gateway.clock.now_us()
    assert (soon.name, none.name, none.slack_seconds) == ("soon", "none", None)
    row = world.job_row(str(soon.job_id))
    assert soon.slack_seconds == round((row["deadline_us"] - now_us) / 1e6 - 600, 3)


def test_others_tenants_jobs_are_sizes_only(world: World) -> None:
    fill(world)
    world.submit(a_spec("secret", gpu=4, namespace="team-b"), caller=BEN)
    world.submit(name="mine")
    theirs, mine = queue_order(world.gateway, ANNA, "default").items
    assert theirs == OrderEntry(position=1, pods=1, gpus=4, rdma=4)
    assert (mine.position, mine.name, mine.user) == (2, "mine", "anna")
    assert queue_order(world.gateway, ADMIN, "default").items[0].name == "secret"


def test_pages_go_on_where_the_last_one_ended_though_the_list_changed(world: World) -> None:
    fill(world)
    ids = [world.submit(name=f"job-{n}") for n in range(5)]
    page = queue_order(world.gateway, ANNA, "default", limit=2)
    assert (page.total, [each.name for each in page.items]) == (5, ["job-0", "job-1"])
    cancel(world.gateway, ANNA, ids[0])
    following = queue_order(world.gateway, ANNA, "default", page.next_cursor, 2)
    assert [(each.position, each.name) for each in following.items] == [(2, "job-2"), (3, "job-3")]
    assert following.as_of == page.as_of
    assert following.list_serial != page.list_serial
    last = queue_order(world.gateway, ANNA, "default", following.next_cursor, 2)
    assert ([each.name for each in last.items], last.next_cursor) == (["job-4"], "")
    with pytest.raises(InvalidInput):
        queue_order(world.gateway, ANNA, "default", "1.2.3")


def test_an_unknown_queue_is_not_found(world: World) -> None:
    with pytest.raises(NotFound):
        queue_order(world.gateway, ANNA, "nowhere")


def test_a_replica_that_never_led_gives_the_same_list_and_position(world: World) -> None:
    fill(world)
    ids = [world.submit(name=f"job-{n}", priority=n) for n in range(3)]
    world.decide()
    told = [explain(world.gateway, ANNA, job_id) for job_id in ids]
    expected = listed(world)
    gateway = world.gateway
    replica = type(gateway)(
        database=gateway.database,
        backend=gateway.backend,
        settings=gateway.settings,
        leadership=Leadership(holder="other"),
        clock=gateway.clock,
    )
    assert queue_order(replica, ADMIN, "default").items == expected
    assert [explain(replica, ANNA, job_id) for job_id in ids] == told
    assert [(each.position, each.jobs_ahead, each.gpus_ahead) for each in told] == [
        (3, 2, 16),
        (2, 1, 8),
        (1, 0, 0),
    ]
