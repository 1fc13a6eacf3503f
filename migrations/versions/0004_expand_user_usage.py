"""What attempts count towards their users' decayed usage.

Expand first, contract one release later; never edited after release. Attempts that are there
already count nothing: no queue could order by usage before.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

COLUMNS = ("usage_part", "usage_entry")


def upgrade() -> None:
    for name in COLUMNS:
        op.add_column(
            "attempts", sa.Column(name, sa.BigInteger(), server_default="0", nullable=False)
        )


def downgrade() -> None:
    for name in COLUMNS:
        op.drop_column("attempts", name)
