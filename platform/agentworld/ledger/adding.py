"""Appends to an open run; the run's row is locked until the transaction ends."""

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, bindparam, func, insert, select, update

from agentworld.errors import AgentworldError, Conflict, NotFound
from agentworld.ledger.episodes import closings_of
from agentworld.ledger.lost import is_lost
from agentworld.ledger.rows import (
    RunGrowth,
    change_rows,
    dropped_rows_error,
    insert_rows,
    lengthen_run,
    open_episodes,
)
from agentworld.ledger.tables import EPISODES, LOG, RUNS, STEPS
from agentworld.ledger.texts import Texts
from agentworld.ledger.writes import EpisodeClosed, Writes, episode_rows, log_entries, step_rows
from agentworld.records import log
from agentworld.records.base import Digest
from agentworld.records.episode import EpisodeStep
from agentworld.records.log import Fields
from agentworld.records.run import AgentRun, RunClosing


def add(connection: Connection, run: str, writes: Writes, texts: Texts) -> None:
    """Adds the events of a run's episodes and the log entries for them."""
    growth = RunGrowth(episodes=len(writes.opened), steps=len(writes.own_steps))
    simulators = {episode.simulator for episode in writes.opened}
    first = _extend_log(connection, run, writes.log_fields, growth, simulators)
    insert_rows(connection, EPISODES, list(episode_rows(writes.opened, texts.in_row)))
    _add_steps(connection, run, writes.steps, first + len(writes.opened), texts)
    # Erasing waits for these rows, so it does not remove the texts that they name.
    texts.keep_in_use(texts.long(writes.texts))
    for end in writes.closed:
        _close(connection, end)


def begin(connection: Connection, run: AgentRun) -> None:
    """Opens a run with the first entry of its log; raises Conflict if the run was lost."""
    if is_lost(connection, run.id):
        raise Conflict(f"run {run.id} was lost when the ledger was restored; name another")
    row = run.model_dump(include={"id", "simulator", "tenant"})
    opening = run.opening.model_dump_json()
    change_rows(connection, insert(RUNS).values(opening=opening, log_length=1, **row))
    insert_rows(connection, LOG, log_entries(run.id, 1, [log.run_opened(run)]))


def close(connection: Connection, run: str, closing: RunClosing, texts: Texts) -> None:
    """Closes a run: first its open episodes, then the run."""
    # This locks the run's row, so no other episode is opened in the meantime.
    lengthen_run(connection, run, RunGrowth())
    add(connection, run, Writes.of(closings_of(connection, run)), texts)
    _extend_log(connection, run, [log.run_closed(closing)], RunGrowth())
    change_rows(connection, update(RUNS).where(RUNS.c.id == run).values(closing.model_dump()))


def _extend_log(
    connection: Connection,
    run: str,
    entries: Sequence[Fields],
    growth: RunGrowth,
    simulators: Collection[Digest] = (),
) -> int:
    """Appends to the log of an open run and locks the run; returns the first sequence number.

    Raises NotFound, and Conflict if the run is closed or served by another simulator.
    """
    run_state = lengthen_run(connection, run, growth._replace(entries=len(entries)))
    if run_state is None:
        raise _refusal(connection, run)
    length, own = run_state
    for simulator in simulators:
        if simulator != own:
            raise Conflict(f"run {run} is served by {own} and by no other simulator ({simulator})")
    first = length - len(entries) + 1
    insert_rows(connection, LOG, log_entries(run, first, entries))
    return first


def _refusal(connection: Connection, run: str) -> AgentworldError:
    """The error for a run that accepts no more entries."""
    row = connection.execute(select(RUNS.c.final_weights).where(RUNS.c.id == run)).first()
    if row is None:
        return NotFound(
            f"run {run} is no longer in the ledger; restore the ledger, or open another run"
        )
    if is_lost(connection, run):
        return Conflict(f"run {run} lost entries when the ledger was restored; open another")
    if row.final_weights is None:
        return dropped_rows_error(RUNS, 0, 1)
    return Conflict(f"run {run} is closed; open another one")


def _add_steps(
    connection: Connection, run: str, steps: Sequence[EpisodeStep], entry: int, texts: Texts
) -> None:
    """The caller has locked the run's row, so none of its episodes is closed in the meantime."""
    if not steps:
        return
    episodes = {step.episode for step in steps}
    keys = open_episodes(connection, run, episodes)
    if len(keys) != len(episodes):
        raise Conflict(f"an episode of run {run} is closed or is another run's; reset to begin one")
    insert_rows(connection, STEPS, list(step_rows(steps, keys, entry, texts.in_row)))


def _close(connection: Connection, end: EpisodeClosed) -> None:
    """Raises Conflict if the episode has changed since the writer read it."""
    parameters = {
        "episode": end.episode,
        "owner": end.run,
        "known": end.num_steps,
        "reason": end.reason,
    }
    if connection.execute(_CLOSE, parameters).rowcount != 1:
        if connection.scalar(_FIND, parameters) is not None:
            raise dropped_rows_error(EPISODES, 0, 1)
        raise Conflict(f"episode {end.episode} is closed or has new steps; read it again")


# Created once: creating the statement takes longer than running it.
_NEWEST = select(func.coalesce(func.max(STEPS.c.number), 0)).where(
    STEPS.c.episode == EPISODES.c.key
)
_IS_UNCHANGED = (
    EPISODES.c.id == bindparam("episode"),
    EPISODES.c.run == bindparam("owner"),
    EPISODES.c.closed.is_(None),
    _NEWEST.scalar_subquery() == bindparam("known"),
)
_FIND = select(EPISODES.c.key).where(*_IS_UNCHANGED)
_CLOSE = update(EPISODES).where(*_IS_UNCHANGED).values(closed=bindparam("reason"))
