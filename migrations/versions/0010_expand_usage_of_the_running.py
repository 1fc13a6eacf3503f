"""As of when the usage of a gang that still runs was counted.

Expand first, contract one release later; never edited after release.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0010"
down_revision: str | None = "0006"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("attempts", sa.Column("usage_at_us", sa.BigInteger()))


def downgrade() -> None:
    op.drop_column("attempts", "usage_at_us")
