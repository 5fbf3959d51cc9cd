"""A run and its episodes."""

from starlette.requests import Request

from agentworld_console import lists, rows
from agentworld_console.answer import Answer, ListView, Page, Sheet
from agentworld_console.scoped_view import ScopedView


def run(view: ScopedView, request: Request) -> Answer:
    """Its opening, the state of its record, and a part of its episodes."""
    name, query = request.path_params["run"], request.query_params
    run = view.run(name)
    record = view.record(run, force=query.get("check") == "1")
    counts = view.library.ledger.counts
    values = {
        "run": run,
        "num_open": counts.num_open_episodes(run=name),
        "record": record,
        "rewards": counts.rewards(name) if record.checked else None,  # costs as much
        "episodes": ListView.of(lists.episodes(view, name), query.get("from", "")),
        "simulator": rows.simulator_link(view, run.simulator),
        "agents": [rows.agent_link(agent.ref) for agent in view.agents_of([run])[name]],
    }
    return Page("run.html", values)


def sheet(view: ScopedView, request: Request) -> Answer:
    """All of its episodes."""
    name = request.path_params["run"]
    view.check_run(name)
    return Sheet(f"episodes-{name}", lists.episodes(view, name, lists.OF_A_FILE))
