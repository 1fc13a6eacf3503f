"""Cohorts: inner nodes of the quota tree, whose children lend unused quota to each other."""

from gateway.db.definitions import Noun
from gateway.db.engine import Connection
from gateway.schemas.definitions import CohortSpec, CohortView
from gateway.service.catalog import Catalog, read_catalog
from gateway.service.catalog_edits import create, remove, replace, require_version
from gateway.service.context import Caller, Gateway


def list_cohorts(gateway: Gateway, caller: Caller) -> tuple[CohortView, ...]:
    """Give every cohort by name; any caller may read them."""
    del caller
    catalog = _read(gateway)
    return tuple(_view(catalog, name) for name in sorted(catalog.cohorts))


def get_cohort(gateway: Gateway, caller: Caller, name: str) -> CohortView:
    """Give one cohort; raises NotFound."""
    del caller
    return _view(_read(gateway), name)


def create_cohort(gateway: Gateway, caller: Caller, spec: CohortSpec) -> CohortView:
    """Add a cohort; refused when its parent is unknown or it would be its own ancestor."""
    return _view(create(gateway, caller, spec), spec.name)


def update_cohort(
    gateway: Gateway, caller: Caller, name: str, spec: CohortSpec, if_version: int | None = None
) -> CohortView:
    """Replace a cohort; raises StaleVersion when it is not at `if_version`."""
    return _view(replace(gateway, caller, name, spec, if_version), name)


def delete_cohort(
    gateway: Gateway, caller: Caller, name: str, if_version: int | None = None
) -> None:
    """Delete a cohort without children."""

    def users(_connection: Connection, catalog: Catalog) -> list[str]:
        inner = [f"cohort {spec.name}" for spec in catalog.cohorts.values() if spec.parent == name]
        leaves = [f"queue {spec.name}" for spec in catalog.queues.values() if spec.cohort == name]
        return [*inner, *leaves]

    remove(gateway, caller, (Noun.COHORT, name, if_version), users)


def _read(gateway: Gateway) -> Catalog:
    with gateway.database.read() as connection:
        return read_catalog(connection)


def _view(catalog: Catalog, name: str) -> CohortView:
    require_version(catalog, Noun.COHORT, name, None)
    return CohortView(
        **catalog.cohorts[name].model_dump(), version=catalog.versions[Noun.COHORT, name]
    )
