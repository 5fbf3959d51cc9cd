"""The lineage as a graph: data, stages, world model, simulator, runs, agents.

Runs and agents are from the ledger and the registry; the ancestors of a simulator are from its
world model's registration.
"""

from typing import NamedTuple

from agentworld.audit.read.sources import world_models_of
from agentworld.lineage.base import VersionRef, WorldModel
from agentworld.records.base import Digest
from agentworld.records.checkpoint import Checkpoint
from agentworld_console.formatting import brief, page_path
from agentworld_console.layout import Box, Layout, compute_layout
from agentworld_console.scoped_view import ScopedView

MOST_RUNS = 96
"""The most runs in a graph: with an agent each and their ancestors, two hundred nodes."""

_FIRST_STAGE = 1
_WORLD, _SIMULATOR, _RUN, _AGENT = 10, 11, 12, 13


class Node(NamedTuple):
    """A box."""

    name: str
    kind: str
    label: str
    href: str
    layer: int


class Graph:
    """Nodes by name in the order in which they were added, and edges from cause to effect."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.edges: list[tuple[str, str]] = []

    def add(self, node: Node, *, after: str = "") -> str:
        """Adds a node, and an edge to it from another one; repeating it changes nothing."""
        self.nodes.setdefault(node.name, node)
        if after and (after, node.name) not in self.edges:
            self.edges.append((after, node.name))
        return node.name

    @property
    def layout(self) -> Layout:
        """The positions of the nodes."""
        layers = {name: node.layer for name, node in self.nodes.items()}
        letters = {name: len(node.label) for name, node in self.nodes.items()}
        return compute_layout(layers, self.edges, letters)

    def paths(self, boxes: dict[str, Box]) -> list[str]:
        """Curves from box to box, as SVG paths."""
        return [_curve(boxes[start], boxes[end]) for start, end in self.edges]


def graph_of_simulator(view: ScopedView, simulator: Digest) -> tuple[Graph, bool]:
    """A simulator with its newest runs; and whether there are more of them."""
    graph = Graph()
    served_node = _add_simulator(graph, view, simulator)
    runs = view.runs(MOST_RUNS + 1, simulators=[simulator])
    agents_by_run = view.agents_of(runs[:MOST_RUNS])
    for run in runs[:MOST_RUNS]:
        node = _run(run.id, f"{run.purpose} run")
        graph.add(node, after=served_node)
        for agent in agents_by_run[run.id]:
            graph.add(_agent(agent.ref), after=node.name)
    return graph, len(runs) > MOST_RUNS


def graph_of_agent(view: ScopedView, ref: VersionRef) -> Graph:
    """An agent with all its ancestors; its run may be missing."""
    graph, agent = Graph(), view.agent(ref)
    run = view.find_run(agent.run)
    if run is None:
        run_node = graph.add(_run(agent.run, "missing run"))
    else:
        served_node = _add_simulator(graph, view, run.simulator)
        run_node = graph.add(_run(run.id, f"{run.purpose} run"), after=served_node)
    graph.add(_agent(ref), after=run_node)
    return graph


def _add_simulator(graph: Graph, view: ScopedView, simulator: Digest) -> str:
    manifest = view.manifest(simulator)
    page = page_path("simulators", simulator)
    last = ""
    for ref in world_models_of(manifest, view.library.registry)[:1]:
        last_stage = _add_stages(graph, view.library.registry.world_model(ref))
        # It has no page of its own, so it links to its simulator's.
        last = graph.add(Node(str(ref), "world model", str(ref), page, _WORLD), after=last_stage)
    return graph.add(
        Node(simulator, "simulator", view.name_of(simulator), page, _SIMULATOR), after=last
    )


def _add_stages(graph: Graph, world: WorldModel) -> str:
    """Adds the stages; returns the node of the last one."""
    by_artifact: dict[Digest, str] = {}
    data: Digest | None = None
    for index, stage in enumerate(world.stages):
        node = _stage(stage, _FIRST_STAGE + index)
        graph.add(node)
        if stage.data and stage.data != data:  # what all stages read is drawn once
            data = stage.data
            read = graph.add(Node(data, "data", brief(data), page_path("datasets", data), 0))
            graph.add(node, after=read)
        for corpus in stage.corpora.values():
            read = graph.add(Node(corpus.content, "data", brief(corpus.content), "", 0))
            graph.add(node, after=read)
        for parent in stage.parents:
            if parent not in by_artifact:  # the base of the first stage
                base = graph.add(Node(f"base {parent}", "base", brief(parent), "", 0))
                by_artifact[parent] = base
            graph.add(node, after=by_artifact[parent])
        by_artifact[stage.artifact] = node.name
    return by_artifact[world.artifact]


def _stage(stage: Checkpoint, layer: int) -> Node:
    return Node(f"{stage.stage} {stage.artifact}", stage.stage, brief(stage.artifact), "", layer)


def _run(name: str, kind: str) -> Node:
    return Node(f"run {name}", kind, name, page_path("runs", name), _RUN)


def _agent(ref: VersionRef) -> Node:
    return Node(f"agent {ref}", "agent", str(ref), page_path("agents", str(ref)), _AGENT)


def _curve(start: Box, end: Box) -> str:
    bend_x = (start.right + end.x) / 2
    return (
        f"M{start.right} {start.middle:g}"
        f"C{bend_x:g} {start.middle:g} {bend_x:g} {end.middle:g} {end.x} {end.middle:g}"
    )
