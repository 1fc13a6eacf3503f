"""Indexes over the few rows that are asked for again and again, out of tables that keep history.

Expand first, contract one release later; never edited after release. SQLite takes a partial index
only where a query says its condition in the same words, so the one of live assignments is made
anew in the words in which it is asked for.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0005"
down_revision: str | None = "0004"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

TIMED_WAITING = "queue_timeout_seconds IS NOT NULL AND state IN ('pending', 'held')"
LIVE_NODE = "ix_assignments_live_node"


def _create(name: str, table: str, columns: list[str], conditions: tuple[str, str]) -> None:
    """Create a partial index; the conditions are PostgreSQL's and SQLite's."""
    postgresql, sqlite = map(sa.text, conditions)
    op.create_index(name, table, columns, postgresql_where=postgresql, sqlite_where=sqlite)


def _say_live_nodes(words: str) -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.drop_index(LIVE_NODE, table_name="assignments")
        _create(LIVE_NODE, "assignments", ["node_id"], (words, words))


def upgrade() -> None:
    _create(
        "ix_jobs_timed_waiting",
        "jobs",
        ["queue_timeout_seconds", "submitted_us"],
        (TIMED_WAITING, TIMED_WAITING),
    )
    _create(
        "ix_attempts_undeleted",
        "attempts",
        ["closed_us"],
        ("NOT is_object_deleted", "is_object_deleted = 0"),
    )
    _create(
        "ix_charges_live", "charges", ["queue", "flavor", "resource"], ("is_live", "is_live = 1")
    )
    _say_live_nodes("is_live = 1")


def downgrade() -> None:
    _say_live_nodes("is_live")
    op.drop_index("ix_charges_live", table_name="charges")
    op.drop_index("ix_attempts_undeleted", table_name="attempts")
    op.drop_index("ix_jobs_timed_waiting", table_name="jobs")
