"""An index for who held a device and when.

Expand first, contract one release later; never edited after release.
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0006"
down_revision: str | None = "0005"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

NAME = "ix_device_grants_device_id_id"


def upgrade() -> None:
    op.create_index(NAME, "device_grants", ["device_id", "id"])


def downgrade() -> None:
    op.drop_index(NAME, table_name="device_grants")
