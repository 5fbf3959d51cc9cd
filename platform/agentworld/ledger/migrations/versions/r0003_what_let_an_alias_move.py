"""What let an alias move, its canary, and that it was taken away."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """What is there was set by hand, without a gate."""
    for name, kind in (
        ("canary", sa.String),
        ("percent", sa.Integer),
        ("report", sa.String),
        ("gate", sa.Text),
        ("override", sa.String),
        ("key", sa.String),
    ):
        op.add_column("aliases", sa.Column(name, kind))
    ended = sa.Column("ended", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("aliases", ended)
    op.create_index("aliases_by_key", "aliases", ["alias", "key"], unique=True)
