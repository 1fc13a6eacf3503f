"""All definitions as one value: read from the database, edited, checked, and written back.

Definitions are few, so every change works on the whole set; a single edit and `apply` are then the
same thing. Specs are kept in normal form: whole numbers, sorted rows, no repeats. Two equal
definitions are then equal values, and applying a file twice changes nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from gateway.core.vocabulary import UNLIMITED, OrderPolicy, QueueState
from gateway.db import definitions as rows
from gateway.db.definitions import Noun
from gateway.db.engine import Connection, Row
from gateway.errors import InvalidInput
from gateway.manifests.quantities import parse_quantity
from gateway.schemas.definitions import CohortSpec, FlavorSpec, Quantity, QueueSpec, QuotaSpec
from gateway.schemas.job_spec import TolerationSpec

Spec = FlavorSpec | CohortSpec | QueueSpec
Kind = TypeVar("Kind", FlavorSpec, CohortSpec, QueueSpec)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Every flavor, cohort and queue by name, with the stored versions."""

    flavors: Mapping[str, FlavorSpec] = field(default_factory=dict)
    cohorts: Mapping[str, CohortSpec] = field(default_factory=dict)
    queues: Mapping[str, QueueSpec] = field(default_factory=dict)
    versions: Mapping[tuple[Noun, str], int] = field(default_factory=dict)

    def specs(self, noun: Noun) -> Mapping[str, Spec]:
        """Give the definitions of one kind by name."""
        if noun is Noun.FLAVOR:
            return self.flavors
        return self.cohorts if noun is Noun.COHORT else self.queues

    def having(self, spec: Spec) -> "Catalog":
        """Give the catalog with this definition instead of the one of its name.

        A queue that becomes the default of a namespace takes it from the queue that was.
        """
        if isinstance(spec, FlavorSpec):
            return replace(self, flavors={**self.flavors, spec.name: spec})
        if isinstance(spec, CohortSpec):
            return replace(self, cohorts={**self.cohorts, spec.name: spec})
        others = {name: _without(queue, spec.default_for) for name, queue in self.queues.items()}
        return replace(self, queues={**others, spec.name: spec})

    def lacking(self, noun: Noun, name: str) -> "Catalog":
        """Give the catalog without one definition."""
        if noun is Noun.FLAVOR:
            return replace(self, flavors=_dropping(self.flavors, name))
        if noun is Noun.COHORT:
            return replace(self, cohorts=_dropping(self.cohorts, name))
        return replace(self, queues=_dropping(self.queues, name))


def _dropping(specs: Mapping[str, Kind], name: str) -> dict[str, Kind]:
    return {key: spec for key, spec in specs.items() if key != name}


def _without(queue: QueueSpec, namespaces: tuple[str, ...]) -> QueueSpec:
    if not set(queue.default_for) & set(namespaces):
        return queue
    kept = tuple(name for name in queue.default_for if name not in namespaces)
    return queue.model_copy(update={"default_for": kept})


def noun_of(spec: Spec) -> Noun:
    """Give the kind of a definition."""
    if isinstance(spec, FlavorSpec):
        return Noun.FLAVOR
    return Noun.COHORT if isinstance(spec, CohortSpec) else Noun.QUEUE


def read_catalog(connection: Connection) -> Catalog:
    """Give every stored definition."""
    found = {noun: rows.list_rows(connection, noun) for noun in Noun}
    cohort_quotas = rows.list_quotas(connection, Noun.COHORT)
    queue_quotas = rows.list_quotas(connection, Noun.QUEUE)
    namespaces = rows.list_namespaces(connection)
    return Catalog(
        flavors={row["name"]: _flavor(row) for row in found[Noun.FLAVOR]},
        cohorts={
            row["name"]: _cohort(row, cohort_quotas.get(row["name"], []))
            for row in found[Noun.COHORT]
        },
        queues={
            row["name"]: _queue(
                row, queue_quotas.get(row["name"], []), namespaces.get(row["name"], [])
            )
            for row in found[Noun.QUEUE]
        },
        versions={(noun, row["name"]): row["version"] for noun in Noun for row in found[noun]},
    )


def _flavor(row: Row) -> FlavorSpec:
    return FlavorSpec(
        name=row["name"],
        node_labels=dict(sorted(row["node_labels"].items())),
        tolerations=tuple(TolerationSpec(**item) for item in row["tolerations"]),
    )


def _cohort(row: Row, quotas: list[Row]) -> CohortSpec:
    return CohortSpec(
        name=row["name"], parent=row["parent"], weight=row["weight"], quotas=_quotas(quotas)
    )


def _queue(row: Row, quotas: list[Row], default_for: list[str]) -> QueueSpec:
    return QueueSpec(
        name=row["name"],
        cohort=row["cohort"],
        weight=row["weight"],
        state=QueueState(row["state"]),
        order=OrderPolicy(row["order_policy"]),
        priority_min=row["priority_min"],
        priority_max=row["priority_max"],
        namespaces=tuple(row["namespaces"]),
        default_for=tuple(default_for),
        flavors=tuple(row["flavors"]),
        quotas=_quotas(quotas),
    )


def _quotas(quotas: list[Row]) -> tuple[QuotaSpec, ...]:
    names = ("flavor", "resource", "nominal", "borrowing_limit", "lending_limit")
    return tuple(QuotaSpec(**{name: row[name] for name in names}) for row in quotas)


def counted(spec: Spec, pointer: str = "") -> Spec:
    """Give the definition with whole numbers, rows in the author's order.

    Raises:
        InvalidInput: a quantity is none, is negative or is beyond what can be counted.
    """
    if isinstance(spec, FlavorSpec):
        return spec
    quotas = tuple(
        _counted(quota, f"{pointer}/quotas/{index}") for index, quota in enumerate(spec.quotas)
    )
    return spec.model_copy(update={"quotas": quotas})


def normal_form(spec: Spec) -> Spec:
    """Give a counted definition with sorted rows and without repeats."""
    if isinstance(spec, FlavorSpec):
        return spec.model_copy(update={"node_labels": dict(sorted(spec.node_labels.items()))})
    changes: dict[str, object] = {
        "quotas": tuple(sorted(spec.quotas, key=lambda quota: (quota.flavor, quota.resource)))
    }
    if isinstance(spec, QueueSpec):
        changes["namespaces"] = tuple(sorted(set(spec.namespaces)))
        changes["default_for"] = tuple(sorted(set(spec.default_for)))
        changes["flavors"] = tuple(dict.fromkeys(spec.flavors))
    return spec.model_copy(update=changes)


def _counted(quota: QuotaSpec, pointer: str) -> QuotaSpec:
    def whole(field_name: str, value: Quantity | None) -> int | None:
        if value is None:
            return None
        return _amount(value, quota.resource, f"{pointer}/{field_name}")

    changes = {
        "nominal": whole("nominal", quota.nominal),
        "borrowing_limit": whole("borrowing_limit", quota.borrowing_limit),
        "lending_limit": whole("lending_limit", quota.lending_limit),
    }
    return quota.model_copy(update=changes)


def _amount(value: Quantity, resource: str, pointer: str) -> int:
    amount = value if isinstance(value, int) else _parsed(value, resource, pointer)
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
    parse: Callable[[str, str], int] = parse_quantity
    try:
        return parse(text, resource)
    except InvalidInput as error:
        raise InvalidInput(
            error.detail, pointer=pointer, value=text, allowed=error.allowed, hint=error.hint
        ) from error
