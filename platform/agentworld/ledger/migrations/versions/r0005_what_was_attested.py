"""What the platform signed beside the logs of runs."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Of agents that were registered before, nobody signed an edge."""
    op.create_table(
        "attestations",
        sa.Column("sequence", sa.Integer, primary_key=True),
        sa.Column("name", sa.String, nullable=False, unique=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("subject", sa.String, nullable=False, index=True),
        sa.Column("simulator", sa.String, nullable=False, index=True),
        sa.Column("run", sa.String, nullable=False, index=True),
        sa.Column("at", sa.String, nullable=False),
        sa.Column("envelope", sa.LargeBinary, nullable=False),
    )
    op.create_index("attestations_of_kind", "attestations", ["kind", "run"])
