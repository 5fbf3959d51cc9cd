"""An episode's page, turn by turn."""

from collections.abc import Iterator

from starlette.requests import Request

from agentworld.audit.checks.episode import EpisodeVerification, verify_episode
from agentworld.errors import NotFound
from agentworld.records.episode import Episode, EpisodeStep
from agentworld_console import lists, rows
from agentworld_console.answer import Answer, ListView, Page, Sheet, Text
from agentworld_console.formatting import page_path
from agentworld_console.scoped_view import ScopedView
from agentworld_console.table import Listing, Part, Row

_MOST_STEPS = 50
_STEPS_OF_A_FILE = 4
"""Turns that are written at once, because a text may be a megabyte."""
_MOST_PRIOR_TURNS = 20
"""The most prior turns that the page shows."""
_COLUMNS = (
    *("step", "action", "observation", "reward", "done", "truncated", "low confidence"),
    *("mean logprob", "agreement", "input tokens", "cached tokens", "output tokens", "seconds"),
)


def episode(view: ScopedView, request: Request) -> Answer:
    """Actions and observations, a part at a time."""
    name, query = request.path_params["episode"], request.query_params
    episode, first = view.episode(name), lists.number(query.get("from", ""))
    is_long = view.is_long(view.run(episode.run)) and query.get("check") != "1"
    next_first = first + _MOST_STEPS if len(episode.steps) > first + _MOST_STEPS else 0
    values = {
        "episode": episode,
        "steps": episode.steps[first : first + _MOST_STEPS],
        "first": first,
        "next": next_first,
        "most_prior_turns": _MOST_PRIOR_TURNS,
        "run": rows.run_link(episode.run),
        "success": rows.success(episode.steps[-1].reward if episode.steps else None),
        "simulator": rows.simulator_link(view, episode.simulator),
        "sources": list(_sources(episode)),
        "forks": ListView.of(lists.forks(view, name)),
        "is_long": is_long,
        "record": None if is_long else _record(view, episode),
        "csv": page_path("episodes", name) + ".csv",
    }
    return Page("episode.html", values)


def opening(view: ScopedView, request: Request) -> Answer:
    """The complete opening; raises NotFound if it was erased."""
    name = request.path_params["episode"]
    opening = view.episode(name).opening
    if opening is None:
        raise NotFound(f"what episode {name} was opened with was erased; its digest stays")
    return Text(opening.model_dump_json(indent=2, exclude_defaults=True))


def text(view: ScopedView, request: Request) -> Answer:
    """The complete texts of a step; raises NotFound if they were erased."""
    parameters = request.path_params
    name, number, kind = parameters["episode"], parameters["step"], parameters["text"]
    steps = {step.number: step for step in view.episode(name).steps}
    if number not in steps or kind not in ("action", "observation"):
        raise NotFound(f"episode {name} has no {kind} of step {number}; look at its page")
    text: str | None = getattr(steps[number], kind)
    if text is None:
        raise NotFound(f"the {kind} of step {number} was erased; its digest stays")
    return Text(text)


def sheet(view: ScopedView, request: Request) -> Answer:
    """Its steps with complete texts."""
    name = request.path_params["episode"]
    episode = view.episode(name)

    def fetch(cursor: str) -> Part:
        first = lists.number(cursor)
        last = first + _STEPS_OF_A_FILE
        rows = [_row(step) for step in episode.steps[first:last]]
        return Part(rows, str(last) if len(episode.steps) > last else "")

    return Sheet(f"episode-{name}", Listing(page_path("episodes", name), _COLUMNS, fetch))


def forks_sheet(view: ScopedView, request: Request) -> Answer:
    """All its forks and replays."""
    name = request.path_params["episode"]
    view.check_episode(name)
    return Sheet(f"forks-{name}", lists.forks(view, name, lists.OF_A_FILE))


def _record(view: ScopedView, episode: Episode) -> EpisodeVerification | None:
    """The state of an episode's record; null if nothing was signed."""
    evidence = view.sources.evidence
    return verify_episode(episode.id, view.library.ledger, evidence) if evidence else None


def _sources(episode: Episode) -> Iterator[tuple[str, int, str, str]]:
    opening = episode.opening
    for name in ("fork", "replay"):
        source = getattr(opening, name) if opening else None
        if source:
            yield name, source.step, source.episode, page_path("episodes", source.episode)


def _row(step: EpisodeStep) -> Row:
    texts = (("(erased)" if text is None else text) for text in (step.action, step.observation))
    flags = ("yes" if flag else "no" for flag in (step.done, step.truncated, step.confidence.low))
    confidence = step.confidence.mean_logprob, step.confidence.agreement
    return step.number, *texts, step.reward, *flags, *confidence, *step.usage
