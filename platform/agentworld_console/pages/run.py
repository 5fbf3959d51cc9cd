"""A run and its episodes."""

from starlette.requests import Request

from agentworld_console import lists, rows
from agentworld_console.answer import Answer, ListView, Page, Sheet
from agentworld_console.sight import Sight


def run(sight: Sight, request: Request) -> Answer:
    """How it was opened, the state of its record, and a part of its episodes."""
    name, query = request.path_params["run"], request.query_params
    run = sight.run(name)
    values = {
        "run": run,
        "num_open": sight.library.ledger.counts.num_open_episodes(run=name),
        "record": sight.record(run, force=query.get("check") == "1"),
        "episodes": ListView.of(lists.episodes(sight, name), query.get("from", "")),
        "simulator": rows.simulator_link(run.simulator),
        "agents": [rows.agent_link(agent.ref) for agent in sight.agents_of([run])[name]],
    }
    return Page("run.html", values)


def sheet(sight: Sight, request: Request) -> Answer:
    """All of its episodes."""
    name = request.path_params["run"]
    sight.check_run(name)
    return Sheet(f"episodes-{name}", lists.episodes(sight, name, lists.OF_A_FILE))
