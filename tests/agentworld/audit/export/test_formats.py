"""The lines of every form."""

import csv
import json
import shutil
import sqlite3
import uuid
from contextlib import closing
from datetime import datetime
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import make.agent
import make.service
from agentworld.audit.export.formats import Form, _row, lines_of
from agentworld.audit.read.sources import Sources
from agentworld.errors import EvidenceError
from agentworld.lineage.base import Agent
from agentworld.lineage.memory import MemoryRegistry
from agentworld.operations.declarations import erase_episode
from agentworld.operations.simulators import set_alias
from agentworld.records.base import now
from agentworld.records.statements.registration import RegisteredVersion
from agentworld.records.statements.restore import Restore
from agentworld.signing.envelope import verify
from make import records
from make.statement import file
from make.story import BASE, DATA, STARTED, Story, moment, story
from make.strays import RegistryWithStrays


@pytest.fixture
def history(tmp_path) -> Story:
    return story(tmp_path)


@pytest.mark.parametrize("form", get_args(Form))
def test_exporting_a_form_twice_gives_the_same_lines(history, form):
    lines = list(lines_of(form, history.sources))
    assert lines == list(lines_of(form, history.sources))
    assert not any("\n" in line for line in lines)


def test_the_csv_export_has_a_row_for_each_edge(history):
    (row,) = csv.DictReader(lines_of("csv", history.sources))
    assert row == {
        "agent": "hero",
        "version": "1",
        "artifact": history.run.final_weights,
        "run": history.run.id,
        "simulator": history.simulator,
        "world_model": "world@1",
        "data": DATA,
        "episodes": "1",
        "steps": "2",
        "grade": "disputed",
    }


def test_the_csv_row_of_an_agent_with_an_unknown_run_has_empty_cells(history):
    agent = Agent(checkpoint=records.checkpoint("agent"), run="=1+1")
    history.sources.registry.register_agent("claimed", agent, history.store / "agent")
    row, _ = csv.DictReader(lines_of("csv", history.sources))
    assert (row["agent"], row["run"]) == ("claimed", "'=1+1")
    assert {row[name] for name in ("simulator", "world_model", "data", "episodes")} == {""}


@given(st.lists(st.text(st.characters(exclude_characters="\n\r\0")), min_size=2))
def test_csv_cells_are_never_formulas_and_keep_their_values(cells):
    (values,) = csv.reader([_row(tuple(cells))])
    assert not any(cell[:1] in ("=", "+", "-", "@", "\t") for cell in values if cell)
    assert [cell.removeprefix("'") for cell in values] == [cell.removeprefix("'") for cell in cells]


def test_the_in_toto_export_contains_every_signed_statement_and_each_verifies(history):
    keys = history.sources.step_keys | history.sources.evidence.trusted
    lines = list(lines_of("in-toto", history.sources))
    kinds = [verify(line.encode(), keys).predicate_type for line in lines]
    assert kinds == [
        "urn:agentworld:run-checkpoint:v1",
        "urn:agentworld:run-weights:v1",
        "urn:agentworld:registered-version:v1",
        "urn:agentworld:registered-version:v1",
        "urn:agentworld:registration:v1",
        "urn:agentworld:registration:v1",
    ]


def kinds(sources: Sources) -> list[str]:
    """The types of all statements; each of them verifies."""
    keys = sources.step_keys | sources.evidence.trusted
    lines = lines_of("in-toto", sources)
    types = [verify(line.encode(), keys).predicate_type for line in lines]
    return [name.removeprefix("urn:agentworld:").removesuffix(":v1") for name in types]


@pytest.fixture(scope="module")
def declared(tmp_path_factory) -> tuple[Sources, dict[str, datetime]]:
    """A store with a statement of every kind, and moments after each of them."""
    store = tmp_path_factory.mktemp("declared")
    moments = {"nothing": moment()}
    agent = make.agent.registered(store, MemoryRegistry())  # after the first moment
    moments["an edge"] = moment()
    set_alias("stable", agent.simulator.digest, store, "ada")
    moments["a move"] = moment()
    (episode,) = agent.ledger.episodes(agent.agent.run)
    erase_episode(episode.id, store, "ada")
    moments["an erasure"] = moment()
    agent.use()
    moments["a use"] = moment()
    name = "alias-changes/gone/00.dsse.json"
    agent.statement_signer.declare(Restore(run="", lost=(name,), reason="r", by="ada", at=now()))
    moments["a restore"] = moment()
    return agent.sources, moments


def test_the_in_toto_export_contains_all_statements_of_the_ledger(declared):
    sources, _ = declared
    assert kinds(sources) == [
        "run-checkpoint",
        "ledger-genesis",
        "edge",
        "alias-change",
        "erasure",
        "alias-change",
        "restore",
    ]


def test_an_export_at_a_time_contains_the_statements_signed_by_that_time(declared):
    sources, moments = declared
    kinds_by_moment = {name: kinds(sources.as_of(time)) for name, time in moments.items()}
    edge = ["run-checkpoint", "ledger-genesis", "edge"]
    move = [*edge, "alias-change"]
    assert kinds_by_moment == {
        "nothing": [],
        "an edge": edge,
        "a move": move,
        "an erasure": [*move, "erasure"],
        "a use": [*move, "erasure", "alias-change"],
        "a restore": kinds(sources),
    }


def test_an_export_uses_the_signed_time_and_not_the_time_of_the_row(declared, tmp_path):
    sources, moments = declared
    shutil.copytree(sources.store, tmp_path, dirs_exist_ok=True)
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as database, database:
        database.execute("UPDATE attestations SET at = '2100-01-01T00:00:00.000+00:00'")
    changed_sources = sources._replace(ledger=make.service.ledger(tmp_path), at=moments["a use"])
    assert kinds(changed_sources) == kinds(sources.as_of(moments["a use"]))


@pytest.mark.parametrize("form", get_args(Form))
def test_exports_at_later_times_extend_exports_at_earlier_times(history, form):
    current_lines = list(lines_of(form, history.sources))
    earlier_lines = set()
    for name in history.moments:
        lines = list(lines_of(form, history.at(name)))
        assert [line for line in current_lines if line in set(lines)] == lines
        assert earlier_lines <= set(lines)
        earlier_lines = set(lines)
    assert earlier_lines == set(current_lines)


def test_each_form_at_a_time_has_only_lines_for_records_of_that_time(history):
    counts = {
        form: [len(list(lines_of(form, history.at(name)))) for name in history.moments]
        for form in get_args(Form)
    }
    # Before, a world, a run, weights, an agent; the run's one checkpoint covers its closing.
    assert counts == {
        "in-toto": [0, 2, 2, 4, 6],
        "csv": [1, 1, 1, 1, 2],
        "openlineage": [0, 6, 6, 6, 10],
    }


@pytest.mark.parametrize("form", ["csv", "openlineage"])
def test_exporting_an_unsigned_agent_with_a_garbled_run_raises_an_error(tmp_path, form):
    history = story(tmp_path, signed=False)
    with sqlite3.connect(tmp_path / "ledger.db") as database:
        database.execute("UPDATE runs SET log_length = -1")
    with pytest.raises(EvidenceError, match=f"run {history.run.id}"):
        list(lines_of(form, history.sources))


@pytest.mark.parametrize("form", get_args(Form))
def test_an_unreadable_registry_version_changes_no_export(tmp_path, form):
    registry = RegistryWithStrays()
    history = story(tmp_path, registry)
    lines_before = list(lines_of(form, history.sources))
    registry.stray(registry.world_model(history.world_model))
    assert list(lines_of(form, history.sources)) == lines_before


@pytest.mark.parametrize("signature", ["no JSON", '"\\ud800"'])
def test_an_invalid_signature_is_skipped_only_for_an_unsigned_version(history, signature):
    lines_before = list(lines_of("in-toto", history.sources))
    agent = history.sources.registry.agent(history.agent)
    registry = history.sources.registry
    ref = registry.register_agent("a-stray", agent, history.store / "agent", signature=signature)
    assert list(lines_of("in-toto", history.sources)) == lines_before
    fields = {"registered_as": ref.name, "version": ref.version, "artifact": agent.artifact}
    links = registry.stored(ref).links
    statement = RegisteredVersion(
        **fields, run=agent.run, record=agent.digest, links=links, at=now()
    )
    file(statement, history.store)
    with pytest.raises(EvidenceError, match="a-stray@1 was registered with is garbled"):
        list(lines_of("in-toto", history.sources))


def test_an_invalid_signature_of_a_run_raises_an_error_that_names_the_run(history):
    with sqlite3.connect(history.store / "ledger.db") as database:
        database.execute("UPDATE runs SET signature = 'two\nlines'")
    with pytest.raises(
        EvidenceError, match=f"run {history.run.id} was closed with is garbled: it is not JSON"
    ):
        list(lines_of("in-toto", history.sources))


def events(history: Story) -> list[dict]:
    return [json.loads(line) for line in lines_of("openlineage", history.sources)]


def inputs_and_outputs(history: Story) -> dict[str, tuple[set[str], set[str]]]:
    """The inputs and outputs of each job."""
    return {
        event["job"]["name"]: tuple(
            {dataset["name"] for dataset in event[side]} for side in ("inputs", "outputs")
        )
        for event in events(history)
        if event["eventType"] == "COMPLETE"
    }


def test_run_events_lead_from_the_agent_to_the_data(history):
    jobs, world = (
        inputs_and_outputs(history),
        history.sources.registry.world_model(history.world_model),
    )
    cpt, sft, rl = world.stages
    assert jobs == {
        "cpt": ({BASE, cpt.data}, {cpt.artifact}),
        "sft": ({cpt.artifact, DATA}, {sft.artifact}),
        "rl": ({sft.artifact, DATA}, {rl.artifact}),
        "simulate": ({rl.artifact}, {history.simulator}),
        "agent": ({STARTED, history.simulator}, {history.run.final_weights}),
    }


def test_every_run_event_has_all_fields_and_every_run_starts_and_completes(history):
    states: dict[str, list[str]] = {}
    for event in events(history):
        states.setdefault(event["run"]["runId"], []).append(event["eventType"])
        assert uuid.UUID(event["run"]["runId"]).version == 5
        assert datetime.fromisoformat(event["eventTime"]).tzinfo
        assert {"producer", "schemaURL", "job", "inputs", "outputs"} <= event.keys()
        for dataset in event["inputs"] + event["outputs"]:
            assert dataset["facets"]["version"]["datasetVersion"] == dataset["name"]
            for facet in dataset["facets"].values():
                assert {"_producer", "_schemaURL"} <= facet.keys()
    assert list(states.values()) == [["START", "COMPLETE"]] * 5


def test_an_agents_event_contains_its_episode_and_step_counts(history):
    agent = next(event for event in events(history) if event["job"]["name"] == "agent")
    tags = {tag["key"]: tag["value"] for tag in agent["run"]["facets"]["tags"]["tags"]}
    counts = {"episodes": "1", "steps": "2"}
    assert tags == {"agent": "hero@1", "run": history.run.id, "grade": "disputed", **counts}
