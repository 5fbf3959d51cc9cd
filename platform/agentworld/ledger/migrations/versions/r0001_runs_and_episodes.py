"""Runs with their logs, checkpoints and episodes, and the history of aliases."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Makes the first tables."""
    _make_runs()
    _make_episodes()
    for table, name in (("episodes", "opening"), ("steps", "action"), ("steps", "observation")):
        long, columns = sa.text(f"{name} IS NULL"), [f"{name}_digest"]
        op.create_index(f"long_{name}s", table, columns, sqlite_where=long, postgresql_where=long)
    op.create_table(
        "aliases",
        sa.Column("sequence", sa.Integer, primary_key=True),
        sa.Column("alias", sa.String, nullable=False, index=True),
        sa.Column("simulator", sa.String, nullable=False),
        sa.Column("set_by", sa.String, nullable=False),
        sa.Column("at", sa.String, nullable=False),
    )


def _make_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("simulator", sa.String, nullable=False, index=True),
        sa.Column("opening", sa.Text, nullable=False),
        sa.Column("length", sa.Integer, nullable=False),
        sa.Column("final_weights", sa.String, index=True),
        sa.Column("signature", sa.Text),
    )
    op.create_table(
        "log",
        sa.Column("run", sa.String, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "checkpoints",
        sa.Column("run", sa.String, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("length", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("envelope", sa.LargeBinary, nullable=False),
    )


def _make_episodes() -> None:
    op.create_table(
        "episodes",
        sa.Column("key", _KEY, primary_key=True),
        sa.Column("id", sa.String, nullable=False, unique=True),
        sa.Column("run", sa.String, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("opening", sa.LargeBinary),
        sa.Column("erased", sa.Boolean, nullable=False),
        sa.Column("opening_digest", sa.String, nullable=False),
        sa.Column("copied", sa.Integer, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("closed", sa.String),
        sa.Index("episodes_of_run", "run", "closed"),
    )
    op.create_table(
        "steps",
        sa.Column("episode", _KEY, sa.ForeignKey("episodes.key"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("action", sa.LargeBinary),
        sa.Column("observation", sa.LargeBinary),
        sa.Column("action_digest", sa.String, nullable=False),
        sa.Column("observation_digest", sa.String, nullable=False),
        sa.Column("reward", sa.Float),
        sa.Column("done", sa.Boolean, nullable=False),
        sa.Column("truncated", sa.Boolean, nullable=False),
        sa.Column("mean_logprob", sa.Float),
        sa.Column("agreement", sa.Float),
        sa.Column("low_confidence", sa.Boolean, nullable=False),
        sa.Column("head", sa.String, nullable=False),
        sa.Column("entry", sa.Integer, nullable=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
