"""Creates the ledger: runs with logs and episodes, aliases, statements and signing keys."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Creates all tables."""
    _create_runs()
    _create_episodes()
    _create_steps()
    _create_partial_indexes()
    _create_aliases()
    _create_statements()


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("simulator", sa.String, nullable=False, index=True),
        sa.Column("opening", sa.Text, nullable=False),
        sa.Column("log_length", sa.Integer, nullable=False),
        sa.Column("final_weights", sa.String, index=True),
        sa.Column("signature", sa.Text),
        sa.Column("tenant", sa.String, nullable=False, index=True, server_default="local"),
        sa.Column("num_episodes", sa.Integer, nullable=False, server_default="0"),
        sa.Column("num_steps", sa.Integer, nullable=False, server_default="0"),
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


def _create_episodes() -> None:
    op.create_table(
        "episodes",
        sa.Column("key", _KEY, primary_key=True),
        sa.Column("id", sa.String, nullable=False, unique=True),
        sa.Column("run", sa.String, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("opening", sa.LargeBinary),
        sa.Column("erased", sa.Boolean, nullable=False),
        sa.Column("opening_digest", sa.String, nullable=False),
        sa.Column("num_copied", sa.Integer, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("closed", sa.String),
        sa.Column("source", sa.String),
        sa.Index("episodes_of_run", "run", "closed"),
    )


def _create_steps() -> None:
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
        sa.Column("input_tokens", sa.Integer, nullable=False, server_default="0"),
        sa.Column("cached_tokens", sa.Integer, nullable=False, server_default="0"),
        sa.Column("output_tokens", sa.Integer, nullable=False, server_default="0"),
        sa.Column("engine_seconds", sa.Float, nullable=False, server_default="0"),
    )


def _create_partial_indexes() -> None:
    for index, table, column, condition in (
        ("long_openings", "episodes", "opening_digest", "opening IS NULL"),
        ("long_actions", "steps", "action_digest", "action IS NULL"),
        ("long_observations", "steps", "observation_digest", "observation IS NULL"),
        ("episodes_of_source", "episodes", "source", "source IS NOT NULL"),
    ):
        where = sa.text(condition)
        op.create_index(index, table, [column], sqlite_where=where, postgresql_where=where)


def _create_aliases() -> None:
    op.create_table(
        "aliases",
        sa.Column("sequence", sa.Integer, primary_key=True),
        sa.Column("kind", sa.String, nullable=False, server_default="simulator"),
        sa.Column("alias", sa.String, nullable=False, index=True),
        sa.Column("simulator", sa.String, nullable=False),
        sa.Column("version", sa.Integer),
        sa.Column("artifact", sa.String),
        sa.Column("run", sa.String),
        sa.Column("set_by", sa.String, nullable=False),
        sa.Column("at", sa.String, nullable=False),
        sa.Column("canary", sa.String),
        sa.Column("canary_percent", sa.Integer),
        sa.Column("report", sa.String),
        sa.Column("gate", sa.Text),
        sa.Column("override", sa.String),
        sa.Column("request", sa.String),
        sa.Column("reason", sa.String),
        sa.Column("idempotency_key", sa.String),
        sa.Column("ended", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Index("aliases_by_key", "alias", "idempotency_key", unique=True),
    )


def _create_statements() -> None:
    op.create_table(
        "signing_keys",
        sa.Column("sequence", sa.Integer, primary_key=True),
        sa.Column("key", sa.String, nullable=False),
        sa.Column("public", sa.Text, nullable=False),
        sa.Column("since", sa.String, nullable=False),
    )
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
        sa.Index("attestations_of_kind", "kind", "run"),
    )
