"""The first page, the long lists, and what leads a name to its page."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice

from starlette.requests import Request

from agentworld.errors import InputError, NotFound
from agentworld.lineage.base import VersionRef
from agentworld_console import lists, rows
from agentworld_console.answer import Answer, Answering, Elsewhere, ListView, Page, Sheet
from agentworld_console.datasets import DataSets
from agentworld_console.sight import Sight
from agentworld_console.table import Link, Listing
from agentworld_console.words import at

_ListBuilder = Callable[..., Listing]
_NEWEST = 10
_MOST_HITS = 50
LISTS: dict[str, tuple[str, _ListBuilder]] = {
    "agents": ("Agents", lists.agents),
    "in-use": ("In use", lists.in_use),
    "simulators": ("Simulators", lists.simulators),
    "datasets": ("Data sets", lists.datasets),
    "runs": ("Runs", lists.runs),
}
"""By their addresses: what each is called, and what makes it, of so many rows at once."""
_ON_THE_FIRST_PAGE = "agents", "simulators", "runs"
_DIGEST = re.compile(r"(sha256:)?[0-9a-f]{1,64}")


def index(sight: Sight, _request: Request) -> Answer:
    """The newest of everything."""
    newest = {name: LISTS[name][1](sight, _NEWEST) for name in _ON_THE_FIRST_PAGE}
    return Page("index.html", {name: ListView.of(listing) for name, listing in newest.items()})


def list_of(name: str) -> Answering:
    """The page of a long list."""
    title, build = LISTS[name]

    def page(sight: Sight, request: Request) -> Answer:
        view = ListView.of(build(sight), request.query_params.get("from", ""))
        return Page("list.html", {"title": title, "view": view})

    return page


def sheet_of(name: str) -> Answering:
    """The whole of a long list."""
    return lambda sight, _request: Sheet(name, LISTS[name][1](sight, lists.OF_A_FILE))


def search(sight: Sight, request: Request) -> Answer:
    """The page of what is named, or the pages that it may be."""
    name = request.query_params.get("q", "").strip()
    if not name:
        return Elsewhere("/")
    if exact := _exact(sight, name):
        return Elsewhere(exact)
    hits = list(_hits(sight, name))
    if len(hits) == 1:
        return Elsewhere(hits[0][1].href)
    return Page("search.html", {"query": name, "hits": hits}, 200 if hits else 404)


def _hits(sight: Sight, name: str) -> Iterator[tuple[str, Link]]:
    """What each is, and its page."""
    for simulator in sight.find_simulators(name)[:_MOST_HITS]:
        yield "simulator", rows.simulator_link(simulator)
    for digest in DataSets(sight).find(name)[:_MOST_HITS] if _DIGEST.fullmatch(name) else ():
        yield "data set", rows.dataset_link(digest)
    agents = (agent.ref for agent in sight.agents() if name in str(agent.ref))
    yield from (("agent", rows.agent_link(ref)) for ref in islice(agents, _MOST_HITS))


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
