"""The first page, the long lists, and the search."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from starlette.requests import Request

from agentworld.errors import InputError, NotFound
from agentworld.lineage.base import VersionRef
from agentworld_console import lists, rows
from agentworld_console.answer import Answer, ListView, Page, PageHandler, Redirect, Sheet
from agentworld_console.datasets import DataSets
from agentworld_console.formatting import page_path
from agentworld_console.scoped_view import ScopedView
from agentworld_console.table import Link, Listing

_ListBuilder = Callable[..., Listing]
_NEWEST = 10
_MOST_HITS = 50


class _ListPage(NamedTuple):
    """A long list."""

    title: str
    build: _ListBuilder
    """Builds the list, with so many rows on a page."""
    command: str
    """The command that prints the same."""


LISTS = {
    "agents": _ListPage("Agents", lists.agents, "agent list"),
    "in-use": _ListPage("In use", lists.in_use, "agent list"),
    "simulators": _ListPage("Simulators", lists.simulators, "simulator list"),
    "datasets": _ListPage("Data sets", lists.datasets, "data list"),
    "runs": _ListPage("Runs", lists.runs, "run list"),
}
"""By their paths."""
_ON_THE_FIRST_PAGE = "agents", "simulators", "runs"
_DIGEST = re.compile(r"(sha256:)?[0-9a-f]{1,64}")


def index(view: ScopedView, _request: Request) -> Answer:
    """The newest agents, simulators and runs."""
    newest = {name: LISTS[name].build(view, _NEWEST) for name in _ON_THE_FIRST_PAGE}
    return Page("index.html", {name: ListView.of(listing) for name, listing in newest.items()})


def list_of(name: str) -> PageHandler:
    """The page of a long list."""
    title, build, command = LISTS[name]

    def page(view: ScopedView, request: Request) -> Answer:
        list_view = ListView.of(build(view), request.query_params.get("from", ""))
        return Page("list.html", {"title": title, "view": list_view, "command": command})

    return page


def sheet_of(name: str) -> PageHandler:
    """A whole list as CSV."""
    return lambda view, _request: Sheet(name, LISTS[name].build(view, lists.OF_A_FILE))


def search(view: ScopedView, request: Request) -> Answer:
    """Redirects to the only match, or lists the matches."""
    name = request.query_params.get("q", "").strip()
    if not name:
        return Redirect("/")
    if exact := _exact(view, name):
        return Redirect(exact)
    hits = list(_hits(view, name))
    if len(hits) == 1:
        return Redirect(hits[0][1].href)
    return Page("search.html", {"query": name, "hits": hits}, 200 if hits else 404)


def _hits(view: ScopedView, name: str) -> Iterator[tuple[str, Link]]:
    """The matches with their kinds and pages."""
    for simulator in view.find_simulators(name)[:_MOST_HITS]:
        yield "simulator", rows.simulator_link(view, simulator)
    for digest in DataSets(view).find(name)[:_MOST_HITS] if _DIGEST.fullmatch(name) else ():
        yield "data set", rows.dataset_link(digest)
    agents = (agent.ref for agent in view.agents() if name in str(agent.ref))
    yield from (("agent", rows.agent_link(ref)) for ref in islice(agents, _MOST_HITS))


def _exact(view: ScopedView, name: str) -> str:
    """The page of a visible agent's version, run or episode; empty if there is none."""
    with suppress(InputError):
        view.agent(VersionRef.parse(name))
        return page_path("agents", name)
    with suppress(NotFound):
        view.check_run(name)
        return page_path("runs", name)
    with suppress(NotFound):
        view.check_episode(name)
        return page_path("episodes", name)
    return ""
