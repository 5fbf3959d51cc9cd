"""Wires the console: routes, pages, templates, and access."""

import logging
import shlex
from functools import partial
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from agentworld.errors import AgentworldError, EvidenceError
from agentworld.http.errors import answer_of
from agentworld.reports.dataset import STYLE
from agentworld.reports.templates import templates
from agentworld.reports.visible import visible_lines
from agentworld_console import formatting
from agentworld_console.access import AuthMiddleware, Callers, SecurityHeaders
from agentworld_console.answer import Answer, Page, PageHandler, Redirect, Sheet, Text
from agentworld_console.library import Library
from agentworld_console.pages import (
    agent,
    dataset,
    episode,
    graph,
    in_use,
    index,
    run,
    simulator,
)
from agentworld_console.scoped_view import ScopedView
from agentworld_console.table import Link, Mark

_FOLDER = Path(__file__).parent
_log = logging.getLogger(__name__)

# A path with a suffix comes first, because the parameter of the other one would match the suffix.
_PAGES: dict[str, PageHandler] = {
    "/": index.index,
    "/search": index.search,
    "/graph": graph.graph,
    "/graph.csv": graph.sheet,
    **{f"/{name}.csv": index.sheet_of(name) for name in index.LISTS},
    "/in-use": in_use.in_use,
    **{f"/{name}": index.list_of(name) for name in index.LISTS if name != "in-use"},
    "/agents/{agent}": agent.agent,
    "/simulators/{simulator}/runs.csv": simulator.runs_sheet,
    "/simulators/{simulator}/aliases.csv": simulator.aliases_sheet,
    "/simulators/{simulator}": simulator.simulator,
    "/datasets/{data}/simulators.csv": dataset.simulators_sheet,
    "/datasets/{data}/runs.csv": dataset.runs_sheet,
    "/datasets/{data}/contents": dataset.contents,
    "/datasets/{data}": dataset.dataset,
    "/runs/{run}/episodes.csv": run.sheet,
    "/runs/{run}": run.run,
    "/episodes/{episode}/forks.csv": episode.forks_sheet,
    "/episodes/{episode}/opening.txt": episode.opening,
    "/episodes/{episode}/{step:int}/{text}.txt": episode.text,
    "/episodes/{episode}.csv": episode.sheet,
    "/episodes/{episode}": episode.episode,
}


class Console:
    """Runs page handlers and renders their results."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._templates = templates(_FOLDER / "templates")
        self._templates.globals.update(page_path=formatting.page_path, brief=formatting.brief)
        self._templates.globals["quote"] = shlex.quote
        self._templates.globals["lists"] = {name: page.title for name, page in index.LISTS.items()}
        self._templates.tests["link"] = lambda cell: isinstance(cell, Link)
        self._templates.tests["mark"] = lambda cell: isinstance(cell, Mark)

    async def page(self, answering: PageHandler, request: Request) -> Response:
        """Runs the handler in a thread, because the ledger and the registry block."""
        return await run_in_threadpool(self._respond, answering, request)

    def refuse(self, request: Request, error: Exception) -> Response:
        """An error as a page."""
        status, headers, body = answer_of(error)
        if isinstance(error, EvidenceError):
            status = 500
        headers = {name: value for name, value in headers.items() if name != "content-type"}
        if status == 401:
            headers["www-authenticate"] = 'Basic realm="agentworld", charset="UTF-8"'
        if status == 500 and not isinstance(error, AgentworldError):
            _log.error("a page failed: %s", request.url.path, exc_info=error)
        values = {"status": status, "problem": body["error"]}
        return self._html(request, Page("error.html", values, status), headers)

    def _respond(self, answering: PageHandler, request: Request) -> Response:
        if self._library.records:
            self._library.records.refresh()
        answer: Answer = answering(ScopedView(self._library, request.scope["caller"]), request)
        match answer:
            case Redirect(href):
                return RedirectResponse(href, 303)
            case Text(text):
                return PlainTextResponse(visible_lines(text))
            case Sheet(name, listing):
                safe_name = "".join(c if c.isalnum() or c in "-_" else "-" for c in name)
                disposition = f'attachment; filename="{safe_name}.csv"'
                return StreamingResponse(
                    listing.csv(),
                    media_type="text/csv; charset=utf-8",
                    headers={"content-disposition": disposition},
                )
        return self._html(request, answer)

    def _html(
        self, request: Request, page: Page, headers: dict[str, str] | None = None
    ) -> Response:
        caller = request.scope.get("caller")
        query = request.query_params.get("q", "")
        values = {"caller": caller, "path": request.url.path, "query": query, **page.values}
        text = self._templates.get_template(page.template).render(values)
        return HTMLResponse(text, page.status, headers)


def create_app(library: Library, callers: Callers) -> ASGIApp:
    """The console for a library; `callers` authenticates requests."""
    console = Console(library)
    routes = [
        Route(path, partial(_answer, console, answering), methods=["GET"])
        for path, answering in _PAGES.items()
    ]
    app = Starlette(
        routes=[
            Route("/healthz", lambda _request: PlainTextResponse("ok"), methods=["GET"]),
            Route("/static/dataset.css", lambda _request: FileResponse(STYLE), methods=["GET"]),
            Mount("/static", StaticFiles(directory=_FOLDER / "static")),
            *routes,
        ],
        exception_handlers={
            kind: partial(_refuse, console) for kind in (AgentworldError, HTTPException, Exception)
        },
        middleware=[Middleware(AuthMiddleware, callers=callers, refuse=console.refuse)],
    )
    return SecurityHeaders(app)


async def _answer(console: Console, answering: PageHandler, request: Request) -> Response:
    return await console.page(answering, request)


async def _refuse(console: Console, request: Request, error: Exception) -> Response:
    return console.refuse(request, error)
