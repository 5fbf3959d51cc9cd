"""The lists of the console: of agents, simulators, runs, episodes, and of what names meant."""

from datetime import UTC, datetime

from agentworld.errors import InputError
from agentworld.ledger.pages import ListedEpisode, ListedRun
from agentworld.lineage.base import Version, VersionRef
from agentworld.records.alias import AliasChange
from agentworld.records.base import Digest
from agentworld_console.sight import Sight
from agentworld_console.table import Cell, Link, Listing, Part, Row
from agentworld_console.words import at, brief, shortened

_ROWS = 50
OF_A_FILE = 2_000
"""Rows that are read at once for a list as a whole."""
_ROWS_WITH_AGENTS = 25
"""Of a list that asks the registry for each of its rows."""

_RUN = ("run", "opened", "purpose", "agent", "simulator", "tenant", "log entries", "made")


def agents(sight: Sight, limit: int = _ROWS) -> Listing:
    """The newest registered ones."""

    def fetch(cursor: str) -> Part:
        first = _number(cursor)
        found = sight.agents(first + limit + 1)[first:]
        more = str(first + limit) if len(found) > limit else ""
        return Part([_agent_row(each) for each in found[:limit]], more)

    return Listing("/agents", ("agent", "weights", "run", "simulator as told"), fetch)


def simulators(sight: Sight, limit: int = _ROWS) -> Listing:
    """Those that served runs, by their newest one; then those that only were pinned."""

    def fetch(cursor: str) -> Part:
        first, names = _number(cursor), sight.aliases()
        found = sight.simulators(limit + 1, offset=first)
        rows = [_simulator_row(e.simulator, names, e.num_runs, e.newest_run) for e in found[:limit]]
        if len(found) > limit:
            return Part(rows, str(first + limit))
        return Part(rows + [_simulator_row(d, names, 0, "") for d in sight.unused_simulators()])

    return Listing("/simulators", ("simulator", "means it now", "runs", "newest run"), fetch)


def runs(sight: Sight, limit: int = _ROWS) -> Listing:
    """The newest first."""

    def fetch(cursor: str) -> Part:
        found = sight.runs(limit + 1, before=cursor)
        return Part([_run_row(run) for run in found[:limit]], _last(found, limit))

    return Listing("/runs", _RUN, fetch)


def runs_of(sight: Sight, simulator: Digest, limit: int = _ROWS_WITH_AGENTS) -> Listing:
    """All that a simulator served, and the agents that came of it."""

    def fetch(cursor: str) -> Part:
        found = sight.runs(limit + 1, before=cursor, simulator=simulator)
        made = sight.agents_of(found[:limit])
        rows = [_touched_row(run, made[run.id]) for run in found[:limit]]
        return Part(rows, _last(found, limit))

    columns = ("run", "opened", "purpose", "agent", "tenant", "log entries", "registered as")
    return Listing(at("simulators", simulator, "runs"), columns, fetch)


def episodes(sight: Sight, run: str, limit: int = _ROWS) -> Listing:
    """Of a run that is seen, in the order of their opening."""

    def fetch(cursor: str) -> Part:
        found = sight.library.ledger.pages.episodes(run, limit + 1, _number(cursor))
        more = str(found[limit - 1].key) if len(found) > limit else ""
        return Part([_episode_row(each) for each in found[:limit]], more)

    columns = ("episode", "steps", "of a fork", "not sure", "reward", "ended", "texts")
    return Listing(at("runs", run, "episodes"), columns, fetch)


def meanings(sight: Sight, simulator: Digest) -> Listing:
    """When names meant a simulator, who said so, and until when."""

    def fetch(_cursor: str) -> Part:
        changes = sight.alias_changes()
        return Part(
            [
                _meaning_row(change, _next(changes[place + 1 :], change.alias))
                for place, change in enumerate(changes)
                if simulator in (change.simulator, change.canary and change.canary.simulator)
                and not change.ended
            ]
        )

    columns = ("alias", "since", "by", "until", "share of runs", "why past its gate")
    return Listing(at("simulators", simulator, "aliases"), columns, fetch)


def run_link(run: str) -> Link:
    """To a run's page."""
    return Link(shortened(run), at("runs", run), run)


def simulator_link(digest: Digest) -> Link:
    """To a simulator's page."""
    return Link(brief(digest), at("simulators", digest), digest)


def agent_link(ref: VersionRef) -> Link:
    """To an agent's page."""
    return Link(str(ref), at("agents", str(ref)))


def opened(name: str) -> str:
    """When what has this name began, where the name tells it: a UUID of version 7 does."""
    try:
        milliseconds = int(name[:12], 16)
        if len(name) != 32 or name[12] != "7":
            return ""
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return ""


def _agent_row(agent: Version) -> Row:
    artifact, run, simulator = (agent.tags[name] for name in ("artifact", "run", "simulator"))
    weights = Link(brief(artifact), "", artifact)
    return agent_link(agent.ref), weights, run_link(run), simulator_link(simulator)


def _simulator_row(digest: Digest, names: dict[Digest, list[str]], num: int, newest: str) -> Row:
    told = " ".join(names.get(digest, []))
    return simulator_link(digest), told, num, run_link(newest) if newest else "served none"


def _run_row(run: ListedRun) -> Row:
    made = Link(brief(run.final_weights), "", run.final_weights) if run.final_weights else "open"
    told = run.opening.purpose, run.opening.agent, simulator_link(run.simulator)
    return run_link(run.id), opened(run.id), *told, run.tenant, run.log_length, made


def _touched_row(run: ListedRun, made: list[VersionRef]) -> Row:
    told = run.opening.purpose, run.opening.agent, run.tenant, run.log_length
    return run_link(run.id), opened(run.id), *told, _registered(run, made)


def _registered(run: ListedRun, made: list[VersionRef]) -> Cell:
    match made:
        case []:
            return "nothing" if run.final_weights else "open"
        case [only]:
            return agent_link(only)
    return ", ".join(map(str, made))


def _episode_row(episode: ListedEpisode) -> Row:
    link = Link(episode.id, at("episodes", episode.id))
    counts = episode.num_steps, episode.num_copied, episode.num_low
    texts = "erased" if episode.erased else "kept"
    return link, *counts, episode.reward, episode.closed or "open", texts


def _meaning_row(change: AliasChange, after: AliasChange | None) -> Row:
    percent = change.canary.percent if change.canary else None
    share = "all" if percent is None else f"{percent} % are the canary's"
    until = after.at if after else "now"
    return change.alias, change.at, change.set_by, until, share, change.override or ""


def _next(changes: list[AliasChange], alias: str) -> AliasChange | None:
    return next((change for change in changes if change.alias == alias), None)


def _last(found: list[ListedRun], limit: int) -> str:
    return found[limit - 1].id if len(found) > limit else ""


def _number(cursor: str) -> int:
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 16):
        raise InputError(f"no list begins at {cursor!r:.40}; begin at its start")
    return int(cursor)
