"""Queues, cohorts and flavors: what admins may define, what is refused and how it says so."""

from typing import Any

import pytest

from gateway.core.vocabulary import UNLIMITED, QueueState, Role
from gateway.db.events import EventFilter, list_events
from gateway.db.state import read_generation
from gateway.errors import Conflict, Denied, GatewayError, InvalidInput, NotFound, StaleVersion
from gateway.schemas.definitions import CohortSpec, FlavorSpec, QueueSpec, QuotaSpec
from gateway.service import cohorts, flavors, queues
from gateway.service.context import Caller, Gateway
from tests.db_rows import GIB, a_grant, a_pod, add_job, add_nodes, reserve, seen_node

ADMIN = Caller(name="root", role=Role.ADMIN, namespaces=("*",))
ANN = Caller(name="ann", namespaces=("team-a",))


def a_quota(nominal: int | str = 8, resource: str = "gpu", **limits: Any) -> QuotaSpec:
    return QuotaSpec(flavor="default", resource=resource, nominal=nominal, **limits)


def a_queue(name: str = "research", **changes: Any) -> QueueSpec:
    return QueueSpec(name=name, **changes)


def generation(gateway: Gateway) -> int:
    with gateway.database.read() as connection:
        return read_generation(connection)


def told(gateway: Gateway) -> list[str]:
    with gateway.database.read() as connection:
        rows = list_events(connection, EventFilter())
    return [f"{row['kind']} by {row['actor']}: {row['detail']}" for row in rows]


def test_a_queue_is_kept_as_defined_with_quantities_counted(gateway: Gateway) -> None:
    cohorts.create_cohort(gateway, ADMIN, CohortSpec(name="lab", weight=2))
    quotas = (a_quota(8, lending_limit=4), a_quota("64Gi", "memory"), a_quota("500m", "cpu"))
    spec = a_queue(cohort="lab", quotas=quotas, default_for=("team-a",), priority_max=10)
    view = queues.create_queue(gateway, ADMIN, spec)
    amounts = {quota.resource: quota.nominal for quota in view.quotas}
    assert amounts == {"cpu": 500, "gpu": 8, "memory": 64 * GIB}
    assert (view.version, view.cohort, view.default_for) == (1, "lab", ("team-a",))
    assert queues.get_queue(gateway, ADMIN, "research") == view
    assert [queue.name for queue in queues.list_queues(gateway, ANN)] == ["default", "research"]


def test_an_update_counts_versions_and_generation_and_leaves_an_event(gateway: Gateway) -> None:
    queues.create_queue(gateway, ADMIN, a_queue())
    before = generation(gateway)
    view = queues.update_queue(gateway, ADMIN, "research", a_queue(weight=3), if_version=1)
    assert (view.version, view.weight, generation(gateway)) == (2, 3, before + 1)
    assert told(gateway) == [
        "queue_created by root: queue research: create",
        "queue_changed by root: queue research: weight 1 -> 3",
    ]


def test_the_same_definition_again_changes_nothing(gateway: Gateway) -> None:
    spec = a_queue(quotas=(a_quota("8"),))
    queues.create_queue(gateway, ADMIN, spec)
    assert queues.update_queue(gateway, ADMIN, "research", spec).version == 1
    assert len(told(gateway)) == 1


def test_a_stale_version_is_refused_and_changes_nothing(gateway: Gateway) -> None:
    queues.create_queue(gateway, ADMIN, a_queue())
    queues.update_queue(gateway, ADMIN, "research", a_queue(weight=2))
    for act in (
        lambda: queues.update_queue(gateway, ADMIN, "research", a_queue(weight=9), 1),
        lambda: queues.delete_queue(gateway, ADMIN, "research", 1),
    ):
        with pytest.raises(StaleVersion) as refused:
            act()
        assert refused.value.allowed == ("2",)
    assert queues.get_queue(gateway, ADMIN, "research").weight == 2


def test_only_admins_define(gateway: Gateway) -> None:
    for act in (
        lambda: queues.create_queue(gateway, ANN, a_queue()),
        lambda: queues.pause_queue(gateway, ANN, "default"),
        lambda: cohorts.delete_cohort(gateway, ANN, "lab"),
        lambda: flavors.update_flavor(gateway, ANN, "default", FlavorSpec(name="default")),
    ):
        with pytest.raises(Denied):
            act()
    assert told(gateway) == []


def test_what_does_not_exist_is_not_found(gateway: Gateway) -> None:
    for act in (
        lambda: queues.get_queue(gateway, ANN, "none"),
        lambda: queues.resume_queue(gateway, ADMIN, "none"),
        lambda: cohorts.get_cohort(gateway, ANN, "none"),
        lambda: flavors.delete_flavor(gateway, ADMIN, "none"),
        lambda: cohorts.update_cohort(gateway, ADMIN, "none", CohortSpec(name="none")),
    ):
        with pytest.raises(NotFound):
            act()


def test_a_taken_name_is_a_conflict(gateway: Gateway) -> None:
    with pytest.raises(Conflict, match="exists already"):
        queues.create_queue(gateway, ADMIN, a_queue("default"))


BAD_QUEUES: list[tuple[dict[str, Any], str, str]] = [
    ({"cohort": "labb"}, "/cohort", "did you mean 'lab'?"),
    ({"cohort": "zzz"}, "/cohort", "create the cohort first"),
    ({"flavors": ("defualt",)}, "/flavors/0", "did you mean 'default'?"),
    ({"priority_min": 5, "priority_max": 4}, "/priority_min", "swap them"),
    ({"namespaces": ("Team_A",)}, "/namespaces/0", "lower-case"),
    ({"default_for": ("*",)}, "/default_for/0", "lower-case"),
    ({"namespaces": ("a",), "default_for": ("b",)}, "/default_for", "add b to namespaces"),
    ({"quotas": (a_quota(-1),)}, "/quotas/0/nominal", "write 0 for none"),
    ({"quotas": (a_quota(2**62),)}, "/quotas/0/nominal", "0 for none"),
    ({"quotas": (a_quota("eight"),)}, "/quotas/0/nominal", "number"),
    ({"quotas": (a_quota(1, "gpus"),)}, "/quotas/0/resource", "did you mean 'gpu'?"),
    ({"quotas": (a_quota(1, "nvidia.com/gpu"),)}, "/quotas/0/resource", "'gpu'?"),
    ({"quotas": (a_quota(1), a_quota(2))}, "/quotas/1", "keep one"),
    ({"quotas": (a_quota(1, borrowing_limit=1),)}, "/quotas/0/borrowing_limit", "name a cohort"),
    (
        {"cohort": "lab", "quotas": (a_quota(1), a_quota(2, "rdma", lending_limit=3))},
        "/quotas/1/lending_limit",
        "own",
    ),
    (
        {"quotas": (QuotaSpec(flavor="h100", resource="gpu", nominal=1),)},
        "/quotas/0/flavor",
        "create the flavor first",
    ),
]


@pytest.mark.parametrize(("changes", "pointer", "hint"), BAD_QUEUES)
def test_a_queue_that_makes_no_sense_is_refused_with_place_and_advice(
    gateway: Gateway, changes: dict[str, Any], pointer: str, hint: str
) -> None:
    cohorts.create_cohort(gateway, ADMIN, CohortSpec(name="lab"))
    with pytest.raises(InvalidInput) as refused:
        queues.create_queue(gateway, ADMIN, a_queue(**changes))
    assert refused.value.pointer == pointer
    assert hint in refused.value.hint
    assert [queue.name for queue in queues.list_queues(gateway, ADMIN)] == ["default"]


def test_a_definition_cannot_be_renamed(gateway: Gateway) -> None:
    with pytest.raises(InvalidInput, match="renamed"):
        queues.update_queue(gateway, ADMIN, "default", a_queue("other"))


def test_a_cohort_is_never_its_own_ancestor(gateway: Gateway) -> None:
    for name, parent in (("top", None), ("mid", "top"), ("low", "mid")):
        cohorts.create_cohort(gateway, ADMIN, CohortSpec(name=name, parent=parent))
    for parent in ("low", "top"):
        with pytest.raises(InvalidInput) as refused:
            cohorts.update_cohort(gateway, ADMIN, "top", CohortSpec(name="top", parent=parent))
        assert refused.value.pointer == "/parent"
    assert cohorts.get_cohort(gateway, ADMIN, "top").parent is None


def test_what_is_in_use_is_not_deleted(gateway: Gateway) -> None:
    cohorts.create_cohort(gateway, ADMIN, CohortSpec(name="lab"))
    cohorts.create_cohort(gateway, ADMIN, CohortSpec(name="sub", parent="lab"))
    queues.create_queue(gateway, ADMIN, a_queue(cohort="sub", quotas=(a_quota(1),)))
    add_job(gateway.database, "one")
    attempts: list[tuple[Any, str]] = [
        (lambda: cohorts.delete_cohort(gateway, ADMIN, "lab"), "cohort sub"),
        (lambda: cohorts.delete_cohort(gateway, ADMIN, "sub"), "queue research"),
        (lambda: flavors.delete_flavor(gateway, ADMIN, "default"), "a quota of research"),
        (lambda: queues.delete_queue(gateway, ADMIN, "default"), "1 live job"),
    ]
    for act, user in attempts:
        with pytest.raises(Conflict) as refused:
            act()
        assert user in refused.value.detail
    queues.delete_queue(gateway, ADMIN, "research")
    cohorts.delete_cohort(gateway, ADMIN, "sub")
    cohorts.delete_cohort(gateway, ADMIN, "lab")
    assert cohorts.list_cohorts(gateway, ADMIN) == ()


def test_a_flavor_is_refused_that_would_share_a_node_with_another(gateway: Gateway) -> None:
    add_nodes(gateway.database, seen_node(labels={"gpu": "h100"}))
    h100 = FlavorSpec(name="h100", node_labels={"gpu": "h100"})
    with pytest.raises(InvalidInput) as refused:
        flavors.create_flavor(gateway, ADMIN, h100)
    assert "node-a" in refused.value.detail
    labelled = FlavorSpec(name="default", node_labels={"gpu": "none"})
    flavors.update_flavor(gateway, ADMIN, "default", labelled)
    assert flavors.create_flavor(gateway, ADMIN, h100).version == 1
    assert [flavor.name for flavor in flavors.list_flavors(gateway, ANN)] == ["default", "h100"]


def test_pausing_and_resuming_twice_is_fine_and_told_once(gateway: Gateway) -> None:
    for _ in range(2):
        assert queues.pause_queue(gateway, ADMIN, "default").state is QueueState.PAUSED
    for _ in range(2):
        assert queues.resume_queue(gateway, ADMIN, "default").state is QueueState.OPEN
    assert len(told(gateway)) == 2


def test_a_namespace_has_one_default_queue(gateway: Gateway) -> None:
    queues.create_queue(gateway, ADMIN, a_queue("one", default_for=("team-a", "team-b")))
    queues.create_queue(gateway, ADMIN, a_queue("two", default_for=("team-a",)))
    views = {queue.name: queue.default_for for queue in queues.list_queues(gateway, ADMIN)}
    assert (views["one"], views["two"]) == (("team-b",), ("team-a",))


def test_other_tenants_namespaces_are_not_shown(gateway: Gateway) -> None:
    spec = a_queue(namespaces=("team-a", "team-b"), default_for=("team-b",))
    queues.create_queue(gateway, ADMIN, spec)
    view = queues.get_queue(gateway, ANN, "research")
    assert (view.namespaces, view.default_for) == (("team-a",), ())


def test_a_queue_shows_its_jobs_and_what_they_use(gateway: Gateway) -> None:
    add_nodes(gateway.database)
    limited = a_queue("default", quotas=(a_quota(1),))
    queues.update_queue(gateway, ADMIN, "default", limited)
    job_ids = [add_job(gateway.database, name) for name in ("one", "two")]
    charges = (("default", "default", "gpu", 2), ("default", "default", "cpu", 1000))
    grant = a_grant(job_ids[0], a_pod(gpus=(0, 1)), charges=charges)
    gateway.database.run_write(lambda writer: reserve(writer, grant))
    view = queues.get_queue(gateway, ANN, "default")
    assert (view.pending, view.held, view.active) == (1, 0, 1)
    rows = {
        row.resource: (row.nominal, row.used, row.borrowed, row.available) for row in view.usage
    }
    assert rows == {"gpu": (1, 2, 1, -1), "cpu": (0, 1000, 0, UNLIMITED)}


def test_every_refusal_says_what_to_do_next(gateway: Gateway) -> None:
    for act in (
        lambda: queues.delete_queue(gateway, ADMIN, "none"),
        lambda: queues.create_queue(gateway, ANN, a_queue()),
        lambda: queues.create_queue(gateway, ADMIN, a_queue("default")),
    ):
        with pytest.raises(GatewayError) as refused:
            act()
        assert refused.value.hint
