"""Apply and export: one document, one transaction, the same again changes nothing."""

from typing import Any

import pytest

from gateway.core.vocabulary import Role
from gateway.errors import Denied, InvalidInput
from gateway.schemas.definitions import DefinitionSet
from gateway.service.context import Caller, Gateway
from gateway.service.definitions import apply, export
from tests.db_rows import add_nodes, seen_node

ADMIN = Caller(name="root", role=Role.ADMIN, namespaces=("*",))
ANN = Caller(name="ann", namespaces=("team-a",))
DOCUMENT: dict[str, Any] = {
    "flavors": [
        {"name": "default", "node_labels": {"pool": "cpu"}},
        {"name": "h100", "node_labels": {"pool": "h100"}, "tolerations": [{"key": "gpu"}]},
    ],
    "cohorts": [
        {"name": "a-child", "parent": "z-parent"},
        {
            "name": "z-parent",
            "quotas": [{"flavor": "h100", "resource": "gpu", "nominal": "16"}],
        },
    ],
    "queues": [
        {
            "name": "research",
            "cohort": "a-child",
            "default_for": ["team-a"],
            "flavors": ["h100", "default"],
            "quotas": [
                {"flavor": "h100", "resource": "rdma", "nominal": 8, "lending_limit": 4},
                {"flavor": "h100", "resource": "gpu", "nominal": 8, "borrowing_limit": "8"},
            ],
        },
        {"name": "default", "weight": 5},
    ],
}


def a_document(**changes: Any) -> DefinitionSet:
    return DefinitionSet.model_validate({**DOCUMENT, **changes}, strict=False)


def test_a_document_is_applied_once_and_then_changes_nothing(gateway: Gateway) -> None:
    lines = apply(gateway, ADMIN, a_document())
    assert lines == (
        "flavor default: node_labels {} -> {'pool': 'cpu'}",
        "flavor h100: create",
        "cohort z-parent: create",
        "cohort a-child: create",
        "queue default: weight 1 -> 5",
        "queue research: create",
    )
    assert apply(gateway, ADMIN, a_document()) == ()


def test_what_is_exported_can_be_applied_without_a_change(gateway: Gateway) -> None:
    apply(gateway, ADMIN, a_document())
    exported = export(gateway, ADMIN)
    assert apply(gateway, ADMIN, exported) == ()
    text = exported.model_dump_json()
    assert apply(gateway, ADMIN, DefinitionSet.model_validate_json(text)) == ()


def test_a_dry_run_tells_the_changes_and_makes_none(gateway: Gateway) -> None:
    before = export(gateway, ADMIN)
    assert len(apply(gateway, ADMIN, a_document(), dry_run=True)) == 6
    assert export(gateway, ADMIN) == before


def test_what_the_document_does_not_name_stays(gateway: Gateway) -> None:
    apply(gateway, ADMIN, a_document())
    apply(gateway, ADMIN, DefinitionSet())
    assert [queue.name for queue in export(gateway, ADMIN).queues] == ["default", "research"]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"queues": [{"name": "one", "cohort": "none"}]}, "/queues/0/cohort"),
    ({"queues": [{"name": "one"}, {"name": "one"}]}, "/queues/1/name"),
    (
        {"queues": [{"name": n, "default_for": ["team-a"]} for n in ("one", "two")]},
        "/queues/1/default_for",
    ),
    (
        {"cohorts": [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}], "queues": []},
        "/cohorts/0/parent",
    ),
    (
        {
            "queues": [
                {"name": "fine"},
                {"name": "bad", "quotas": [{"flavor": "h100", "resource": "gpu", "nominal": "x"}]},
            ]
        },
        "/queues/1/quotas/0/nominal",
    ),
]


@pytest.mark.parametrize(("changes", "pointer"), BAD)
@pytest.mark.parametrize("dry_run", [True, False])
def test_nothing_is_stored_when_anything_is_refused(
    gateway: Gateway, changes: dict[str, Any], pointer: str, *, dry_run: bool
) -> None:
    before = export(gateway, ADMIN)
    with pytest.raises(InvalidInput) as refused:
        apply(gateway, ADMIN, a_document(**changes), dry_run=dry_run)
    assert refused.value.pointer == pointer
    assert export(gateway, ADMIN) == before


def test_flavors_are_split_in_one_document(gateway: Gateway) -> None:
    add_nodes(gateway.database, seen_node(labels={"pool": "h100"}))
    only_new = a_document(flavors=DOCUMENT["flavors"][1:])
    with pytest.raises(InvalidInput, match="node-a"):
        apply(gateway, ADMIN, only_new)
    assert apply(gateway, ADMIN, a_document())


def test_only_admins_apply_and_export(gateway: Gateway) -> None:
    with pytest.raises(Denied):
        apply(gateway, ANN, DefinitionSet(), dry_run=True)
    with pytest.raises(Denied):
        export(gateway, ANN)
