"""The lineage graph, and its edges as a list."""

from starlette.requests import Request

from agentworld.errors import InputError, NotFound
from agentworld.lineage.base import VersionRef
from agentworld_console.answer import Answer, ListView, Page, Sheet
from agentworld_console.formatting import page_path, shorten
from agentworld_console.graph import Graph, graph_of_agent, graph_of_simulator
from agentworld_console.scoped_view import ScopedView
from agentworld_console.table import Cell, Link, Listing, Part

_COLUMNS = ("from", "from kind", "to", "to kind")


def graph(view: ScopedView, request: Request) -> Answer:
    """An SVG, and a table below it."""
    lineage, is_cut = _build_graph(view, request)
    layout, (kind, name) = lineage.layout, _subject(request)
    values = {
        "title": view.name_of(name) if kind == "simulator" else name,
        "command": f"audit {kind}",
        "back_name": name,
        "back": page_path(f"{kind}s", name),
        "is_cut": is_cut,
        "nodes": [
            (node, shorten(node.label, layout.most_letters), layout.boxes[node.name])
            for node in lineage.nodes.values()
        ],
        "paths": lineage.paths(layout.boxes),
        "size": (layout.width, layout.height),
        "table": ListView.of(_listing(lineage, request)),
    }
    return Page("graph.html", values)


def sheet(view: ScopedView, request: Request) -> Answer:
    """Its edges."""
    lineage, _ = _build_graph(view, request)
    return Sheet("graph", _listing(lineage, request))


def _build_graph(view: ScopedView, request: Request) -> tuple[Graph, bool]:
    kind, name = _subject(request)
    if kind == "agent":
        return graph_of_agent(view, VersionRef.parse(name)), False
    if view.find_simulators(name) != [name]:
        raise NotFound(f"there is no simulator {name}; give its whole digest")
    return graph_of_simulator(view, name)


def _subject(request: Request) -> tuple[str, str]:
    query = request.query_params
    for kind in ("agent", "simulator"):
        if query.get(kind):
            return kind, query[kind]
    raise InputError("the address names no subject; add ?agent=NAME@VERSION or ?simulator=DIGEST")


def _listing(lineage: Graph, request: Request) -> Listing:
    def cell(name: str) -> Cell:
        node = lineage.nodes[name]
        return Link(node.label, node.href, name.rpartition(" ")[2])

    rows = [
        (cell(start), lineage.nodes[start].kind, cell(end), lineage.nodes[end].kind)
        for start, end in lineage.edges
    ]
    return Listing(f"/graph?{request.url.query}", _COLUMNS, lambda _cursor: Part(list(rows)))
