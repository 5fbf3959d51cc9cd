"""The first page, the long lists, and what leads a name to its page."""

from contextlib import suppress

from starlette.requests import Request

from agentworld.errors import InputError, NotFound
from agentworld.lineage.base import VersionRef
from agentworld_console import lists
from agentworld_console.answer import Answer, Answering, Elsewhere, Page, Sheet, Shown
from agentworld_console.sight import Sight
from agentworld_console.words import at

_NEWEST = 10
_MOST_HITS = 50
LISTS = {"agents": lists.agents, "simulators": lists.simulators, "runs": lists.runs}


def index(sight: Sight, _request: Request) -> Answer:
    """The newest of everything."""
    newest = {name: Shown.of(listed(sight, _NEWEST)) for name, listed in LISTS.items()}
    return Page("index.html", newest)


def list_of(name: str) -> Answering:
    """The page of a long list."""

    def listed(sight: Sight, request: Request) -> Answer:
        shown = Shown.of(LISTS[name](sight), request.query_params.get("from", ""))
        return Page("list.html", {"name": name, "shown": shown})

    return listed


def sheet_of(name: str) -> Answering:
    """The whole of a long list."""
    return lambda sight, _request: Sheet(name, LISTS[name](sight, lists.OF_A_FILE))


def search(sight: Sight, request: Request) -> Answer:
    """The page of what is named, or the pages that it may be."""
    name = request.query_params.get("q", "").strip()
    if not name:
        return Elsewhere("/")
    if exact := _exact(sight, name):
        return Elsewhere(exact)
    simulators = sight.find_simulators(name)[:_MOST_HITS]
    agents = [each.ref for each in sight.agents() if name in str(each.ref)][:_MOST_HITS]
    hits = [*map(lists.simulator_link, simulators), *map(lists.agent_link, agents)]
    if len(hits) == 1:
        return Elsewhere(hits[0].href)
    return Page("search.html", {"query": name, "hits": hits}, 200 if hits else 404)


def _exact(sight: Sight, name: str) -> str:
    """An agent's version, a run or an episode; empty where it is none that is seen."""
    with suppress(InputError):
        sight.agent(VersionRef.parse(name))
        return at("agents", name)
    with suppress(NotFound):
        sight.check_run(name)
        return at("runs", name)
    with suppress(NotFound):
        sight.check_episode(name)
        return at("episodes", name)
    return ""
