"""Which keys signed, where no folder of the service tells."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """A folder's keys stay where they are."""
    op.create_table(
        "signing_keys",
        sa.Column("sequence", sa.Integer, primary_key=True),
        sa.Column("key", sa.String, nullable=False),
        sa.Column("public", sa.Text, nullable=False),
        sa.Column("since", sa.String, nullable=False),
    )
