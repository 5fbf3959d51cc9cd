"""An episode, turn by turn."""

from collections.abc import Iterator

from starlette.requests import Request

from agentworld.audit.verify_episode import EpisodeVerification, verify_episode
from agentworld.records.episode import Episode, EpisodeStep
from agentworld_console import lists
from agentworld_console.answer import Answer, Page, Sheet
from agentworld_console.sight import Sight
from agentworld_console.table import Listing, Part, Row
from agentworld_console.words import at

_COLUMNS = (
    *("step", "action", "observation", "reward", "done", "truncated", "low confidence"),
    *("mean logprob", "agreement", "input tokens", "cached tokens", "output tokens", "seconds"),
)


def episode(sight: Sight, request: Request) -> Answer:
    """What was done and what was shown for it."""
    name = request.path_params["episode"]
    found = sight.episode(name)
    run = sight.run(found.run)
    asked = request.query_params.get("check") == "1"
    values = {
        "episode": found,
        "run": lists.run_link(found.run),
        "simulator": lists.simulator_link(found.simulator),
        "sources": list(_sources(found)),
        "is_long": sight.is_long(run) and not asked,
        "record": None if sight.is_long(run) and not asked else _record(sight, found),
        "csv": at("episodes", name) + ".csv",
    }
    return Page("episode.html", values)


def sheet(sight: Sight, request: Request) -> Answer:
    """Its steps, with their whole texts."""
    name = request.path_params["episode"]
    found = sight.episode(name)
    rows = [_row(step) for step in found.steps]
    return Sheet(f"episode-{name}", Listing(at("episodes", name), _COLUMNS, lambda _: Part(rows)))


def _record(sight: Sight, found: Episode) -> EpisodeVerification | None:
    """Null where nothing was signed."""
    evidence = sight.library.evidence
    return verify_episode(found.id, sight.library.ledger, evidence) if evidence else None


def _sources(found: Episode) -> Iterator[tuple[str, int, str, str]]:
    opening = found.opening
    for name in ("fork", "replay"):
        source = getattr(opening, name) if opening else None
        if source:
            yield name, source.step, source.episode, at("episodes", source.episode)


def _row(step: EpisodeStep) -> Row:
    texts = (("(erased)" if text is None else text) for text in (step.action, step.observation))
    flags = ("yes" if each else "no" for each in (step.done, step.truncated, step.confidence.low))
    sure = step.confidence.mean_logprob, step.confidence.agreement
    return step.number, *texts, step.reward, *flags, *sure, *step.usage
