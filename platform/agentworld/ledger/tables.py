"""The ledger's tables. They hold digests and never an alias that could move to another version.

Rows are append-only. The exceptions: a run's length, counts and closing, an episode's closing, and
texts, which retention erases and whose digests stay.

A column is evidence: a changed value contradicts a signature, and verification reports it. Columns
that no signature covers say so.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    false,
)

from agentworld.records.run import LOCAL_TENANT

METADATA = MetaData()

_NO_EVIDENCE = {"evidence": False}

# SQLite generates keys only if the type is named INTEGER.
_KEY = BigInteger().with_variant(Integer, "sqlite")

RUNS = Table(
    "runs",
    METADATA,
    Column("id", String, primary_key=True),
    Column("simulator", String, nullable=False, index=True),
    Column("tenant", String, nullable=False, index=True, server_default=LOCAL_TENANT),
    Column("opening", Text, nullable=False),
    Column("log_length", Integer, nullable=False),  # locked by the run's writer
    Column("final_weights", String, index=True),
    Column("signature", Text),
    # Verification counts again.
    Column("num_episodes", Integer, nullable=False, server_default="0", info=_NO_EVIDENCE),
    Column("num_steps", Integer, nullable=False, server_default="0", info=_NO_EVIDENCE),
)

LOG = Table(
    "log",
    METADATA,
    Column("run", ForeignKey("runs.id"), primary_key=True),
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    Column("body", LargeBinary, nullable=False),
)

EPISODES = Table(
    "episodes",
    METADATA,
    # An index of small numbers: a group of steps changes half as many pages as with ids.
    # Renumbering an episode together with its steps changes nothing.
    Column("key", _KEY, primary_key=True, info=_NO_EVIDENCE),
    Column("id", String, nullable=False, unique=True),
    Column("run", ForeignKey("runs.id"), nullable=False),
    Column("opening", LargeBinary),  # null if it is in the object store, or erased
    Column("erased", Boolean, nullable=False),  # the texts of the episode and of its steps
    Column("opening_digest", String, nullable=False),
    Column("num_copied", Integer, nullable=False),  # steps that came with a fork
    # For expiry only; the signed time is in the log's opening entry.
    Column("at", Float, nullable=False, info=_NO_EVIDENCE),
    Column("closed", String),
    # Finds the forks and replays of an episode; its opening names the source.
    Column("source", String, info=_NO_EVIDENCE),
    Index("episodes_of_run", "run", "closed"),
)

STEPS = Table(
    "steps",
    METADATA,
    Column("episode", ForeignKey("episodes.key"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("action", LargeBinary),  # null if it is in the object store, or erased
    Column("observation", LargeBinary),
    Column("action_digest", String, nullable=False),
    Column("observation_digest", String, nullable=False),
    Column("reward", Float),
    Column("done", Boolean, nullable=False),
    Column("truncated", Boolean, nullable=False),
    Column("mean_logprob", Float),
    Column("agreement", Float),
    Column("low_confidence", Boolean, nullable=False),
    # A step's usage affects no observation and is in no head.
    Column("input_tokens", Integer, nullable=False, server_default="0", info=_NO_EVIDENCE),
    Column("cached_tokens", Integer, nullable=False, server_default="0", info=_NO_EVIDENCE),
    Column("output_tokens", Integer, nullable=False, server_default="0", info=_NO_EVIDENCE),
    Column("engine_seconds", Float, nullable=False, server_default="0", info=_NO_EVIDENCE),
    Column("head", String, nullable=False),
    Column("entry", Integer, nullable=False),  # of the run's log
    Column("place", Integer, nullable=False),  # among the steps of that entry
    # Seconds since 1970, for expiry and never for order; the entry has the signed time.
    Column("at", Float, nullable=False, info=_NO_EVIDENCE),
)

CHECKPOINTS = Table(
    "checkpoints",
    METADATA,
    Column("run", ForeignKey("runs.id"), primary_key=True),
    Column("length", Integer, primary_key=True, autoincrement=False),
    Column("envelope", LargeBinary, nullable=False),
)

ALIASES = Table(
    "aliases",
    METADATA,
    # The order of an alias's changes is evidence; the keys are only numbers.
    Column("sequence", Integer, primary_key=True, info=_NO_EVIDENCE),
    Column("kind", String, nullable=False, server_default="simulator"),
    Column("alias", String, nullable=False, index=True),
    Column("simulator", String, nullable=False),
    Column("version", Integer),  # of an agent, as are its artifact and its run
    Column("artifact", String),
    Column("run", String),
    Column("set_by", String, nullable=False),
    Column("at", String, nullable=False),
    Column("canary", String),
    Column("canary_percent", Integer),  # of runs
    Column("report", String),
    Column("gate", Text),  # as it was judged
    Column("override", String),
    Column("request", String),  # the object that requested it
    Column("reason", String),
    Column("ended", Boolean, nullable=False, server_default=false()),
    # A repeated request is recorded once. It identifies the request, not the alias's target.
    Column("idempotency_key", String, info=_NO_EVIDENCE),
    Index("aliases_by_key", "alias", "idempotency_key", unique=True),
)

ATTESTATIONS = Table(
    "attestations",
    METADATA,
    # In the order of insertion; the signed time says which row is newer.
    Column("sequence", Integer, primary_key=True, info=_NO_EVIDENCE),
    Column("name", String, nullable=False, unique=True),  # of its copy in the evidence mirror
    Column("kind", String, nullable=False),
    Column("subject", String, nullable=False, index=True),
    Column("simulator", String, nullable=False, index=True),
    Column("run", String, nullable=False, index=True),
    Column("at", String, nullable=False),
    Column("envelope", LargeBinary, nullable=False),
    Index("attestations_of_kind", "kind", "run"),
)

SIGNING_KEYS = Table(
    "signing_keys",
    METADATA,
    # A key is compared with those that the auditor trusts; the time since when it signs is
    # unsigned.
    Column("sequence", Integer, primary_key=True, info=_NO_EVIDENCE),
    Column("key", String, nullable=False),
    Column("public", Text, nullable=False),
    Column("since", String, nullable=False, info=_NO_EVIDENCE),
)


_has_source = EPISODES.c.source.is_not(None)
Index(
    "episodes_of_source",
    EPISODES.c.source,
    sqlite_where=_has_source,
    postgresql_where=_has_source,
)


def _of_long(name: str, digest: Column[str], text: Column[bytes]) -> Index:
    """Finds other users of a long text when one of them is erased."""
    long = text.is_(None)
    return Index(name, digest, sqlite_where=long, postgresql_where=long)


_of_long("long_openings", EPISODES.c.opening_digest, EPISODES.c.opening)
_of_long("long_actions", STEPS.c.action_digest, STEPS.c.action)
_of_long("long_observations", STEPS.c.observation_digest, STEPS.c.observation)
