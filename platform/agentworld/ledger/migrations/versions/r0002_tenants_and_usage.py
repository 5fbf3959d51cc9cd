"""Whose a run is, and what a step used."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """What is there was everybody's, and nobody counted."""
    op.add_column("runs", sa.Column("tenant", sa.String, nullable=False, server_default="local"))
    op.create_index("ix_runs_tenant", "runs", ["tenant"])
    for name in ("input_tokens", "cached_tokens", "output_tokens"):
        op.add_column("steps", sa.Column(name, sa.Integer, nullable=False, server_default="0"))
    op.add_column(
        "steps", sa.Column("engine_seconds", sa.Float, nullable=False, server_default="0")
    )
