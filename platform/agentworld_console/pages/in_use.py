"""The agents in use, and what has to be validated anew."""

from starlette.requests import Request

from agentworld_console import lists
from agentworld_console.answer import Answer, ListView, Page
from agentworld_console.scoped_view import ScopedView


def in_use(view: ScopedView, request: Request) -> Answer:
    """As which names, since when, and how far each is proven."""
    query = request.query_params
    values = {
        "problems": view.problems_in_use(force=query.get("check") == "1"),
        "view": ListView.of(lists.in_use(view), query.get("from", "")),
    }
    return Page("in_use.html", values)
