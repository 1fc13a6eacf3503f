"""Rules of queues: kept as defined, equal when they mean the same, refused when they make none."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import ValidationError

from gateway.core.vocabulary import Blocking, Role, WhenCanBorrow
from gateway.errors import Conflict, InvalidInput
from gateway.schemas.definitions import (
    CohortSpec,
    DefinitionSet,
    FlavorSpec,
    PriorityClassSpec,
    QueueSpec,
    QuotaSpec,
)
from gateway.schemas.queue_rules import AgeingSpec, BudgetSpec, CapsSpec, DatedChangeSpec
from gateway.service import cohorts, flavors, priority_classes, queues
from gateway.service.context import Caller, Gateway
from gateway.service.definitions import apply, export

ADMIN = Caller(name="root", role=Role.ADMIN, namespaces=("*",))
NEW_YEAR = datetime(2030, 1, 1, tzinfo=UTC)


def a_change(at: datetime = NEW_YEAR, resource: str = "gpu", **values: Any) -> DatedChangeSpec:
    """Give a dated change of the flavor `default`."""
    return DatedChangeSpec(at=at, flavor="default", resource=resource, **values)


def a_quota(nominal: int = 8, **limits: Any) -> QuotaSpec:
    """Give a quota of GPUs of the flavor `default`."""
    return QuotaSpec(flavor="default", resource="gpu", nominal=nominal, **limits)


def ruled(**changes: Any) -> QueueSpec:
    """Give a queue with every rule, in normal form."""
    values: dict[str, Any] = {
        "name": "research",
        "cohort": "lab",
        "order": "fair_users",
        "ageing": AgeingSpec(per_hour=2, cap=50),
        "blocking": Blocking.STRICT,
        "when_can_borrow": WhenCanBorrow.TRY_NEXT_FLAVOR,
        "priority_classes": ("high", "low"),
        "quotas": (a_quota(8, lending_limit=4),),
        "changes": (a_change(nominal=4), a_change(NEW_YEAR + timedelta(days=1), lending_limit=0)),
        "caps": CapsSpec(queued_jobs=100, user_gpus=0),
        "budget": BudgetSpec(gpu_hours=1.5, window_seconds=604_800, starts_at=NEW_YEAR),
    }
    return QueueSpec(**{**values, **changes})


@pytest.fixture
def lab(gateway: Gateway) -> Gateway:
    """Give a gateway with a cohort and two priority classes."""
    cohorts.create_cohort(gateway, ADMIN, CohortSpec(name="lab"))
    for name in ("high", "low"):
        spec = PriorityClassSpec(name=name, value=1)
        priority_classes.create_priority_class(gateway, ADMIN, spec)
    return gateway


def stored(gateway: Gateway, name: str = "research") -> QueueSpec:
    """Give a queue's definition as it is exported."""
    return next(spec for spec in export(gateway, ADMIN).queues if spec.name == name)


def test_every_rule_is_kept_as_defined(lab: Gateway) -> None:
    view = queues.create_queue(lab, ADMIN, ruled())
    assert stored(lab) == ruled()
    assert view.budget == ruled().budget
    assert queues.update_queue(lab, ADMIN, "research", ruled()).version == 1


def test_rules_that_mean_the_same_are_the_same(lab: Gateway) -> None:
    queues.create_queue(lab, ADMIN, ruled())
    zone = timezone(timedelta(hours=5))
    other = ruled(
        changes=tuple(
            change.model_copy(update={"at": change.at.astimezone(zone)})
            for change in reversed(ruled().changes)
        ),
        priority_classes=("low", "high", "low"),
        budget=BudgetSpec(gpu_hours=1.5, window_days=7, starts_at=NEW_YEAR.astimezone(zone)),
    )
    assert apply(lab, ADMIN, DefinitionSet(queues=(other,))) == ()
    assert stored(lab).changes[0].at.tzinfo == UTC


def test_what_is_exported_is_applied_elsewhere_without_loss(lab: Gateway) -> None:
    queues.create_queue(lab, ADMIN, ruled())
    cohorts.update_cohort(lab, ADMIN, "lab", CohortSpec(name="lab", changes=(a_change(nominal=3),)))
    document = DefinitionSet.model_validate_json(export(lab, ADMIN).model_dump_json())
    assert apply(lab, ADMIN, document) == ()
    queues.delete_queue(lab, ADMIN, "research")
    for name in ("high", "low"):
        priority_classes.delete_priority_class(lab, ADMIN, name)
    lines = apply(lab, ADMIN, document)
    kinds = [" ".join(line.split()[:2]) for line in lines]
    assert kinds == ["priority-class high:", "priority-class low:", "queue research:"]
    assert export(lab, ADMIN) == document


def test_rules_can_be_taken_away_again(lab: Gateway) -> None:
    queues.create_queue(lab, ADMIN, ruled())
    plain = QueueSpec(name="research")
    queues.update_queue(lab, ADMIN, "research", plain)
    assert stored(lab) == plain


@pytest.mark.parametrize(
    ("changes", "pointer", "hint"),
    [
        ({"order": "fair_user"}, "/order", "did you mean 'fair_users'?"),
        ({"order": "random"}, "/order", "allowed names"),
        ({"priority_classes": ("hgih",)}, "/priority_classes/0", "did you mean 'high'?"),
        ({"budget": BudgetSpec(gpu_hours=1)}, "/budget/window_days", "window_days: 7"),
        (
            {"budget": BudgetSpec(gpu_hours=1, window_days=1, window_seconds=1)},
            "/budget/window_days",
            "keep one",
        ),
        ({"changes": (a_change(),)}, "/changes/0", "at least one"),
        (
            {"changes": (a_change(nominal=4), a_change(nominal=5))},
            "/changes/1/at",
            "write them as one",
        ),
        ({"changes": (a_change(nominal=3),)}, "/changes/0/nominal", "lend more than it owns"),
        ({"changes": (a_change(lending_limit=9),)}, "/changes/0/lending_limit", "at the same"),
        ({"changes": (a_change(nominal=-1),)}, "/changes/0/nominal", "0 for none"),
        ({"changes": (a_change(resource="gpus", nominal=9),)}, "/changes/0/resource", "'gpu'"),
        (
            {"changes": (DatedChangeSpec(at=NEW_YEAR, flavor="h1", resource="gpu", nominal=9),)},
            "/changes/0/flavor",
            "create the flavor first",
        ),
        (
            {"cohort": None, "quotas": (), "changes": (a_change(borrowing_limit=1),)},
            "/changes/0/borrowing_limit",
            "name a cohort",
        ),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_and_changes_nothing(
    lab: Gateway, changes: dict[str, Any], pointer: str, hint: str
) -> None:
    queues.create_queue(lab, ADMIN, ruled())
    before = export(lab, ADMIN)
    with pytest.raises(InvalidInput) as refused:
        queues.update_queue(lab, ADMIN, "research", ruled(**changes))
    assert refused.value.pointer == pointer
    assert hint in refused.value.hint
    with pytest.raises(InvalidInput) as applied:
        apply(lab, ADMIN, DefinitionSet(queues=(ruled(**changes),)))
    assert applied.value.pointer == f"/queues/0{pointer}"
    assert export(lab, ADMIN) == before


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        *((CapsSpec, {name: -1}) for name in CapsSpec.model_fields),
        *((AgeingSpec, {name: -1}) for name in AgeingSpec.model_fields),
        (BudgetSpec, {"gpu_hours": -1, "window_days": 1}),
        (BudgetSpec, {"gpu_hours": 1, "window_days": 0}),
        (BudgetSpec, {"gpu_hours": 1, "window_seconds": 0}),
        (QueueSpec, {"name": "q", "weight": -1}),
        (CohortSpec, {"name": "c", "weight": -1}),
        (DatedChangeSpec, {"at": datetime(2030, 1, 1), "flavor": "f", "resource": "gpu"}),  # noqa: DTZ001 - without a zone is the point
    ],
)
def test_a_number_below_its_range_makes_no_form(kind: Any, values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        kind(**values)


def test_a_flavor_that_a_dated_change_names_is_not_deleted(lab: Gateway) -> None:
    flavors.update_flavor(lab, ADMIN, "default", FlavorSpec(name="default"))
    queues.create_queue(lab, ADMIN, ruled(quotas=(), changes=(a_change(nominal=1),)))
    with pytest.raises(Conflict, match="in use by a quota of research"):
        flavors.delete_flavor(lab, ADMIN, "default")


def test_a_queue_shows_the_quota_that_is_in_force(lab: Gateway) -> None:
    past = datetime(2020, 1, 1, tzinfo=UTC)
    spec = ruled(changes=(a_change(past, nominal=5), a_change(nominal=4)))
    view = queues.create_queue(lab, ADMIN, spec)
    assert [row.nominal for row in view.usage] == [5]
