"""How many episodes and steps a run has, in its row: nobody counts them to show a run."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_COUNT = (
    "UPDATE runs SET"
    " num_episodes = (SELECT count(*) FROM episodes WHERE episodes.run = runs.id),"
    " num_steps = (SELECT count(*) FROM steps JOIN episodes ON episodes.key = steps.episode"
    " WHERE episodes.run = runs.id)"
)


def upgrade() -> None:
    """Counts once what is there."""
    for name in ("num_episodes", "num_steps"):
        op.add_column("runs", sa.Column(name, sa.Integer, nullable=False, server_default="0"))
    op.execute(_COUNT)
