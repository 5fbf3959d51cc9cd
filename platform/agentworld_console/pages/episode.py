"""An episode, turn by turn."""

from collections.abc import Iterator

from starlette.requests import Request

from agentworld.audit.checks.episode import EpisodeVerification, verify_episode
from agentworld.errors import NotFound
from agentworld.records.episode import Episode, EpisodeStep
from agentworld_console import lists, rows
from agentworld_console.answer import Answer, ListView, Page, Sheet, Text
from agentworld_console.sight import Sight
from agentworld_console.table import Listing, Part, Row
from agentworld_console.words import at

_MOST_STEPS = 50
_STEPS_OF_A_FILE = 4
"""That are written at once: a text may be a megabyte."""
_MOST_PRIOR_TURNS = 20
"""Turns that came before, on the page."""
_COLUMNS = (
    *("step", "action", "observation", "reward", "done", "truncated", "low confidence"),
    *("mean logprob", "agreement", "input tokens", "cached tokens", "output tokens", "seconds"),
)


def episode(sight: Sight, request: Request) -> Answer:
    """What was done and what was shown for it, a part at a time."""
    name, query = request.path_params["episode"], request.query_params
    episode, first = sight.episode(name), lists.number(query.get("from", ""))
    is_long = sight.is_long(sight.run(episode.run)) and query.get("check") != "1"
    more = first + _MOST_STEPS if len(episode.steps) > first + _MOST_STEPS else 0
    values = {
        "episode": episode,
        "steps": episode.steps[first : first + _MOST_STEPS],
        "first": first,
        "next": more,
        "most_prior_turns": _MOST_PRIOR_TURNS,
        "run": rows.run_link(episode.run),
        "simulator": rows.simulator_link(episode.simulator),
        "sources": list(_sources(episode)),
        "forks": ListView.of(lists.forks(sight, name)),
        "is_long": is_long,
        "record": None if is_long else _record(sight, episode),
        "csv": at("episodes", name) + ".csv",
    }
    return Page("episode.html", values)


def opening(sight: Sight, request: Request) -> Answer:
    """All that it was opened with; raises NotFound where that was erased."""
    name = request.path_params["episode"]
    opening = sight.episode(name).opening
    if opening is None:
        raise NotFound(f"what episode {name} was opened with was erased; its digest stays")
    return Text(opening.model_dump_json(indent=2, exclude_defaults=True))


def text(sight: Sight, request: Request) -> Answer:
    """All that was said in a step; raises NotFound where that was erased."""
    parameters = request.path_params
    name, number, which = parameters["episode"], parameters["step"], parameters["text"]
    steps = {step.number: step for step in sight.episode(name).steps}
    if number not in steps or which not in ("action", "observation"):
        raise NotFound(f"episode {name} has no {which} of step {number}; look at its page")
    text: str | None = getattr(steps[number], which)
    if text is None:
        raise NotFound(f"the {which} of step {number} was erased; its digest stays")
    return Text(text)


def sheet(sight: Sight, request: Request) -> Answer:
    """Its steps, with their whole texts."""
    name = request.path_params["episode"]
    episode = sight.episode(name)

    def fetch(cursor: str) -> Part:
        first = lists.number(cursor)
        last = first + _STEPS_OF_A_FILE
        rows = [_row(step) for step in episode.steps[first:last]]
        return Part(rows, str(last) if len(episode.steps) > last else "")

    return Sheet(f"episode-{name}", Listing(at("episodes", name), _COLUMNS, fetch))


def forks_sheet(sight: Sight, request: Request) -> Answer:
    """All that were made of it."""
    name = request.path_params["episode"]
    sight.check_episode(name)
    return Sheet(f"forks-{name}", lists.forks(sight, name, lists.OF_A_FILE))


def _record(sight: Sight, episode: Episode) -> EpisodeVerification | None:
    """Null where nothing was signed."""
    evidence = sight.sources.evidence
    return verify_episode(episode.id, sight.library.ledger, evidence) if evidence else None


def _sources(episode: Episode) -> Iterator[tuple[str, int, str, str]]:
    opening = episode.opening
    for name in ("fork", "replay"):
        source = getattr(opening, name) if opening else None
        if source:
            yield name, source.step, source.episode, at("episodes", source.episode)


def _row(step: EpisodeStep) -> Row:
    texts = (("(erased)" if text is None else text) for text in (step.action, step.observation))
    flags = ("yes" if flag else "no" for flag in (step.done, step.truncated, step.confidence.low))
    sure = step.confidence.mean_logprob, step.confidence.agreement
    return step.number, *texts, step.reward, *flags, *sure, *step.usage
