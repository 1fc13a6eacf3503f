"""All definitions as one value: read from the database, edited, checked, and written back.

Definitions are few, so every change works on the whole set; a single edit and `apply` are then the
same thing. Specs are kept in normal form: whole numbers, sorted rows, no repeats. Two equal
definitions are then equal values, and applying a file twice changes nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from gateway.core.vocabulary import UNLIMITED, QueueState
from gateway.db import definitions as rows
from gateway.db.definitions import Noun
from gateway.db.engine import Connection, Row
from gateway.errors import InvalidInput
from gateway.manifests.quantities import parse_quantity
from gateway.schemas.definitions import (
    CohortSpec,
    FlavorSpec,
    PriorityClassSpec,
    QueueSpec,
    QuotaSpec,
)
from gateway.schemas.job_spec import TolerationSpec
from gateway.schemas.queue_rules import DatedChangeSpec, Quantity
from gateway.service.catalog_rules import (
    changes_of,
    normal_changes,
    normal_rules,
    require_window,
    rules_of,
)

Spec = FlavorSpec | CohortSpec | PriorityClassSpec | QueueSpec
Owner = CohortSpec | QueueSpec
"""What has quota."""
NOUNS: Mapping[type[Spec], Noun] = {
    FlavorSpec: Noun.FLAVOR,
    CohortSpec: Noun.COHORT,
    PriorityClassSpec: Noun.PRIORITY_CLASS,
    QueueSpec: Noun.QUEUE,
}
Kind = TypeVar("Kind", FlavorSpec, CohortSpec, PriorityClassSpec, QueueSpec)
Counted = TypeVar("Counted", QuotaSpec, DatedChangeSpec)
AMOUNTS = {"nominal", "borrowing_limit", "lending_limit"}
FIELDS: Mapping[Noun, str] = {
    Noun.FLAVOR: "flavors",
    Noun.COHORT: "cohorts",
    Noun.PRIORITY_CLASS: "priority_classes",
    Noun.QUEUE: "queues",
}
"""Where a catalog keeps the definitions of a kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Every definition by kind and name, with the stored versions."""

    flavors: Mapping[str, FlavorSpec] = field(default_factory=dict)
    cohorts: Mapping[str, CohortSpec] = field(default_factory=dict)
    priority_classes: Mapping[str, PriorityClassSpec] = field(default_factory=dict)
    queues: Mapping[str, QueueSpec] = field(default_factory=dict)
    versions: Mapping[tuple[Noun, str], int] = field(default_factory=dict)

    def specs(self, noun: Noun) -> Mapping[str, Spec]:
        """Give the definitions of one kind by name."""
        found: Mapping[str, Spec] = getattr(self, FIELDS[noun])
        return found

    def having(self, spec: Spec) -> "Catalog":
        """Give the catalog with this definition instead of the one of its name.

        A queue that becomes the default of a namespace takes it from the queue that was.
        """
        noun = noun_of(spec)
        others = self.specs(noun)
        if isinstance(spec, QueueSpec):
            others = {
                # A namespace has one default; the other queue's copy must say so before anything is
                # checked.
                name: _without(queue, spec.default_for)
                for name, queue in self.queues.items()
            }
        return self._with(noun, {**others, spec.name: spec})

    def lacking(self, noun: Noun, name: str) -> "Catalog":
        """Give the catalog without one definition."""
        kept = dict(self.specs(noun))
        kept.pop(name, None)
        return self._with(noun, kept)

    def _with(self, noun: Noun, specs: Mapping[str, Spec]) -> "Catalog":
        changes: dict[str, Any] = {FIELDS[noun]: specs}
        return replace(self, **changes)


def _without(queue: QueueSpec, namespaces: tuple[str, ...]) -> QueueSpec:
    if set(queue.default_for).isdisjoint(namespaces):
        return queue
    kept = tuple(name for name in queue.default_for if name not in namespaces)
    return queue.model_copy(update={"default_for": kept})


def noun_of(spec: Spec) -> Noun:
    """Give the kind of a definition."""
    return NOUNS[type(spec)]


def read_catalog(connection: Connection) -> Catalog:
    """Give every stored definition."""
    # All of it at each change: definitions are few, and a check needs the whole tree.
    found = {noun: rows.list_rows(connection, noun) for noun in Noun}
    owned = {noun: _owned(connection, noun) for noun in rows.OWNERS}
    namespaces = rows.list_namespaces(connection)
    return Catalog(
        flavors=_by_name(map(_flavor, found[Noun.FLAVOR])),
        cohorts=_by_name(
            _cohort(row, owned[Noun.COHORT].get(row["name"], {})) for row in found[Noun.COHORT]
        ),
        priority_classes=_by_name(
            PriorityClassSpec(name=row["name"], value=row["value"])
            for row in found[Noun.PRIORITY_CLASS]
        ),
        queues=_by_name(
            _queue(row, owned[Noun.QUEUE].get(row["name"], {}), namespaces.get(row["name"], []))
            for row in found[Noun.QUEUE]
        ),
        versions={(noun, row["name"]): row["version"] for noun in Noun for row in found[noun]},
    )


def _owned(connection: Connection, noun: Noun) -> dict[str, dict[str, Any]]:
    """Give the quotas and dated changes of each owner of a kind that has any."""
    found: dict[str, dict[str, Any]] = {}
    for name, quotas in rows.list_quotas(connection, noun).items():
        found.setdefault(name, {})["quotas"] = _quotas(quotas)
    for name, changes in rows.list_changes(connection, noun).items():
        found.setdefault(name, {})["changes"] = changes_of(changes)
    return found


def _by_name(specs: Iterable[Kind]) -> dict[str, Kind]:
    return {spec.name: spec for spec in specs}


def _flavor(row: Row) -> FlavorSpec:
    return FlavorSpec(
        name=row["name"],
        node_labels=dict(sorted(row["node_labels"].items())),
        tolerations=tuple(TolerationSpec(**item) for item in row["tolerations"]),
    )


def _cohort(row: Row, owned: Mapping[str, Any]) -> CohortSpec:
    return CohortSpec(name=row["name"], parent=row["parent"], weight=row["weight"], **owned)


def _queue(row: Row, owned: Mapping[str, Any], default_for: list[str]) -> QueueSpec:
    return QueueSpec(
        name=row["name"],
        cohort=row["cohort"],
        weight=row["weight"],
        state=QueueState(row["state"]),
        priority_min=row["priority_min"],
        priority_max=row["priority_max"],
        namespaces=tuple(row["namespaces"]),
        default_for=tuple(default_for),
        flavors=tuple(row["flavors"]),
        **rules_of(row),
        **owned,
    )


def _quotas(quotas: list[Row]) -> tuple[QuotaSpec, ...]:
    names = QuotaSpec.model_fields
    return tuple(QuotaSpec(**{name: row[name] for name in names}) for row in quotas)


def counted(spec: Spec, pointer: str = "") -> Spec:
    """Give the definition with whole numbers, rows in the author's order.

    Raises:
        InvalidInput: a quantity is none, is negative or is beyond what can be counted, or a budget
            does not say how long its window is.
    """
    if not isinstance(spec, CohortSpec | QueueSpec):
        return spec
    if isinstance(spec, QueueSpec) and spec.budget is not None:
        require_window(spec.budget, f"{pointer}/budget")
    changes = {
        "quotas": _all_counted(spec.quotas, f"{pointer}/quotas"),
        "changes": _all_counted(spec.changes, f"{pointer}/changes"),
    }
    return spec.model_copy(update=changes)


def normal_form(spec: Spec) -> Spec:
    """Give a counted definition with sorted rows and without repeats."""
    if isinstance(spec, FlavorSpec):
        return spec.model_copy(update={"node_labels": dict(sorted(spec.node_labels.items()))})
    if isinstance(spec, PriorityClassSpec):
        return spec
    changes: dict[str, object] = {
        "quotas": tuple(sorted(spec.quotas, key=lambda quota: (quota.flavor, quota.resource))),
        "changes": normal_changes(spec.changes),
    }
    if isinstance(spec, QueueSpec):
        changes["namespaces"] = tuple(sorted(set(spec.namespaces)))
        changes["default_for"] = tuple(sorted(set(spec.default_for)))
        # In the author's order: it says which flavor is tried first.
        changes["flavors"] = tuple(dict.fromkeys(spec.flavors))
        changes |= normal_rules(spec)
    return spec.model_copy(update=changes)


def _all_counted(quotas: Iterable[Counted], pointer: str) -> tuple[Counted, ...]:
    return tuple(_counted(quota, f"{pointer}/{index}") for index, quota in enumerate(quotas))


def _counted(quota: Counted, pointer: str) -> Counted:
    # None says no limit, or leave it as it was; it is no amount to be read.
    given = quota.model_dump(include=AMOUNTS, exclude_none=True)
    changes = {
        name: _amount(value, quota.resource, f"{pointer}/{name}") for name, value in given.items()
    }
    return quota.model_copy(update=changes)


def _amount(value: Quantity, resource: str, pointer: str) -> int:
    amount = value if isinstance(value, int) else _parsed(value, resource, pointer)
    # Sums of amounts below this still fit 64 bits, so the tree can add without looking.
    if 0 <= amount < UNLIMITED:
        return amount
    raise InvalidInput(
        f"{value} {resource} is {'negative' if amount < 0 else 'too much to count'}",
        pointer=pointer,
        value=value,
        allowed=("0 or more",),
        hint="leave the field out for no limit" if "limit" in pointer else "write 0 for none",
    )


def _parsed(text: str, resource: str, pointer: str) -> int:
    try:
        return parse_quantity(text, resource)
    except InvalidInput as error:
        raise InvalidInput(
            error.detail, pointer=pointer, value=text, allowed=error.allowed, hint=error.hint
        ) from error
