"""Rules of queues, and what they look at in jobs and charges.

Expand first, contract one release later; never edited after release. Charges that are there already
get their user and instants from their attempts, so that budgets count what ran before the upgrade.
"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

Json = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _number(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger(), server_default="0", nullable=False)


def _text(name: str, length: int, default: str = "") -> sa.Column[Any]:
    given = sa.text(f"'{default}'")
    return sa.Column(name, sa.String(length=length), server_default=given, nullable=False)


def _json(name: str, default: str) -> sa.Column[Any]:
    return sa.Column(name, Json, server_default=sa.text(f"'{default}'"), nullable=False)


def _columns() -> dict[str, tuple[sa.Column[Any], ...]]:
    """Give the new columns of each table; a column belongs to one statement only."""
    return {
        "queues": (
            _text("blocking", 16, "best_effort"),
            _text("when_can_borrow", 16, "borrow"),
            _json("ageing", "{}"),
            _json("caps", "{}"),
            sa.Column("budget", Json, nullable=True),
            _json("priority_classes", "[]"),
        ),
        "jobs": (
            _text("priority_class", 63),
            *map(_number, ("rank", "eligible_us", "deadline_us", "expected_seconds")),
        ),
        "class_holds": (sa.Column("blocked_since_us", sa.BigInteger(), nullable=True),),
        "charges": (
            _text("user_name", 128),
            _number("reserved_us"),
            sa.Column("closed_us", sa.BigInteger(), nullable=True),
        ),
    }


CHARGES_OF_ATTEMPTS = """
UPDATE charges SET
  reserved_us = (SELECT reserved_us FROM attempts WHERE attempts.id = charges.attempt_id),
  closed_us = (SELECT closed_us FROM attempts WHERE attempts.id = charges.attempt_id),
  user_name = (
    SELECT jobs.user_name FROM attempts JOIN jobs ON jobs.id = attempts.job_id
    WHERE attempts.id = charges.attempt_id
  )
"""
CLOSED_GPU = "closed_us IS NOT NULL AND resource = 'gpu'"


def upgrade() -> None:
    for table, columns in _columns().items():
        for column in columns:
            op.add_column(table, column)
    op.execute(CHARGES_OF_ATTEMPTS)
    op.create_index(
        "ix_charges_closed_gpu",
        "charges",
        ["queue", "closed_us"],
        postgresql_where=sa.text(CLOSED_GPU),
        sqlite_where=sa.text(CLOSED_GPU),
    )
    for create in TABLES.values():
        create()


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
    op.drop_index("ix_charges_closed_gpu", table_name="charges")
    for table, columns in _columns().items():
        for column in columns:
            op.drop_column(table, column.name)


def _create_priority_classes() -> None:
    op.create_table(
        "priority_classes",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_priority_classes"),
    )


def _create_dated_changes() -> None:
    op.create_table(
        "dated_changes",
        sa.Column("owner_kind", sa.String(length=8), nullable=False),
        sa.Column("owner", sa.String(length=63), nullable=False),
        sa.Column("flavor", sa.String(length=63), nullable=False),
        sa.Column("resource", sa.String(length=253), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("nominal", sa.BigInteger(), nullable=True),
        sa.Column("borrowing_limit", sa.BigInteger(), nullable=True),
        sa.Column("lending_limit", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "owner_kind IN ('queue', 'cohort')", name=op.f("ck_dated_changes_owner_kind")
        ),
        sa.CheckConstraint(
            "nominal >= 0 AND borrowing_limit >= 0 AND lending_limit >= 0",
            name=op.f("ck_dated_changes_not_negative"),
        ),
        sa.ForeignKeyConstraint(["flavor"], ["flavors.name"], name="fk_dated_changes_flavor"),
        sa.PrimaryKeyConstraint(
            "owner_kind", "owner", "flavor", "resource", "at_us", name="pk_dated_changes"
        ),
    )


def _create_queue_holds() -> None:
    op.create_table(
        "queue_holds",
        sa.Column("queue", sa.String(length=63), nullable=False),
        sa.Column("user_name", sa.String(length=128), nullable=False),
        sa.Column("reason", sa.String(length=32), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("decided_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("queue", "user_name", name="pk_queue_holds"),
    )


def _create_node_holds() -> None:
    op.create_table(
        "node_holds",
        sa.Column("flavor", sa.String(length=63), nullable=False),
        sa.Column("job_id", Id, nullable=False),
        sa.Column("node_ids", Json, nullable=False),
        sa.Column("since_us", sa.BigInteger(), nullable=False),
        sa.Column("xact_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("flavor", name="pk_node_holds"),
    )


def _create_user_usage() -> None:
    op.create_table(
        "user_usage",
        sa.Column("queue", sa.String(length=63), nullable=False),
        sa.Column("user_name", sa.String(length=128), nullable=False),
        sa.Column("usage", sa.BigInteger(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("xact_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("queue", "user_name", name="pk_user_usage"),
    )
    op.create_index("ix_user_usage_xact_id", "user_usage", ["xact_id"], unique=False)


TABLES = {
    "priority_classes": _create_priority_classes,
    "dated_changes": _create_dated_changes,
    "queue_holds": _create_queue_holds,
    "node_holds": _create_node_holds,
    "user_usage": _create_user_usage,
}
