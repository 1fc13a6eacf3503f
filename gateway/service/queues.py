"""Queues: who may wait there, with which quota; pausing; counts and usage."""

from collections.abc import Iterable
from functools import partial
from itertools import chain

from gateway.core.queues.dated import definitions_at
from gateway.core.queues.tree import Pair, QuotaTree
from gateway.core.vocabulary import UNLIMITED, JobState, QueueState
from gateway.db import definitions as rows
from gateway.db.definition_reading import read_definitions
from gateway.db.definitions import Noun
from gateway.db.engine import Connection
from gateway.schemas.definitions import QueueSpec, QueueView, UsageRow
from gateway.service.catalog import Catalog, read_catalog
from gateway.service.catalog_changes import change_catalog
from gateway.service.catalog_edits import create, remove, replace, require_version
from gateway.service.context import EVERY_NAMESPACE, Caller, Gateway


def list_queues(gateway: Gateway, caller: Caller) -> tuple[QueueView, ...]:
    """Give every queue by name with counts and usage.

    Any caller may read them, but sees no namespace that is not its own.
    """
    with gateway.database.read() as connection:
        views = _Views(connection, read_catalog(connection), gateway.clock.now_us())
    return tuple(views.of(name, caller) for name in sorted(views.catalog.queues))


def get_queue(gateway: Gateway, caller: Caller, name: str) -> QueueView:
    """Give one queue with counts and usage; raises NotFound."""
    with gateway.database.read() as connection:
        catalog = read_catalog(connection)
        require_version(catalog, Noun.QUEUE, name, None)
        views = _Views(connection, catalog, gateway.clock.now_us())
    return views.of(name, caller)


def create_queue(gateway: Gateway, caller: Caller, spec: QueueSpec) -> QueueView:
    """Add a queue; refused when it names an unknown cohort or flavor."""
    create(gateway, caller, spec)
    return get_queue(gateway, caller, spec.name)


def update_queue(
    gateway: Gateway, caller: Caller, name: str, spec: QueueSpec, if_version: int | None = None
) -> QueueView:
    """Replace a queue; raises StaleVersion when it is not at `if_version`."""
    replace(gateway, caller, name, spec, if_version)
    return get_queue(gateway, caller, name)


def delete_queue(
    gateway: Gateway, caller: Caller, name: str, if_version: int | None = None
) -> None:
    """Delete a queue without live jobs."""

    def users(connection: Connection, _catalog: Catalog) -> list[str]:
        # Ended jobs keep the queue's name as plain text, and history stays readable without it.
        live = sum(rows.count_jobs(connection).get(name, {}).values())
        return [f"{live} live job{'s' if live > 1 else ''}"] if live else []

    remove(gateway, caller, (Noun.QUEUE, name, if_version), users)


def pause_queue(gateway: Gateway, caller: Caller, name: str) -> QueueView:
    """Admit nothing new from this queue; what runs goes on. Twice is fine."""
    return _set_state(gateway, caller, name, QueueState.PAUSED)


def resume_queue(gateway: Gateway, caller: Caller, name: str) -> QueueView:
    """Admit from this queue again. Twice is fine."""
    return _set_state(gateway, caller, name, QueueState.OPEN)


def _set_state(gateway: Gateway, caller: Caller, name: str, state: QueueState) -> QueueView:
    def edit(_connection: Connection, before: Catalog) -> Catalog:
        require_version(before, Noun.QUEUE, name, None)
        return before.having(before.queues[name].model_copy(update={"state": state}))

    change_catalog(gateway, caller, edit)
    return get_queue(gateway, caller, name)


class _Views:
    """Builds queue views of one moment."""

    def __init__(self, connection: Connection, catalog: Catalog, now_us: int) -> None:
        self.catalog = catalog
        self._counts = rows.count_jobs(connection)
        self._usage = rows.live_usage(connection)
        self._tree = _tree_at(connection, now_us)
        nodes = (*self._tree.cohorts.values(), *self._tree.queues.values())
        self._pairs = set(chain.from_iterable(node.balances for node in nodes))
        # Charged here and not read from the engine: any replica answers, led or not.
        for (queue, flavor, resource), amount in self._usage.items():
            if queue in self._tree.queues:
                self._tree.charge(queue, (flavor, resource), amount)

    def of(self, name: str, caller: Caller) -> QueueView:
        """Give one queue's view, with the namespaces that concern the caller."""
        spec, counts = self.catalog.queues[name], self._counts.get(name, {})
        fields = spec.model_dump()
        for field in ("namespaces", "default_for"):
            # Names of tenants are nobody else's business, though the queue is shared.
            fields[field] = _known_to(caller, fields[field])
        return QueueView(
            **fields,
            version=self.catalog.versions[Noun.QUEUE, name],
            pending=counts.get(JobState.PENDING, 0),
            held=counts.get(JobState.HELD, 0),
            active=rows.active_of(counts),
            usage=tuple(self._rows(name)),
        )

    def _rows(self, name: str) -> list[UsageRow]:
        """Give every pair that is counted for this queue or in use by it."""
        used = {key[1:]: amount for key, amount in self._usage.items() if key[0] == name}
        counted = filter(partial(self._tree.is_counted, name), self._pairs)
        return [self._row(name, pair, used.get(pair, 0)) for pair in sorted({*counted, *used})]

    def _row(self, name: str, pair: Pair, used: int) -> UsageRow:
        nominal = self._tree.queues[name].nominal(pair)
        is_counted = self._tree.is_counted(name, pair)
        return UsageRow(
            flavor=pair[0],
            resource=pair[1],
            nominal=nominal,
            used=used,
            borrowed=max(0, used - nominal) if is_counted else 0,
            available=self._tree.available(name, pair) if is_counted else UNLIMITED,
        )


def _known_to(caller: Caller, namespaces: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in namespaces if name == EVERY_NAMESPACE or caller.may_know(name))


def _tree_at(connection: Connection, now_us: int) -> QuotaTree:
    """Give the quota tree as it stands at an instant, with nothing charged."""
    found = read_definitions(connection)
    return QuotaTree(*definitions_at(found.queues, found.cohorts, now_us))
