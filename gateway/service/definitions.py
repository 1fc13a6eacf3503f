"""Applies and exports all definitions as one document: an idempotent upsert in one transaction."""

from collections.abc import Iterator, Mapping, Sequence

from gateway.db.engine import Connection
from gateway.errors import InvalidInput
from gateway.schemas.definitions import DefinitionSet, QueueSpec
from gateway.service.catalog import FIELDS, Catalog, Kind, Spec, counted, normal_form, read_catalog
from gateway.service.catalog_changes import change_catalog, check_flavors, differences
from gateway.service.catalog_checks import check_spec
from gateway.service.context import Caller, Gateway


def apply(
    gateway: Gateway, caller: Caller, document: DefinitionSet, *, dry_run: bool = False
) -> tuple[str, ...]:
    """Create what is new and replace what differs; gives one line for each change.

    Definitions that the document does not name stay. Nothing is stored if anything is refused.

    Raises:
        InvalidInput: with a pointer into the document.
        Denied: the caller is no admin.
    """
    caller.require_admin()
    lines: list[str] = []

    def edit(connection: Connection, before: Catalog) -> Catalog:
        after = _applied(connection, before, document)
        lines[:] = [step.words() for step in differences(before, after)]
        return after

    if dry_run:
        with gateway.database.read() as connection:
            edit(connection, read_catalog(connection))
    else:
        change_catalog(gateway, caller, edit)
    return tuple(lines)


def export(gateway: Gateway, caller: Caller) -> DefinitionSet:
    """Give all definitions; applying them changes nothing."""
    caller.require_admin()
    with gateway.database.read() as connection:
        catalog = read_catalog(connection)
    return DefinitionSet(
        flavors=_by_name(catalog.flavors),
        cohorts=_by_name(catalog.cohorts),
        priority_classes=_by_name(catalog.priority_classes),
        queues=_by_name(catalog.queues),
    )


def _by_name(specs: Mapping[str, Kind]) -> tuple[Kind, ...]:
    return tuple(specs[name] for name in sorted(specs))


def _applied(connection: Connection, before: Catalog, document: DefinitionSet) -> Catalog:
    placed = [(pointer, counted(spec, pointer)) for pointer, spec in _placed(document)]
    _refuse_repeats(placed)
    _refuse_two_defaults(document.queues)
    after = before
    for _, spec in placed:
        after = after.having(normal_form(spec))
    for pointer, spec in placed:
        check_spec(after, spec, pointer)
    if after.flavors != before.flavors:
        places = {spec.name: f"/flavors/{index}" for index, spec in enumerate(document.flavors)}
        check_flavors(connection, after, places)
    return after


def _placed(document: DefinitionSet) -> Iterator[tuple[str, Spec]]:
    for kind in FIELDS.values():
        for index, spec in enumerate(getattr(document, kind)):
            yield f"/{kind}/{index}", spec


def _refuse_repeats(placed: Sequence[tuple[str, Spec]]) -> None:
    seen: dict[tuple[str, str], str] = {}
    for pointer, spec in placed:
        first = seen.setdefault((pointer.split("/")[1], spec.name), pointer)
        if first != pointer:
            raise InvalidInput(
                f"{spec.name} is defined twice",
                pointer=f"{pointer}/name",
                value=spec.name,
                hint=f"the first one is at {first}; keep one",
            )


def _refuse_two_defaults(queues: Sequence[QueueSpec]) -> None:
    owner: dict[str, str] = {}
    for index, spec in enumerate(queues):
        for namespace in spec.default_for:
            first = owner.setdefault(namespace, spec.name)
            if first != spec.name:
                raise InvalidInput(
                    f"{first} and {spec.name} are both the default of {namespace}",
                    pointer=f"/queues/{index}/default_for",
                    value=namespace,
                    hint="a namespace has one default queue",
                )
