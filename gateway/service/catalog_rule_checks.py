"""What a queue's rules must satisfy by themselves: its order policy, its dated changes.

Checks only: nothing here reads or writes the database.
"""

from collections.abc import Iterator

from gateway.core.policies.ordering import ORDERING
from gateway.core.vocabulary import OrderPolicy
from gateway.errors import InvalidInput
from gateway.schemas.queue_rules import DatedChangeSpec, Quantity
from gateway.schemas.suggesting import did_you_mean
from gateway.service.catalog import Owner

Pair = tuple[str, str]
Amounts = tuple[Quantity, Quantity | None]
"""Nominal quota and lending limit."""
Place = tuple[int, DatedChangeSpec]
"""A dated change and where the author wrote it."""


def check_order(name: str, pointer: str) -> None:
    """Make sure that there is such an order policy; raises InvalidInput."""
    known = sorted({*map(str, OrderPolicy), *ORDERING})
    if name in known:
        return
    raise InvalidInput(
        f"there is no order policy {name!r}",
        pointer=pointer,
        value=name,
        allowed=tuple(known),
        hint=did_you_mean(name, known, "choose one of the allowed names"),
    )


def check_changes(spec: Owner, pointer: str) -> None:
    """Make sure that each dated change says something, and never lets lend more than is owned.

    Raises:
        InvalidInput: with the pointer to the change.
    """
    # A row that is missing lends nothing and owns nothing, until a change gives it a nominal.
    in_force = {(row.flavor, row.resource): (row.nominal, row.lending_limit) for row in spec.quotas}
    for pair, changes in _by_pair(spec):
        nominal, lending = in_force.get(pair, (0, None))
        for number, (index, change) in enumerate(changes):
            place = f"{pointer}/changes/{index}"
            _require_something(change, place)
            if number and changes[number - 1][1].at == change.at:
                raise _two_at_once(change, place)
            # What a change leaves out stays as the changes before it left it.
            nominal = nominal if change.nominal is None else change.nominal
            lending = lending if change.lending_limit is None else change.lending_limit
            _require_owned(change, (nominal, lending), place)


def _require_owned(change: DatedChangeSpec, row: Amounts, place: str) -> None:
    nominal, lending = row
    if lending is not None and int(lending) > int(nominal):
        raise _lends_too_much(change, (int(nominal), int(lending)), place)


def _by_pair(spec: Owner) -> Iterator[tuple[Pair, list[Place]]]:
    """Give each row's changes in the order in which they act."""
    found: dict[Pair, list[Place]] = {}
    for place in sorted(enumerate(spec.changes), key=lambda place: place[1].at):
        found.setdefault((place[1].flavor, place[1].resource), []).append(place)
    yield from found.items()


def _require_something(change: DatedChangeSpec, place: str) -> None:
    if any(
        value is not None
        for value in (change.nominal, change.borrowing_limit, change.lending_limit)
    ):
        return
    raise InvalidInput(
        "a dated change without a value changes nothing",
        pointer=place,
        allowed=("nominal", "borrowing_limit", "lending_limit"),
        hint="give at least one of them",
    )


def _two_at_once(change: DatedChangeSpec, place: str) -> InvalidInput:
    return InvalidInput(
        f"two changes of {change.resource} of flavor {change.flavor} at one instant",
        pointer=f"{place}/at",
        value=change.at.isoformat(),
        hint="write them as one, or move one of them",
    )


def _lends_too_much(change: DatedChangeSpec, then: tuple[int, int], place: str) -> InvalidInput:
    nominal, lending = then
    # Points at what the author wrote: a cut names the nominal only.
    field, value = (
        ("nominal", nominal) if change.lending_limit is None else ("lending_limit", lending)
    )
    return InvalidInput(
        f"from {change.at.isoformat()} on, lending_limit {lending} is above nominal {nominal}",
        pointer=f"{place}/{field}",
        value=value,
        allowed=(f"lending_limit 0 to {nominal}",),
        hint="nobody can lend more than it owns; change lending_limit at the same instant",
    )
