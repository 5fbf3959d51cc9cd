"""The ledger's tables. They hold digests and never a name that could move to another version.

Rows are only added; the one update there is closes a run.
"""

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

METADATA = MetaData()

RUNS = Table(
    "runs",
    METADATA,
    Column("id", String, primary_key=True),
    Column("agent", String, nullable=False),
    Column("starting_weights", String, nullable=False, index=True),
    Column("purpose", String, nullable=False),
    Column("simulator", String, nullable=False, index=True),
    Column("final_weights", String, index=True),
)

EPISODES = Table(
    "episodes",
    METADATA,
    Column("id", String, primary_key=True),
    Column("run", ForeignKey("runs.id"), nullable=False),
    Column("opening", JSON, nullable=False),
    Index("episodes_of_run", "run"),
)

STEPS = Table(
    "steps",
    METADATA,
    Column("episode", ForeignKey("episodes.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("action", Text, nullable=False),
    Column("observation", Text, nullable=False),
    Column("reward", Float),
    Column("done", Boolean, nullable=False),
    Column("truncated", Boolean, nullable=False),
    Column("head", String, nullable=False),
)
