"""The tolerations of the flavor that each pod was placed under, as they were at its grant.

Expand first, contract one release later; never edited after release. Pods that are reserved already
keep none: their objects may be in the cluster, and a launch must stay equal for every retry.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0009"
down_revision: str | None = "0010"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

Json = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    none = sa.text("'[]'")
    column = sa.Column("tolerations", Json, server_default=none, nullable=False)
    op.add_column("assignments", column)


def downgrade() -> None:
    op.drop_column("assignments", "tolerations")
