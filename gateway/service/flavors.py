"""Flavors: kinds of node by labels, which quota is counted for."""

from gateway.db import definitions as rows
from gateway.db.definitions import Noun
from gateway.db.engine import Connection
from gateway.schemas.definitions import CohortSpec, FlavorSpec, FlavorView, QueueSpec
from gateway.service.catalog import Catalog, read_catalog
from gateway.service.catalog_edits import create, remove, replace, require_version
from gateway.service.context import Caller, Gateway


def list_flavors(gateway: Gateway, caller: Caller) -> tuple[FlavorView, ...]:
    """Give every flavor by name; any caller may read them."""
    del caller
    catalog = _read(gateway)
    return tuple(_view(catalog, name) for name in sorted(catalog.flavors))


def get_flavor(gateway: Gateway, caller: Caller, name: str) -> FlavorView:
    """Give one flavor; raises NotFound."""
    del caller
    return _view(_read(gateway), name)


def create_flavor(gateway: Gateway, caller: Caller, spec: FlavorSpec) -> FlavorView:
    """Add a flavor; refused when a known node would belong to two."""
    return _view(create(gateway, caller, spec), spec.name)


def update_flavor(
    gateway: Gateway, caller: Caller, name: str, spec: FlavorSpec, if_version: int | None = None
) -> FlavorView:
    """Replace a flavor; raises StaleVersion when it is not at `if_version`."""
    return _view(replace(gateway, caller, name, spec, if_version), name)


def delete_flavor(
    gateway: Gateway, caller: Caller, name: str, if_version: int | None = None
) -> None:
    """Delete a flavor that no quota, queue or live reservation names."""

    def users(connection: Connection, catalog: Catalog) -> list[str]:
        owners: list[CohortSpec | QueueSpec] = [*catalog.cohorts.values()]
        owners += catalog.queues.values()
        with_quota = [
            f"a quota of {owner.name}"
            for owner in owners
            if name in {row.flavor for row in owner.quotas} | {row.flavor for row in owner.changes}
        ]
        listed = [f"queue {spec.name}" for spec in catalog.queues.values() if name in spec.flavors]
        live = {queue for queue, flavor, _ in rows.live_usage(connection) if flavor == name}
        return [*with_quota, *listed, *(f"a job of queue {queue}" for queue in sorted(live))]

    remove(gateway, caller, (Noun.FLAVOR, name, if_version), users)


def _read(gateway: Gateway) -> Catalog:
    with gateway.database.read() as connection:
        return read_catalog(connection)


def _view(catalog: Catalog, name: str) -> FlavorView:
    require_version(catalog, Noun.FLAVOR, name, None)
    return FlavorView(
        **catalog.flavors[name].model_dump(), version=catalog.versions[Noun.FLAVOR, name]
    )
