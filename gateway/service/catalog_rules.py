"""Rules of queues between their stored rows and what an admin wrote, both ways.

Times become UTC, a budget's window seconds, and no cap is written as nothing: two rules that mean
the same are then equal, stored and told.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from gateway.core.vocabulary import Blocking, WhenCanBorrow
from gateway.db.engine import Row
from gateway.errors import InvalidInput
from gateway.schemas.base import instant, micros_of
from gateway.schemas.definitions import QueueSpec
from gateway.schemas.queue_rules import AgeingSpec, BudgetSpec, CapsSpec, DatedChangeSpec

HOUR_SECONDS = 3600
DAY_SECONDS = 86_400


def rules_of(row: Row) -> dict[str, Any]:
    """Give the rules of a stored queue, as fields of its definition."""
    return {
        # A text and no enum: a policy that was added by name may be missing in this process.
        "order": row["order_policy"],
        "ageing": AgeingSpec(**row["ageing"]),
        "blocking": Blocking(row["blocking"]),
        "when_can_borrow": WhenCanBorrow(row["when_can_borrow"]),
        "caps": CapsSpec(**row["caps"]),
        "budget": _budget_of(row["budget"]),
        "priority_classes": tuple(row["priority_classes"]),
    }


def rule_columns(spec: QueueSpec) -> dict[str, Any]:
    """Give the columns that keep a queue's rules; the definition is in normal form."""
    return {
        "order_policy": spec.order,
        "ageing": spec.ageing.model_dump(),
        "blocking": spec.blocking.value,
        "when_can_borrow": spec.when_can_borrow.value,
        # Only those that are set, which is also how a submit sees that there is nothing to count.
        "caps": spec.caps.model_dump(exclude_none=True),
        "budget": None if spec.budget is None else _budget_column(spec.budget),
        "priority_classes": list(spec.priority_classes),
    }


def normal_rules(spec: QueueSpec) -> dict[str, object]:
    """Give a queue's rules in normal form, as changes of its definition."""
    return {
        "budget": None if spec.budget is None else _normal_budget(spec.budget),
        "priority_classes": tuple(sorted(set(spec.priority_classes))),
    }


def normal_changes(changes: Iterable[DatedChangeSpec]) -> tuple[DatedChangeSpec, ...]:
    """Give dated changes by instant, in UTC."""
    # One zone for all, or the same instant written twice would be a change to `apply`.
    in_utc = (change.model_copy(update={"at": _utc(change.at)}) for change in changes)
    return tuple(sorted(in_utc, key=lambda change: (change.at, change.flavor, change.resource)))


def changes_of(rows: Iterable[Row]) -> tuple[DatedChangeSpec, ...]:
    """Give the dated changes of stored rows."""
    names = DatedChangeSpec.model_fields.keys() - {"at"}
    return tuple(
        DatedChangeSpec(at=instant(row["at_us"]), **{name: row[name] for name in names})
        for row in rows
    )


def change_rows(changes: Iterable[DatedChangeSpec]) -> list[dict[str, Any]]:
    """Give the rows that keep dated changes."""
    return [
        {"at_us": micros_of(change.at), **change.model_dump(exclude={"at"})} for change in changes
    ]


def require_window(budget: BudgetSpec, pointer: str) -> None:
    """Make sure that a budget says once how long its window is; raises InvalidInput."""
    given = [budget.window_days, budget.window_seconds]
    if given.count(None) == 1:
        return
    raise InvalidInput(
        "a budget has its window either in days or in seconds",
        pointer=f"{pointer}/window_days",
        value=budget.window_days,
        hint="keep one of them" if None not in given else "give for example window_days: 7",
    )


def window_seconds(budget: BudgetSpec) -> int:
    """Give the length of a budget's window."""
    return budget.window_seconds or (budget.window_days or 0) * DAY_SECONDS


def _utc(at: datetime) -> datetime:
    return at.astimezone(UTC)


def _normal_budget(budget: BudgetSpec) -> BudgetSpec:
    return _budget_of(_budget_column(budget)) or budget


def _budget_column(budget: BudgetSpec) -> dict[str, int]:
    return {
        # Whole seconds: hours may be written with a fraction, and sums of those would drift.
        "gpu_seconds": round(budget.gpu_hours * HOUR_SECONDS),
        "window_seconds": window_seconds(budget),
        "starts_us": 0 if budget.starts_at is None else micros_of(budget.starts_at),
    }


def _budget_of(stored: Mapping[str, int] | None) -> BudgetSpec | None:
    if stored is None:
        return None
    # Whole where it can be: 24.0 would be told of a budget that somebody wrote as 24.
    hours, rest = divmod(stored["gpu_seconds"], HOUR_SECONDS)
    return BudgetSpec(
        gpu_hours=hours + rest / HOUR_SECONDS if rest else hours,
        window_seconds=stored["window_seconds"],
        starts_at=instant(stored["starts_us"]) if stored["starts_us"] else None,
    )
