"""Writes the difference between two catalogs: rows, versions, events, in one transaction."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.db import definitions as rows
from gateway.db.definitions import Noun
from gateway.db.engine import Connection, Writer
from gateway.db.events import NewEvent, append_event
from gateway.db.state import bump_generation
from gateway.schemas.definitions import CohortSpec, FlavorSpec, PriorityClassSpec, QueueSpec
from gateway.service.catalog import Catalog, Spec, read_catalog
from gateway.service.catalog_checks import refuse_shared_nodes
from gateway.service.catalog_rules import change_rows, rule_columns
from gateway.service.context import Caller, Feasible, Gateway

Edit = Callable[[Connection, Catalog], Catalog]
"""Gives the catalog that is to be, having refused what may not be."""


PAST = {"create": "created", "change": "changed", "delete": "deleted"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One definition that differs: created (no before), deleted (no after) or changed."""

    noun: Noun
    name: str
    before: Spec | None
    after: Spec | None

    @property
    def kind(self) -> str:
        """Stable word for the event."""
        return f"{self.noun.value.replace('-', '_')}_{PAST[self._verb]}"

    @property
    def _verb(self) -> str:
        if self.before is None:
            return "create"
        return "delete" if self.after is None else "change"

    def words(self) -> str:
        """Give the difference in one line."""
        old, new = _plain(self.before), _plain(self.after)
        parts = [
            f"{key} {old[key]} -> {value}"
            for key, value in new.items()
            if old.get(key, value) != value
        ]
        return f"{self.noun.value} {self.name}: {', '.join(parts) or self._verb}"


def change_catalog(gateway: Gateway, caller: Caller, edit: Edit) -> Catalog:
    """Edit the definitions in one transaction, as an admin; gives what they are then.

    Raises:
        Denied: the caller is no admin.
    """
    caller.require_admin()
    at_us = gateway.clock.now_us()

    def work(writer: Writer) -> Catalog:
        # First, for its row lock: definition writers come in one by one.
        bump_generation(writer)
        before = read_catalog(writer.connection)
        after = edit(writer.connection, before)
        for step in differences(before, after):
            _write(writer, step)
            append_event(writer, _event(step, caller, at_us))
        # Read back, so that the answer has the versions that the next If-Match will need.
        return read_catalog(writer.connection)

    changed = gateway.database.run_write(work)
    # Submissions are judged by this view, which must not lag behind what an admin was told.
    gateway.mirror.feasible = Feasible()
    gateway.wake.hurry()
    return changed


def check_flavors(connection: Connection, catalog: Catalog, places: Mapping[str, str]) -> None:
    """Refuse a catalog in which a known node belongs to two flavors; raises InvalidInput.

    `places` has the pointers of those that are written now, by name.
    """
    refuse_shared_nodes(catalog.flavors, rows.node_labels(connection), places)


def differences(before: Catalog, after: Catalog) -> list[Step]:
    """Give the steps from one catalog to another, in an order that foreign keys allow."""
    steps = [step for noun in Noun for step in _of_noun(noun, before, after)]
    gone = [step for step in steps if step.after is None]
    kept = [step for step in steps if step.after is not None]
    # A queue goes before its cohort, a cohort before its parent, a flavor when nothing names it.
    return [*kept, *reversed(gone)]


def _of_noun(noun: Noun, before: Catalog, after: Catalog) -> Iterator[Step]:
    old, new = before.specs(noun), after.specs(noun)
    names = _parents_first(after) if noun is Noun.COHORT else sorted(new)
    for name in [*names, *sorted(set(old) - set(new))]:
        # Applying a file twice is no change, raises no version and leaves no event.
        if old.get(name) != new.get(name):
            yield Step(noun=noun, name=name, before=old.get(name), after=new.get(name))


def _parents_first(catalog: Catalog) -> list[str]:
    ordered: dict[str, None] = {}

    def visit(name: str | None) -> None:
        if name is None or name in ordered:
            return
        # A child that is written first would point at a parent that is not there yet.
        visit(catalog.cohorts[name].parent)
        ordered[name] = None

    for name in sorted(catalog.cohorts):
        visit(name)
    return list(ordered)


def _write(writer: Writer, step: Step) -> None:
    if step.after is None:
        rows.delete_row(writer, step.noun, step.name)
        return
    values = _values(step.after)
    if step.before is None:
        rows.insert_row(writer, step.noun, {"name": step.name, **values})
    else:
        rows.update_row(writer, step.noun, step.name, values)
    _write_lists(writer, step.noun, step.after)
    if step.noun is Noun.PRIORITY_CLASS:
        rows.rerank_jobs(writer, step.name, values["value"])


def _write_lists(writer: Writer, noun: Noun, spec: Spec) -> None:
    """Write what a definition keeps in rows of their own."""
    if isinstance(spec, CohortSpec | QueueSpec):
        quotas = [quota.model_dump() for quota in spec.quotas]
        rows.replace_quotas(writer, noun, spec.name, quotas)
        rows.replace_changes(writer, noun, spec.name, change_rows(spec.changes))
    if isinstance(spec, QueueSpec):
        rows.replace_namespaces(writer, spec.name, spec.default_for)


def _values(spec: Spec) -> dict[str, Any]:
    if isinstance(spec, FlavorSpec):
        tolerations = [item.model_dump() for item in spec.tolerations]
        return {"node_labels": dict(spec.node_labels), "tolerations": tolerations}
    if isinstance(spec, CohortSpec):
        return {"parent": spec.parent, "weight": spec.weight}
    if isinstance(spec, PriorityClassSpec):
        return {"value": spec.value}
    return {
        "cohort": spec.cohort,
        "weight": spec.weight,
        "state": spec.state.value,
        "priority_min": spec.priority_min,
        "priority_max": spec.priority_max,
        "namespaces": list(spec.namespaces),
        "flavors": list(spec.flavors),
        **rule_columns(spec),
    }


def _event(step: Step, caller: Caller, at_us: int) -> NewEvent:
    return NewEvent(
        at_us=at_us,
        kind=step.kind,
        actor=caller.name,
        detail=step.words(),
        data={
            "name": step.name,
            "before": _plain(step.before) or None,
            "after": _plain(step.after) or None,
        },
    )


def _plain(spec: Spec | None) -> dict[str, Any]:
    """Give a definition as JSON; empty for none."""
    return {} if spec is None else spec.model_dump(mode="json")
