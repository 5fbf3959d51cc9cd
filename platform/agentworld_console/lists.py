"""The lists of the console: agents, simulators, data sets, runs, episodes, and alias histories."""

from collections.abc import Collection

from agentworld.audit.questions.dataset import Reader
from agentworld.errors import InputError
from agentworld.ledger.runs import ListedRun
from agentworld.records.base import Digest
from agentworld.records.statements.alias import AliasChange
from agentworld_console import rows
from agentworld_console.datasets import DataSets
from agentworld_console.formatting import page_path
from agentworld_console.scoped_view import ScopedView
from agentworld_console.table import Cell, Listing, Part, Row

_ROWS = 50
OF_A_FILE = 2_000
"""Rows that are read at once for a whole list."""
_ROWS_WITH_AGENTS = 25
"""The same for a list that reads the registry and the evidence mirror for each row."""
_RUN = ("run", "opened", "purpose", "agent", "simulator", "tenant", "log entries", "final weights")
_RUN_AGENT_COLUMNS = (
    *("run", "registered agent", "grade", "episodes", "steps", "agent", "purpose", "opened"),
    *("simulator", "tenant"),
)


def agents(view: ScopedView, limit: int = _ROWS_WITH_AGENTS) -> Listing:
    """The newest registered agents."""

    def fetch(cursor: str) -> Part:
        first = number(cursor)
        versions = view.agents(first + limit + 1)[first:]
        next_cursor = str(first + limit) if len(versions) > limit else ""
        return Part([rows.agent_row(view, version) for version in versions[:limit]], next_cursor)

    columns = ("agent", "grade", "live success", "simulator", "run", "weights")
    return Listing("/agents", columns, fetch)


def in_use(view: ScopedView, limit: int = _ROWS_WITH_AGENTS) -> Listing:
    """The agents in use by alias; for the auditor, also who set the alias."""

    def fetch(cursor: str) -> Part:
        first = number(cursor)
        uses = view.in_use()[first:]
        agents_by_run = view.agents_by_run({use.run for use in uses[:limit]})
        lines = [rows.use_row(view, use, agents_by_run[use.run]) for use in uses[:limit]]
        return Part(lines, str(first + limit) if len(uses) > limit else "")

    by = ("by",) if view.is_whole else ()
    columns = ("agent", "in use as", "state", "grade", "since", *by, "simulator", "reasons")
    return Listing("/in-use", columns, fetch)


def datasets(view: ScopedView, limit: int = _ROWS) -> Listing:
    """Data sets by digest, because they have no other order."""
    data_sets = DataSets(view)
    entries = sorted(data_sets.readers_by_data().items())

    def fetch(cursor: str) -> Part:
        first = number(cursor)
        lines = [
            rows.dataset_row(data, readers, data_sets.manifest(data))
            for data, readers in entries[first : first + limit]
        ]
        return Part(lines, str(first + limit) if len(entries) > first + limit else "")

    columns = ("data set", "origin", "domains", "trajectories", "world models", "stages")
    unknown: dict[str, Cell] = dict.fromkeys(("origin", "domains", "trajectories"))
    return Listing("/datasets", columns, fetch, unknown)


def simulators(view: ScopedView, limit: int = _ROWS) -> Listing:
    """Simulators with runs, the newest run first; then those without runs."""

    def fetch(cursor: str) -> Part:
        names, entries = view.aliases, view.simulators(limit + 1, cursor)
        lines = [
            rows.simulator_row(e.simulator, names, e.num_runs, e.newest_run)
            for e in entries[:limit]
        ]
        if len(entries) > limit:
            return Part(lines, _as_cursor(entries[limit - 1].newest_run))
        return Part(lines + [rows.simulator_row(d, names, 0, "") for d in view.unused_simulators()])

    return Listing("/simulators", ("simulator", "aliases", "runs", "newest run"), fetch)


def runs(view: ScopedView, limit: int = _ROWS) -> Listing:
    """Runs, the newest first."""

    def fetch(cursor: str) -> Part:
        entries = view.runs(limit + 1, cursor)
        return Part([rows.run_row(view, run) for run in entries[:limit]], _last(entries, limit))

    return Listing("/runs", _RUN, fetch, _own_tenant(view))


def runs_of(
    view: ScopedView, path: str, simulators: Collection[Digest], limit: int = _ROWS_WITH_AGENTS
) -> Listing:
    """All runs of simulators, with a row for each agent that they made."""

    def fetch(cursor: str) -> Part:
        entries = view.runs(limit + 1, cursor, simulators=simulators)
        agents_by_run = view.agents_of(entries[:limit])
        lines = [
            rows.run_agent_row(view, run, agent)
            for run in entries[:limit]
            for agent in agents_by_run[run.id] or (None,)
        ]
        return Part(lines, _last(entries, limit))

    common_values = (
        {"simulator": rows.simulator_link(view, *simulators)} if len(simulators) == 1 else {}
    )
    return Listing(path, _RUN_AGENT_COLUMNS, fetch, {**_own_tenant(view), **common_values})


def simulators_of(view: ScopedView, path: str, served: dict[Digest, Reader]) -> Listing:
    """The simulators that were made from a data set, with their world models."""

    def fetch(cursor: str) -> Part:
        names, first = view.aliases, number(cursor)
        lines: list[Row] = [
            (
                rows.digest_link(simulator),
                served[simulator].world_model,
                " ".join(names.get(simulator, [])),
            )
            for simulator in list(served)[first : first + _ROWS]
        ]
        return Part(lines, str(first + _ROWS) if len(served) > first + _ROWS else "")

    return Listing(path, ("simulator", "world model", "aliases"), fetch)


def episodes(view: ScopedView, run: str, limit: int = _ROWS) -> Listing:
    """The episodes of a visible run, in the order of their opening."""

    def fetch(cursor: str) -> Part:
        entries = view.library.ledger.pages.episodes(run, limit + 1, number(cursor))
        next_cursor = str(entries[limit - 1].key) if len(entries) > limit else ""
        return Part([rows.episode_row(entry) for entry in entries[:limit]], next_cursor)

    columns = (
        *("episode", "task", "steps", "reward", "success", "ended"),
        *("copied steps", "low confidence", "texts"),
    )
    usual_values: dict[str, Cell] = {"task": None, "reward": None, "success": None}
    usual_values |= {"copied steps": 0, "low confidence": 0, "texts": "stored"}
    return Listing(page_path("runs", run, "episodes"), columns, fetch, usual_values)


def forks(view: ScopedView, episode: str, limit: int = _ROWS) -> Listing:
    """The forks and replays of a visible episode."""

    def fetch(cursor: str) -> Part:
        entries = view.forks(episode, limit + 1, number(cursor))
        next_cursor = str(entries[limit - 1].key) if len(entries) > limit else ""
        lines = (rows.fork_row(episode, entry) for entry in entries[:limit])
        return Part([row for row in lines if row], next_cursor)

    columns = ("episode", "kind", "first steps", "run", "tenant", "opened", "ended")
    return Listing(page_path("episodes", episode, "forks"), columns, fetch, _own_tenant(view))


def meanings(view: ScopedView, simulator: Digest) -> Listing:
    """The times when aliases pointed at a simulator, and who moved them."""

    def fetch(_cursor: str) -> Part:
        changes = view.alias_changes()
        return Part(
            [
                rows.meaning_row(change, _next(changes[index + 1 :], change.alias))
                for index, change in enumerate(changes)
                if simulator in (change.simulator, change.canary and change.canary.simulator)
                and not change.ended
            ]
        )

    columns = ("alias", "since", "by", "until", "share of runs", "gate overridden because")
    usual_values: dict[str, Cell] = {"share of runs": "all", "gate overridden because": ""}
    return Listing(page_path("simulators", simulator, "aliases"), columns, fetch, usual_values)


def number(cursor: str) -> int:
    """The start of a part of a list; raises InputError."""
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 16):
        raise InputError(f"no list begins at {cursor!r:.40}; begin at its start")
    return int(cursor)


def _own_tenant(view: ScopedView) -> dict[str, Cell]:
    return {"tenant": view.caller.tenant}


def _next(changes: list[AliasChange], alias: str) -> AliasChange | None:
    return next((change for change in changes if change.alias == alias), None)


def _last(entries: list[ListedRun], limit: int) -> str:
    return _as_cursor(entries[limit - 1].id) if len(entries) > limit else ""


def _as_cursor(run: str) -> str:
    """A cursor. A garbled name cannot be searched for, so a similar valid one replaces it."""
    return run.encode("utf-8", "replace").decode()
