"""What the commands on queues, cohorts and flavors share: quota rows, checks, read-change-write."""

import json
from typing import Annotated, Any

import typer

from gateway.errors import InvalidInput

LONGEST_NUMBER = 18
"""Digits that surely fit into 64 bits."""
Name = Annotated[str, typer.Argument(metavar="NAME", help="Its name.")]
Weight = Annotated[int | None, typer.Option(min=0, help="Weight of its share.", metavar="N")]
Quotas = Annotated[
    list[str] | None,
    typer.Option(
        "--quota",
        help="FLAVOR/RESOURCE=NOMINAL[,borrow=N][,lend=N]; again for more.",
        metavar="ROW",
    ),
]


def quota_words(quotas: Any) -> str:
    """Give quota rows in the form that --quota takes."""
    return " ".join(
        f"{quota.flavor}/{quota.resource}={quota.nominal}"
        + _limit_words("borrow", quota.borrowing_limit)
        + _limit_words("lend", quota.lending_limit)
        for quota in quotas
    )


def _limit_words(name: str, limit: int | None) -> str:
    return "" if limit is None else f",{name}={limit}"


def read_quota(text: str) -> dict[str, Any]:
    """Read FLAVOR/RESOURCE=NOMINAL[,borrow=N][,lend=N]; the resource may contain slashes."""
    row, *limits = text.split(",")
    pair, equals, nominal = row.partition("=")
    flavor, slash, resource = pair.partition("/")
    names = {"borrow": "borrowing_limit", "lend": "lending_limit"}
    quota: dict[str, Any] = {"flavor": flavor, "resource": resource, "nominal": _amount(nominal)}
    for limit in limits:
        key, _, value = limit.partition("=")
        # An unknown or repeated key becomes the empty one, which is refused below.
        name = names.pop(key, "")
        quota[name] = _amount(value)
    # Amounts are compared as text, since a nominal of 0 is an amount and not a missing one.
    is_complete = all((equals, slash, flavor, resource, *quota, *map(str, quota.values())))
    if not is_complete:
        raise _bad_quota(text)
    return quota


def read_quotas(rows: list[str] | None) -> list[dict[str, Any]] | None:
    """Read the rows of a command line; None when none was given."""
    return [read_quota(row) for row in rows] if rows else None


def _amount(text: str) -> int | str:
    # "²" is a digit that int refuses, and int refuses thousands of them; what stays text is judged
    # as a quantity (500m, 64Gi) by the server.
    is_number = text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER
    return int(text) if is_number else text


def _bad_quota(text: str) -> InvalidInput:
    return InvalidInput(
        "a quota row is FLAVOR/RESOURCE=NOMINAL[,borrow=N][,lend=N]",
        pointer="--quota",
        value=text,
        hint="for example: --quota default/gpu=16,borrow=8",
    )


VIEW_ONLY = frozenset({"version", "pending", "held", "active", "usage"})
"""Fields that an answer has and a definition has not."""


def checked(kind: str, values: dict[str, Any]) -> Any:
    """Give the definition of these values, or say what is wrong with them."""
    from pydantic import ValidationError  # noqa: PLC0415 - costs a tenth of a second

    from gateway.schemas import definitions  # noqa: PLC0415 - the same
    from gateway.schemas.complaints import CORRECT, refusal  # noqa: PLC0415 - the same

    model = getattr(definitions, kind)
    try:
        # By way of JSON, because strict models take lists for tuples and texts for enums only
        # there.
        return model.model_validate_json(json.dumps(values))
    except ValidationError as error:
        told = refusal(model, values, error)
        if told.hint == CORRECT:
            told.hint = "gateway export shows how definitions look"
        raise told from None


def update(resource: Any, kind: str, name: str, changes: dict[str, Any]) -> None:
    """Read, change what is named, and write back unless somebody was faster."""
    if not changes:
        raise typer.BadParameter("give at least one option that says what to change")
    current = resource.get(name)
    # The version read here goes along: what somebody changes in between is refused, not lost.
    spec = current.model_dump(mode="json", exclude=set(VIEW_ONLY))
    if "caps" in changes:
        # Caps are named one by one; the others stay.
        changes = {**changes, "caps": {**spec["caps"], **changes["caps"]}}
    resource.update(checked(kind, {**spec, **changes}), if_version=current.version)
