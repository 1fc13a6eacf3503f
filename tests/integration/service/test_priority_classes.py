"""Priority classes: defined by admins, allowed by queues, kept with the job as its rank."""

from typing import Any

import pytest

from gateway.core.vocabulary import JobState
from gateway.db.submissions import NewJob
from gateway.errors import Conflict, Denied, GatewayError, InvalidInput, NotFound, StaleVersion
from gateway.schemas.definitions import PriorityClassSpec, QueueSpec
from gateway.service import priority_classes as classes
from gateway.service import queues
from gateway.service.rationing import with_ranks
from gateway.service.reprioritising import NewPlace, reprioritise
from gateway.service.verbs import cancel
from tests.service_world import ADMIN, ANNA, World


def allow(world: World, *names: str) -> None:
    """Let queue `default` take jobs of exactly these classes."""
    spec = QueueSpec(name="default", priority_classes=names)
    queues.update_queue(world.gateway, ADMIN, "default", spec)


@pytest.fixture
def levels(world: World) -> World:
    """Give a world with classes low (-5) and high (10), both allowed."""
    for name, value in (("low", -5), ("high", 10)):
        spec = PriorityClassSpec(name=name, value=value)
        classes.create_priority_class(world.gateway, ADMIN, spec)
    allow(world, "low", "high")
    return world


def test_a_job_keeps_its_class_and_the_value_as_its_rank(levels: World) -> None:
    job = levels.submit(priority_class="high")
    assert levels.job(job).priority_class == "high"
    assert levels.job_row(job)["rank"] == 10
    plain = levels.submit(name="plain")
    assert (levels.job(plain).priority_class, levels.job_row(plain)["rank"]) == ("", 0)


def test_an_instant_of_a_job_is_kept_and_shown(world: World) -> None:
    job = world.submit(
        not_before_at="2030-01-31T18:00:00+01:00",
        deadline_at="2031-01-31T18:00:00.5Z",
        expected_seconds=60,
    )
    row, view = world.job_row(job), world.job(job)
    assert (row["eligible_us"], row["deadline_us"]) == (1896109200000000, 1927648800500000)
    assert view.not_before_at is not None
    assert view.not_before_at.isoformat() == "2030-01-31T17:00:00+00:00"
    assert (view.deadline_at is not None, view.expected_seconds) == (True, 60)
    old = world.submit(
        name="old", not_before_at="1960-01-01T00:00:00Z", deadline_at="1960-01-01T00:00:00Z"
    )
    assert (world.job_row(old)["eligible_us"], world.job_row(old)["deadline_us"]) == (0, 1)


def test_a_class_that_does_not_exist_is_refused_with_the_one_meant(levels: World) -> None:
    with pytest.raises(InvalidInput) as refused:
        levels.submit(priority_class="hihg")
    assert (refused.value.pointer, refused.value.hint) == (
        "/priority_class",
        "did you mean 'high'?",
    )


def test_a_queue_takes_only_the_classes_that_it_allows(levels: World) -> None:
    allow(levels, "low")
    with pytest.raises(Denied) as refused:
        levels.submit(priority_class="high")
    assert refused.value.allowed == ("low",)
    assert refused.value.hint == "choose low, or ask an admin to allow it"
    allow(levels)
    with pytest.raises(Denied, match="does not allow priority class low"):
        levels.submit(priority_class="low")


def test_another_value_ranks_live_jobs_anew_and_no_ended_one(levels: World) -> None:
    waiting, ended = (
        levels.submit(priority_class="high"),
        levels.submit(name="ended", priority_class="high"),
    )
    cancel(levels.gateway, ANNA, ended)
    spec = PriorityClassSpec(name="high", value=99)
    view = classes.update_priority_class(levels.gateway, ADMIN, "high", spec, 1)
    assert (view.value, view.version) == (99, 2)
    assert [levels.job_row(job)["rank"] for job in (waiting, ended)] == [99, 10]
    with pytest.raises(StaleVersion):
        classes.update_priority_class(levels.gateway, ADMIN, "high", spec, 1)


def test_a_class_in_use_is_not_deleted(levels: World) -> None:
    job = levels.submit(priority_class="high")
    with pytest.raises(Conflict, match="in use by queue default, 1 live job"):
        classes.delete_priority_class(levels.gateway, ADMIN, "high")
    allow(levels, "low")
    with pytest.raises(Conflict, match="in use by 1 live job"):
        classes.delete_priority_class(levels.gateway, ADMIN, "high")
    levels.until(job, JobState.SUCCEEDED)
    classes.delete_priority_class(levels.gateway, ADMIN, "high")
    with pytest.raises(NotFound):
        classes.get_priority_class(levels.gateway, ANNA, "high")
    assert [level.name for level in classes.list_priority_classes(levels.gateway, ANNA)] == ["low"]


def test_a_class_that_changed_or_went_since_it_was_judged_is_noticed(levels: World) -> None:
    columns: dict[str, Any] = dict.fromkeys(NewJob._fields, "")
    names = ("low", "gone", "")
    rows = {n: NewJob(**columns | {"priority_class": name}) for n, name in enumerate(names)}
    ranked, refused = levels.gateway.database.run_write(lambda writer: with_ranks(writer, rows))
    assert {index: row.rank for index, row in ranked.items()} == {0: -5, 2: 0}
    assert [str(error) for error in refused.values()] == [
        "priority class 'gone' does not exist any more"
    ]


def test_only_admins_define_classes(levels: World) -> None:
    spec = PriorityClassSpec(name="mine", value=1_000_000_000)
    with pytest.raises(Denied):
        classes.create_priority_class(levels.gateway, ANNA, spec)
    with pytest.raises(Denied):
        classes.delete_priority_class(levels.gateway, ANNA, "low")


def test_a_waiting_job_changes_its_class_or_loses_it(levels: World) -> None:
    job = levels.submit(priority_class="low", priority=3)
    changed = reprioritise(levels.gateway, ANNA, job, NewPlace(priority_class="high"))
    assert (changed.priority_class, changed.priority) == ("high", 3)
    assert levels.job_row(job)["rank"] == 10
    both = NewPlace(priority_class="", priority=5)
    lost = reprioritise(levels.gateway, ANNA, job, both)
    assert (lost.priority_class, lost.priority, levels.job_row(job)["rank"]) == ("", 5, 0)


@pytest.mark.parametrize(
    ("wanted", "kind"),
    [
        (NewPlace(), InvalidInput),
        (NewPlace(priority_class="none-such"), InvalidInput),
        (NewPlace(priority_class="high"), Denied),
    ],
)
def test_a_wrong_new_place_changes_nothing(
    levels: World, wanted: NewPlace, kind: type[GatewayError]
) -> None:
    job = levels.submit(priority_class="low")
    allow(levels, "low")
    before = levels.job_row(job)
    with pytest.raises(kind) as refused:
        reprioritise(levels.gateway, ANNA, job, wanted)
    assert refused.value.hint
    assert levels.job_row(job) == before
