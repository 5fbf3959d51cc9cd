import copy
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.data.importers import importer_of
from agentworld.data.importers.base import ImportResult, form_of
from agentworld.data.importers.trace import SpanOptions
from agentworld.engine.process import LOOPBACK, free_port
from agentworld.errors import InputError, StoreError
from agentworld.storage.source import digest_of, files_of

IMPORTER = importer_of("mlflow")
PARIS = '{"name":"weather","arguments":{"city":"Paris"}}'


def read(source: object, **options: object) -> list[ImportResult]:
    (file,) = files_of(str(source))
    return list(IMPORTER.read(file, SpanOptions(**options), "text"))


def turns(item: ImportResult) -> list[tuple[str, str]]:
    assert item.trajectory, item.problem
    return [(turn.action, turn.observation) for turn in item.trajectory.turns]


def trace(**info: Any) -> dict[str, Any]:
    """A trace as MLflow's client writes it, of a model and a tool."""
    return {
        "info": {
            "trace_id": "tr-1",
            "state": "OK",
            "trace_metadata": {"mlflow.trace.session": "s"},
            "tags": {"task": "t"},
            "assessments": [{"expectation": {"value": "the answer"}}],
            **info,
        },
        "data": {
            "spans": [
                {
                    "trace_id": "lsL/j1nWp520Nf7Kr/KaOw==",
                    "span_id": "i82PZ8SD7Y8=",
                    "parent_span_id": None,
                    "name": "chat",
                    "start_time_unix_nano": 1_795_667_190_136_592_759,
                    "attributes": {
                        "mlflow.spanType": '"CHAT_MODEL"',
                        "mlflow.llm.model": '"small"',
                        "mlflow.chat.tools": '[{"function": {"name": "weather"}}]',
                    },
                },
                {
                    "trace_id": "lsL/j1nWp520Nf7Kr/KaOw==",
                    "span_id": "XCVRdF5UPks=",
                    "parent_span_id": "i82PZ8SD7Y8=",
                    "name": "weather",
                    "start_time_unix_nano": 1_795_667_190_193_349_926,
                    "end_time_unix_nano": 1_795_667_190_193_591_599,
                    "attributes": {
                        "mlflow.spanType": '"TOOL"',
                        "mlflow.spanInputs": '{"city": "Paris"}',
                        "mlflow.spanOutputs": '"\\"sunny\\""',
                    },
                },
            ]
        },
    }


def test_each_row_of_a_trace_file_is_one_trace(tmp_path):
    (tmp_path / "a.jsonl").write_text(f"{json.dumps(trace())}\n{json.dumps(trace(tags={}))}\n")
    assert form_of(files_of(str(tmp_path / "a.jsonl"))) == "mlflow"
    first, second = read(tmp_path / "a.jsonl", task="task")
    assert first.place == "trace tr-1"
    assert turns(first) == turns(second) == [(PARIS, '"sunny"')]
    assert first.trajectory.source == "small"
    assert (first.trajectory.task_id, second.trajectory.task_id) == ("t", "")
    assert [tool.name for tool in first.trajectory.tools] == ["weather"]
    assert first.notes == {"span: CHAT_MODEL": 1}
    assert "the answer" not in first.trajectory.model_dump_json()
    (item, _) = read(tmp_path / "a.jsonl")
    assert item.trajectory.task_id == "s"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (trace(state="IN_PROGRESS"), "info.state: the trace is in progress"),
        ({"info": {"trace_id": "tr-1"}, "data": None}, "cannot read the trace's spans"),
        ({"info": {"trace_id": "tr-1"}, "data": {"spans": []}}, "data.spans: List should have"),
        ({"info": {"trace_id": 1}, "data": {"spans": []}}, "info.trace_id"),
        ({"messages": []}, "info: Field required"),
    ],
)
def test_an_incomplete_or_invalid_trace_is_a_problem(tmp_path, value, problem):
    (tmp_path / "a.json").write_text(json.dumps(value))
    (item,) = read(tmp_path / "a.json")
    assert problem in item.problem


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    entries = dict(enumerate(value)) if isinstance(value, list) else value
    for key, child in entries.items() if isinstance(entries, dict) else ():
        yield value, key
        yield from _places(child)


@given(st.data())
def test_a_trace_with_any_wrong_value_is_an_episode_or_a_problem(tmp_path_factory, data):
    document = copy.deepcopy(trace())
    places = list(_places(document))
    container, key = places[data.draw(st.integers(0, len(places) - 1))]
    container[key] = data.draw(json_values)
    path = tmp_path_factory.mktemp("mlflow") / "a.json"
    path.write_text(json.dumps(document))
    (item,) = read(path)
    assert (item.trajectory is None) == bool(item.problem)
    IMPORTER.claims(document)


@pytest.fixture(scope="module")
def database(tmp_path_factory) -> Path:
    """The database of an MLflow with an experiment of three traces."""
    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", "")  # MLflow sets it; the patch restores it.
        trace_agents(path)
    return path


def trace_agents(path: Path) -> None:
    import mlflow

    mlflow.set_tracking_uri(f"sqlite:///{path}")
    experiment = mlflow.create_experiment("agents", str(path.parent / "files"))
    for city in ("Paris", "Rome", "Bonn"):
        start = mlflow.start_span_no_context
        agent = start("agent", tags={"city": city}, experiment_id=experiment)
        tool = start("weather", "TOOL", parent_span=agent, inputs={"city": city})
        tool.end(outputs="sunny" if city == "Paris" else {"sky": "grey"})
        start("broken", "TOOL", parent_span=agent, inputs={}).end(status="ERROR")
        agent.end()
        mlflow.flush_trace_async_logging()


@pytest.fixture
def _tracking(database, monkeypatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{database}")


@pytest.mark.waits
@pytest.mark.usefixtures("_tracking")
def test_an_experiment_is_read_in_pages_from_the_oldest_trace(monkeypatch):
    monkeypatch.setattr("agentworld.lineage.traces._PER_PAGE", 2)
    files = files_of("mlflow:agents")
    assert form_of(files) == "mlflow"
    items = read("mlflow:agents")
    assert [turns(item)[0][1] for item in items] == ["sunny", '{"sky": "grey"}', '{"sky": "grey"}']
    assert turns(items[0]) == [(PARIS, "sunny")]
    assert items[0].notes == {"span: UNKNOWN": 1, "call without a result": 1}
    assert len({item.place for item in items}) == 3
    assert digest_of("mlflow:agents") == digest_of("mlflow:agents")


@pytest.mark.waits
@pytest.mark.usefixtures("_tracking")
def test_traces_are_selected_by_an_mlflow_filter_and_an_experiment_id():
    (item,) = read("mlflow:1?filter=tags.city LIKE '%om%'")
    assert '"Rome"' in turns(item)[0][0]


@pytest.mark.waits
def test_a_trace_with_unreadable_spans_is_a_problem_and_the_others_are_read(
    database, tmp_path, monkeypatch
):
    database_copy = tmp_path / "mlflow.db"
    with sqlite3.connect(database) as source, sqlite3.connect(database_copy) as target:
        source.backup(target)
        rome_ids = "SELECT request_id FROM trace_tags WHERE value = 'Rome'"
        update = target.execute(f"UPDATE spans SET content = '{{' WHERE trace_id IN ({rome_ids})")
        assert update.rowcount == 3
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{database_copy}")
    first, bad_item, last = read("mlflow:agents")
    assert turns(first)
    assert turns(last)
    assert "cannot read" in bad_item.problem
    assert bad_item.place.startswith("trace tr-")


@pytest.mark.waits
@pytest.mark.usefixtures("_tracking")
@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("mlflow:none", "no experiment 'none' in MLflow; there is agents"),
        ("mlflow:", "no experiment '' in MLflow"),
        ("mlflow:agents?filter=what is this", "MLflow rejects the filter 'what is this'"),
        ("mlflow:agents?filter=tags.city = 'Oslo'", "no such trace: agents"),
    ],
)
def test_an_address_without_traces_or_with_a_bad_filter_is_refused(address, problem):
    with pytest.raises(InputError, match=problem):
        read(address)


@pytest.mark.waits
def test_an_unreachable_or_unset_mlflow_server_ends_the_import(monkeypatch):
    monkeypatch.setenv("AGENTWORLD_MLFLOW_PATIENCE_SECONDS", "0")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://{LOOPBACK}:{free_port()}")
    with pytest.raises(StoreError, match="did not respond"):
        read("mlflow:agents")
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    with pytest.raises(InputError, match="set MLFLOW_TRACKING_URI"):
        read("mlflow:agents")
