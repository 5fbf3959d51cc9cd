"""A run's row counts the steps that its simulator answered, without those that forks copied."""

from alembic import op

revision = "0007"
down_revision = "0006"

_SUBTRACT = (
    "UPDATE runs SET num_steps = num_steps -"
    " (SELECT sum(copied) FROM episodes WHERE episodes.run = runs.id)"
    " WHERE id IN (SELECT run FROM episodes WHERE copied > 0)"
)


def upgrade() -> None:
    """Takes away once what was counted of forks."""
    op.execute(_SUBTRACT)
