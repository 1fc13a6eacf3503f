"""Policies: plain functions chosen by name; ordering, fairness and placement."""

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
