"""The service's root resource with links, and a page of its routes.

Both need a credential, as every route except `/health`. The page has no scripts and loads nothing,
so it works without a network.
"""

from collections.abc import Callable, Iterator
from functools import cache
from html import escape
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse

from agentworld import __version__

_METHODS = ("get", "put", "post", "delete")
_HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>agentworld simulator</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0 }
code { overflow-wrap: anywhere }
</style>
<h1>agentworld simulator</h1>
<p>Send JSON, with <code>content-type: application/json</code> and your API key as
<code>authorization: Bearer KEY</code>.
<a href="/openapi.json">/openapi.json</a> has every field.</p>
<table>
<tr><th>Method</th><th>Path</th><th>Does</th></tr>
"""


def overview(_request: Request) -> Response:
    """The service's description and links."""
    return JSONResponse(
        {
            "service": "agentworld simulator",
            "version": __version__,
            "docs": "/docs",
            "openapi": "/openapi.json",
            "health": "/health",
        }
    )


def documentation(app: FastAPI) -> Callable[[Request], Response]:
    """A page of all routes, generated once."""
    page = cache(lambda: f"{_HEAD}{''.join(_rows(app.openapi()))}</table>\n</html>\n")
    return lambda _request: HTMLResponse(page())


def _rows(document: dict[str, Any]) -> Iterator[str]:
    for path, operations in document["paths"].items():
        for method in _METHODS:
            if operation := operations.get(method):
                words = operation.get("description") or operation.get("summary", "")
                does = escape(words.partition("\n\n")[0])
                yield (
                    f"<tr><td>{method.upper()}</td><td><code>{escape(path)}</code></td>"
                    f"<td>{does}</td></tr>\n"
                )
