"""The results of a page handler: a template with its values, a list as CSV, or a redirect."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from starlette.requests import Request

from agentworld_console.scoped_view import ScopedView
from agentworld_console.table import Listing, Part


class Page(NamedTuple):
    """A template and its values."""

    template: str
    values: Mapping[str, object]
    status: int = 200


class Redirect(NamedTuple):
    """A redirect to another page."""

    href: str


class Sheet(NamedTuple):
    """A list as a CSV file."""

    name: str
    listing: Listing


class Text(NamedTuple):
    """A plain text."""

    text: str


Answer = Page | Redirect | Sheet | Text
PageHandler = Callable[[ScopedView, Request], Answer]


class ListView(NamedTuple):
    """A part of a list on a page."""

    listing: Listing
    part: Part
    cursor: str = ""

    @classmethod
    def of(cls, listing: Listing, cursor: str = "") -> "ListView":
        """The part that begins at the cursor."""
        return cls(listing, listing.fetch(cursor), cursor)
