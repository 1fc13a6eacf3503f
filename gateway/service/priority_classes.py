"""Priority classes: named levels that count across queues, unlike a job's own number."""

from gateway.db import definitions as rows
from gateway.db.definitions import Noun
from gateway.db.engine import Connection
from gateway.schemas.definitions import PriorityClassSpec, PriorityClassView
from gateway.service.catalog import Catalog, read_catalog
from gateway.service.catalog_edits import create, remove, replace, require_version
from gateway.service.context import Caller, Gateway


def list_priority_classes(gateway: Gateway, caller: Caller) -> tuple[PriorityClassView, ...]:
    """Give every priority class by name; any caller may read them."""
    del caller
    catalog = _read(gateway)
    return tuple(_view(catalog, name) for name in sorted(catalog.priority_classes))


def get_priority_class(gateway: Gateway, caller: Caller, name: str) -> PriorityClassView:
    """Give one priority class; raises NotFound."""
    del caller
    return _view(_read(gateway), name)


def create_priority_class(
    gateway: Gateway, caller: Caller, spec: PriorityClassSpec
) -> PriorityClassView:
    """Add a priority class; queues have to allow it before a job may have it."""
    return _view(create(gateway, caller, spec), spec.name)


def update_priority_class(
    gateway: Gateway,
    caller: Caller,
    name: str,
    spec: PriorityClassSpec,
    if_version: int | None = None,
) -> PriorityClassView:
    """Replace a priority class, for jobs that wait already too.

    Raises StaleVersion when it is not at `if_version`.
    """
    return _view(replace(gateway, caller, name, spec, if_version), name)


def delete_priority_class(
    gateway: Gateway, caller: Caller, name: str, if_version: int | None = None
) -> None:
    """Delete a priority class that no queue allows and no live job has."""

    # Both, for a job keeps its class when its queue stops allowing it.
    def users(connection: Connection, catalog: Catalog) -> list[str]:
        queues = catalog.queues.values()
        allowing = [f"queue {spec.name}" for spec in queues if name in spec.priority_classes]
        live = rows.count_classed(connection, name)
        return [*allowing, *([f"{live} live job{'s' if live > 1 else ''}"] if live else [])]

    remove(gateway, caller, (Noun.PRIORITY_CLASS, name, if_version), users)


def _read(gateway: Gateway) -> Catalog:
    with gateway.database.read() as connection:
        return read_catalog(connection)


def _view(catalog: Catalog, name: str) -> PriorityClassView:
    require_version(catalog, Noun.PRIORITY_CLASS, name, None)
    return PriorityClassView(
        **catalog.priority_classes[name].model_dump(),
        version=catalog.versions[Noun.PRIORITY_CLASS, name],
    )
