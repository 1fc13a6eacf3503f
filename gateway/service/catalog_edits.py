"""The three edits of one definition: create, replace, remove. Shared by all kinds."""

from collections.abc import Callable

from gateway.db.definitions import Noun
from gateway.db.engine import Connection
from gateway.errors import Conflict, InvalidInput, NotFound, StaleVersion
from gateway.service.catalog import Catalog, Spec, counted, normal_form, noun_of
from gateway.service.catalog_changes import change_catalog, check_flavors
from gateway.service.catalog_checks import check_spec
from gateway.service.context import Caller, Gateway


def create(gateway: Gateway, caller: Caller, spec: Spec) -> Catalog:
    """Add a definition.

    Raises:
        Conflict: one of that name exists.
        InvalidInput: it makes no sense beside the others.
    """
    noun = noun_of(spec)

    def edit(connection: Connection, before: Catalog) -> Catalog:
        if spec.name in before.specs(noun):
            raise Conflict(
                f"{noun.value} {spec.name} exists already",
                pointer="/name",
                value=spec.name,
                hint=f"change it with: gateway {noun.value} set {spec.name}",
            )
        return _checked(connection, before, spec)

    return change_catalog(gateway, caller, edit)


def replace(
    gateway: Gateway, caller: Caller, name: str, spec: Spec, if_version: int | None
) -> Catalog:
    """Replace a definition whole; the same again changes nothing.

    Raises:
        NotFound: there is none of that name.
        StaleVersion: it is not at `if_version` any more.
        InvalidInput: it makes no sense beside the others, or names another one.
    """
    noun = noun_of(spec)

    def edit(connection: Connection, before: Catalog) -> Catalog:
        require_version(before, noun, name, if_version)
        if spec.name != name:
            raise InvalidInput(
                f"a {noun.value} cannot be renamed",
                pointer="/name",
                value=spec.name,
                allowed=(name,),
                hint="create a new one and delete the old",
            )
        return _checked(connection, before, spec)

    return change_catalog(gateway, caller, edit)


def remove(
    gateway: Gateway,
    caller: Caller,
    target: tuple[Noun, str, int | None],
    users: Callable[[Connection, Catalog], list[str]],
) -> None:
    """Delete a definition (kind, name, version) that nothing uses any more.

    Raises:
        NotFound: there is none of that name.
        StaleVersion: it is not at that version any more.
        Conflict: `users` named something that uses it.
    """
    noun, name, if_version = target

    def edit(connection: Connection, before: Catalog) -> Catalog:
        require_version(before, noun, name, if_version)
        used_by = users(connection, before)
        if used_by:
            raise Conflict(
                f"{noun.value} {name} is in use by {', '.join(used_by[:5])}",
                value=name,
                hint="end or move those first",
            )
        return before.lacking(noun, name)

    change_catalog(gateway, caller, edit)


def require_version(catalog: Catalog, noun: Noun, name: str, if_version: int | None) -> None:
    """Make sure that a definition exists, at this version if one is named."""
    found = catalog.versions.get((noun, name))
    if found is None:
        raise NotFound(
            f"{noun.value} {name[:63]!r} does not exist",
            value=name[:63],
            hint=f"list them with: gateway {noun.value} ls",
        )
    if if_version is not None and found != if_version:
        raise StaleVersion(
            f"{noun.value} {name} is at version {found}, not {if_version}",
            value=if_version,
            allowed=(str(found),),
            hint="read it again and repeat the change on what it is now",
        )


def _checked(connection: Connection, before: Catalog, spec: Spec) -> Catalog:
    # Checked as written, not as sorted, so that pointers into rows are the author's.
    written = counted(spec)
    normal = normal_form(written)
    after = before.having(normal)
    check_spec(after, written)
    if noun_of(spec) is Noun.FLAVOR and before.specs(Noun.FLAVOR).get(spec.name) != normal:
        check_flavors(connection, after, {spec.name: ""})
    return after
