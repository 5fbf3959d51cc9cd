"""The agents in use, and those that need revalidation."""

from starlette.requests import Request

from agentworld_console import lists
from agentworld_console.answer import Answer, ListView, Page
from agentworld_console.scoped_view import ScopedView


def in_use(view: ScopedView, request: Request) -> Answer:
    """Agents by alias, the time of the last move, and their grades."""
    query = request.query_params
    values = {
        "problems": view.problems_in_use(force=query.get("check") == "1"),
        "view": ListView.of(lists.in_use(view), query.get("from", "")),
    }
    return Page("in_use.html", values)
