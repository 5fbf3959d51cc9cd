"""Agents in use, their grades and their states."""

import csv
import io

import pytest

import make.console
from agentworld.lineage.base import Agent
from make import records


def rows(client, path="/in-use.csv"):
    return list(csv.DictReader(io.StringIO(client.get(path).text)))


@pytest.fixture
def auditor_and_history(copy, tmp_path):
    """An auditor's client, and the history that it reads."""
    return make.console.client(make.console.app(copy.library, tmp_path), "office-auditor"), copy


@pytest.mark.compute
def test_agents_in_use_are_listed_with_alias_grade_and_time(auditor, content):
    robot, shop = rows(auditor)
    assert (robot["agent"], robot["in use as"]) == (str(content.rival), "robot")
    assert (shop["agent"], shop["in use as"]) == (str(content.agent), "shop")
    assert (shop["state"], shop["grade"], shop["by"]) == ("current", "observed", "office/jo")
    assert shop["since"][:2] == "20"
    page = auditor.get("/in-use").text
    assert f'href="/agents/{content.agent}"' in page
    assert "broken" not in page


def test_an_agent_alias_is_not_listed_as_a_simulator_alias(auditor, content):
    aliases = rows(auditor, f"/simulators/{content.simulator}/aliases.csv")
    assert [row["alias"] for row in aliases] == ["shell-stable"]
    assert [row["aliases"] for row in rows(auditor, "/simulators.csv")] == ["shell-stable"]


def test_a_tenant_sees_only_its_own_agents_in_use_without_the_by_column(acme, content):
    (shop,) = rows(acme)
    assert shop["agent"] == str(content.agent)
    assert "by" not in shop


@pytest.mark.compute
def test_an_agent_whose_simulator_alias_moved_needs_revalidation(auditor_and_history):
    auditor, history = auditor_and_history
    history.move_on()
    assert {row["state"] for row in rows(auditor)} == {"revalidate"}
    assert "shell-stable moved on to" in auditor.get("/in-use").text


def test_an_agent_out_of_use_is_not_listed(auditor_and_history):
    auditor, history = auditor_and_history
    history.names.end(f"{history.agent.name}@shop", "jo", "end")
    assert [row["in use as"] for row in rows(auditor)] == ["robot"]


@pytest.mark.compute
def test_a_difference_from_the_registry_is_shown_only_to_the_auditor(auditor_and_history, tmp_path):
    auditor, history = auditor_and_history
    history.library.registry.remove_alias(history.agent.name, "shop")
    assert "mirror differs in alias shop" in auditor.get("/in-use").text
    acme = make.console.client(make.console.app(history.library, tmp_path), "acme-agent")
    assert "mirror differs" not in acme.get("/in-use").text


@pytest.mark.compute
def test_a_changed_deployment_statement_is_reported_as_unverified(auditor_and_history):
    auditor, history = auditor_and_history
    with history.library.ledger._database.engine.begin() as database:
        database.exec_driver_sql("UPDATE attestations SET at = 'x' WHERE kind = 'alias'")
    text = auditor.get("/in-use").text
    assert text.count("does not verify") == 2
    assert "No agent is in use" in text


@pytest.mark.compute
def test_many_agents_are_compared_with_the_registry_only_on_request(
    auditor_and_history, monkeypatch
):
    auditor, copy = auditor_and_history
    copy.library.registry.remove_alias(copy.agent.name, "shop")
    monkeypatch.setattr("agentworld_console.scoped_view.MOST_AGENTS", 1)
    assert "mirror differs" not in auditor.get("/in-use").text
    assert "compare them with the registry now" in auditor.get("/in-use").text
    assert "mirror differs" in auditor.get("/in-use?check=1").text


def test_an_agent_whose_record_was_changed_is_disputed(auditor_and_history):
    auditor, history = auditor_and_history
    history.library.registry.version(history.agent).tags["edge"] = records.digest("another")
    grades = {row["in use as"]: row["grade"] for row in rows(auditor)}
    assert grades == {"robot": "observed", "shop": "disputed"}


def test_the_runs_of_a_simulator_show_grade_and_traffic_of_each_agent(auditor, content):
    path = f"/simulators/{content.simulator}/runs.csv"
    runs = {row["run"]: row for row in rows(auditor, path)}
    run = runs[content.run]
    assert (run["registered agent"], run["grade"]) == (str(content.agent), "observed")
    assert (run["episodes"], run["steps"]) == ("3", "3")
    assert (runs[content.open_run]["registered agent"], runs[content.open_run]["grade"]) == (
        "open",
        "",
    )


def test_a_closed_run_shows_the_signed_traffic(auditor_and_history):
    auditor, history = auditor_and_history
    with history.library.ledger._database.engine.begin() as database:
        database.exec_driver_sql("UPDATE runs SET num_steps = 999")
    runs = {row["run"]: row for row in rows(auditor, f"/simulators/{history.simulator}/runs.csv")}
    assert (runs[history.run]["steps"], runs[history.open_run]["steps"]) == ("3", "999")


def test_each_agent_of_a_run_has_a_row(auditor_and_history, tmp_path):
    auditor, history = auditor_and_history
    agent = history.library.registry.agent(history.agent)
    twin = Agent(checkpoint=agent.checkpoint, run=agent.run)
    ref = history.library.registry.register_agent("twin", twin, tmp_path)
    agents = rows(auditor, f"/simulators/{history.simulator}/runs.csv")
    grades = {row["registered agent"]: row["grade"] for row in agents if row["run"] == history.run}
    assert grades == {str(history.agent): "observed", str(ref): "disputed"}
