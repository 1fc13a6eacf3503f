"""Policies: plain functions chosen by name; ordering, fairness and placement.

Each kind keeps its own table. Others may add to it by name before the first cycle; where theirs
are found is not known here.
"""

from collections.abc import Mapping
from typing import TypeVar

from gateway.errors import InvalidInput

Policy = TypeVar("Policy")


def named(kind: str, table: Mapping[str, Policy], name: str) -> Policy:
    """Look a policy up; raises InvalidInput with the known names."""
    if name not in table:
        raise InvalidInput(
            f"unknown {kind} policy {name!r}",
            pointer=f"/policies/{kind}",
            value=name,
            allowed=tuple(sorted(table)),
            hint=f"choose one of: {', '.join(sorted(table))}",
        )
    return table[name]


def register(kind: str, table: dict[str, Policy], name: str, policy: Policy) -> None:
    """Add a policy under a new name; adding the same one again changes nothing.

    Raises:
        InvalidInput: the name is taken by another policy, or the policy cannot be called.
    """
    if not callable(policy):
        raise InvalidInput(
            f"{kind} policy {name!r} is no function",
            pointer=f"/policies/{kind}",
            value=repr(policy),
            hint="name a function or a class",
        )
    if table.setdefault(name, policy) is not policy:
        raise InvalidInput(
            f"there is another {kind} policy {name!r} already",
            pointer=f"/policies/{kind}",
            value=name,
            hint="choose a name of your own",
        )
