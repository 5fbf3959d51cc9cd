"""The rows of the lists, and the links in them."""

from datetime import UTC, datetime
from typing import Literal

from agentworld.audit.checks.edges import EdgeAudit
from agentworld.audit.checks.validation import validation_of_weights
from agentworld.audit.questions.dataset import Reader
from agentworld.errors import EvidenceError, InputError
from agentworld.ledger.pages import ListedEpisode, ListedFork
from agentworld.ledger.runs import ListedRun
from agentworld.lineage.base import RegisteredAgent, Version, VersionRef
from agentworld.records.base import Digest
from agentworld.records.dataset import DataSet
from agentworld.records.statements.alias import AliasChange, split_alias
from agentworld.records.statements.edge import Grade
from agentworld_console.formatting import brief, page_path, shorten, with_interval
from agentworld_console.grade import to_disputed
from agentworld_console.scoped_view import ScopedView
from agentworld_console.table import Cell, Link, Mark, Row

_STATES: dict[Grade, Literal["good", "wait", "bad"]] = {
    "proven": "good",
    "observed": "wait",
    "disputed": "bad",
}

_GARBLED = "its tags are garbled"


def run_link(run: str) -> Link:
    """A link to a run's page."""
    return Link(shorten(run), page_path("runs", run), run)


def episode_link(episode: str) -> Link:
    """A link to an episode's page."""
    return Link(shorten(episode), page_path("episodes", episode), episode)


def simulator_link(view: ScopedView, digest: Digest) -> Link:
    """A link to a simulator's page, by its alias if it has one."""
    return Link(view.name_of(digest), page_path("simulators", digest), digest)


def digest_link(simulator: Digest) -> Link:
    """A link to a simulator's page, for a row that also has its aliases."""
    return Link(brief(simulator), page_path("simulators", simulator), simulator)


def dataset_link(digest: Digest) -> Link:
    """A link to a data set's page."""
    return Link(brief(digest), page_path("datasets", digest), digest)


def agent_link(ref: VersionRef) -> Link:
    """A link to an agent's page."""
    return Link(str(ref), page_path("agents", str(ref)))


def opening_time(name: str) -> str:
    """The creation time in a UUID of version 7; empty for any other name."""
    try:
        milliseconds = int(name[:12], 16)
        if len(name) != 32 or name[12] != "7":
            return ""
        return _minute(datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat())
    except (ValueError, OverflowError, OSError):
        return ""


def _minute(at: str) -> str:
    return at[:16].replace("T", " ")


def agent_row(view: ScopedView, agent: Version) -> Row:
    """A registered agent; its simulator is that of the signed edge, otherwise the registry's."""
    registered_agent = RegisteredAgent.from_tags(agent)
    try:
        audit = view.edge_of(registered_agent) if registered_agent else to_disputed(_GARBLED)
    except InputError:  # an invalid name of a run
        audit = to_disputed(_GARBLED)
    simulator = audit.edge.simulator if audit.edge else agent.tags["simulator"]
    artifact, run = agent.tags["artifact"], agent.tags["run"]
    return (
        *(agent_link(agent.ref), _grade(audit), _live_success(view, agent, simulator)),
        *(simulator_link(view, simulator), run_link(run), Link(brief(artifact), "", artifact)),
    )


def _live_success(view: ScopedView, agent: Version, simulator: Digest) -> Cell:
    artifact, report = agent.tags["artifact"], agent.tags.get("report")
    try:
        validation = validation_of_weights(artifact, report, simulator, view.sources)
    except EvidenceError:  # the agent's page reports it
        return "cannot be read"
    return with_interval(validation.report.trained.live) if validation else "not validated"


def simulator_row(digest: Digest, names: dict[Digest, list[str]], num: int, newest: str) -> Row:
    """A simulator, its aliases, and its newest run."""
    aliases = " ".join(names.get(digest, []))
    return digest_link(digest), aliases, num, run_link(newest) if newest else "none"


def run_row(view: ScopedView, run: ListedRun) -> Row:
    """A run."""
    weights = Link(brief(run.final_weights), "", run.final_weights) if run.final_weights else "open"
    cells = run.purpose, run.agent, simulator_link(view, run.simulator)
    return run_link(run.id), opening_time(run.id), *cells, run.tenant, run.log_length, weights


def run_agent_row(view: ScopedView, run: ListedRun, agent: RegisteredAgent | None) -> Row:
    """A run and its agent, with the steps of the signed edge, otherwise with the ledger's count."""
    simulator = simulator_link(view, run.simulator)
    run_cells = run.agent, run.purpose, opening_time(run.id), simulator, run.tenant
    if agent is None:
        outcome = "none" if run.final_weights else "open"
        return run_link(run.id), outcome, None, run.num_episodes, run.num_steps, *run_cells
    audit = view.edge_of(agent)
    traffic = audit.edge.traffic if audit.edge else run
    grade_cells = _grade(audit), traffic.num_episodes, traffic.num_steps
    return run_link(run.id), agent_link(agent.ref), *grade_cells, *run_cells


def _grade(audit: EdgeAudit) -> Mark:
    return Mark(audit.grade, _STATES[audit.grade])


def use_row(view: ScopedView, use: AliasChange, agents: list[RegisteredAgent]) -> Row:
    """An agent in use."""
    registered_agent = next((agent for agent in agents if str(agent.ref) == use.target), None)
    audit = (
        view.edge_of(registered_agent)
        if registered_agent
        else to_disputed("the registry has no such agent")
    )
    revalidations = view.agents_in_use.revalidations(use)
    state = Mark("revalidate", "bad") if revalidations else Mark("current", "good")
    sentences = (f"{move.alias} moved on to {brief(move.simulator)}" for move in revalidations)
    reasons = "; ".join([*sentences, *audit.problems])
    by = (use.set_by,) if view.is_whole else ()
    label = split_alias(use.alias)[1]
    cells = agent_link(VersionRef.parse(use.target)), label, state, _grade(audit)
    return *cells, _minute(use.at), *by, simulator_link(view, use.simulator), reasons


def dataset_row(data: Digest, readers: tuple[Reader, ...], dataset: DataSet | None) -> Row:
    """A data set, its summary, and the world models that read it."""
    names = ", ".join(reader.world_model for reader in readers) or "none"
    stages = dict.fromkeys(stage for reader in readers for stage in reader.stages)
    summary: Row = (None, None, None)
    if dataset:
        summary = dataset.origin, ", ".join(dataset.domains), dataset.num_trajectories
    return dataset_link(data), *summary, names, ", ".join(stages)


def fork_row(source: str, fork: ListedFork) -> Row | None:
    """Null if the fork's own opening contradicts the list, which is no evidence."""
    link, run = episode_link(fork.id), run_link(fork.run)
    cells = run, fork.tenant, opening_time(fork.id), fork.closed or "open"
    if fork.opening is None:
        return link, "cannot be read", None, *cells
    origin = fork.opening.fork or fork.opening.replay
    if origin is None or origin.episode != source:
        return None
    return link, "fork" if fork.opening.fork else "replay", origin.step, *cells


def episode_row(episode: ListedEpisode) -> Row:
    """An episode without its texts."""
    link = episode_link(episode.id)
    result = episode.num_steps, episode.reward, success(episode.reward)
    counts = episode.num_copied, episode.num_low
    texts = "erased" if episode.erased else "stored"
    return link, episode.task, *result, episode.closed or "open", *counts, texts


def success(reward: float | None) -> Cell:
    """Whether an episode's task succeeded, by the reward of its last step; null without one."""
    if reward is None:
        return None
    return Mark("yes", "good") if reward >= 1 else "no"


def meaning_row(change: AliasChange, after: AliasChange | None) -> Row:
    """The target of an alias, until the change `after`."""
    percent = change.canary.percent if change.canary else None
    share = "all" if percent is None else f"{percent} % to the canary"
    until = after.at if after else "now"
    return change.alias, change.at, change.set_by, until, share, change.override or ""
