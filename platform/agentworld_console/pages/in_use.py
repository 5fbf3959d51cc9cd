"""The agents in use, and what has to be validated anew."""

from starlette.requests import Request

from agentworld_console import lists
from agentworld_console.answer import Answer, ListView, Page
from agentworld_console.sight import Sight


def in_use(sight: Sight, request: Request) -> Answer:
    """As which names, since when, and how far each is proven."""
    query = request.query_params
    values = {
        "problems": sight.problems_in_use(force=query.get("check") == "1"),
        "view": ListView.of(lists.in_use(sight), query.get("from", "")),
    }
    return Page("in_use.html", values)
