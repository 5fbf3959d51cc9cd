import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.data.importers import importer_of
from agentworld.data.importers.base import ImportResult, form_of
from agentworld.data.importers.trace import SpanOptions
from agentworld.storage.source import files_of
from make.examples import examples

EXECUTE_TOOL = {"gen_ai.operation.name": "execute_tool"}
IMPORTER = importer_of("spans")
TRACE = (1 << 127) + 1
"""More than 64 bits have, and than a double can tell from its neighbour."""


def read(path: Path, **options: object) -> list[ImportResult]:
    (file,) = files_of(str(path))
    return list(IMPORTER.read(file, SpanOptions(**options), "text"))


def read_document(tmp_path: Path, value: object, **options: object) -> list[ImportResult]:
    (tmp_path / "a.json").write_text(json.dumps(value))
    return read(tmp_path / "a.json", **options)


def read_lines(tmp_path: Path, *values: object) -> list[ImportResult]:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(value) + "\n" for value in values))
    return read(tmp_path / "a.jsonl")


def span(number: int, attributes: dict[str, Any], *, trace: object = TRACE, **fields: Any) -> Any:
    """A span as any-agent writes it; its number is added to its times in nanoseconds."""
    return {
        "name": f"span {number}",
        "context": {"trace_id": trace, "span_id": (1 << 63) + number},
        "parent": {"trace_id": None, "span_id": fields.pop("parent", None)},
        "start_time": 1_758_000_000_000_000_000 + number,
        "end_time": 1_758_000_000_000_000_500 + number,
        "attributes": attributes,
        **fields,
    }


def tool_span(number: int, result: str | None = "rain", **fields: Any) -> Any:
    attributes = {
        **EXECUTE_TOOL,
        "gen_ai.tool.name": fields.pop("tool", "weather"),
        "gen_ai.tool.args": fields.pop("arguments", json.dumps({"day": number})),
        "gen_ai.output": result,
    }
    return span(
        number, {key: value for key, value in attributes.items() if value is not None}, **fields
    )


def model_span(number: int, **attributes: Any) -> Any:
    return span(
        number, {"gen_ai.operation.name": "call_llm", "gen_ai.request.model": "small"} | attributes
    )


def turns(item: ImportResult) -> list[tuple[str, str]]:
    assert item.trajectory, item.problem
    return [(turn.action, turn.observation) for turn in item.trajectory.turns]


def call(day: int, tool: str = "weather") -> str:
    return f'{{"name":"{tool}","arguments":{{"day":{day}}}}}'


def test_a_document_of_spans_is_an_episode_ordered_by_start_time(tmp_path):
    document = {"spans": [tool_span(3, "sun"), tool_span(2), model_span(1)], "final_output": "x"}
    (item,) = read_document(tmp_path, document)
    assert turns(item) == [(call(2), "rain"), (call(3), "sun")]
    assert item.place == f"trace {TRACE}"
    assert item.trajectory.source == "small"
    assert item.trajectory.turns[0].time == "1758000000000000502"
    assert item.notes == {"span: call_llm": 1}
    assert [event.place for event in item.events] == [
        "spans[2]",
        "spans[1]",
        "spans[1]",
        "spans[0]",
        "spans[0]",
    ]
    assert form_of(files_of(str(tmp_path / "a.json"))) == "spans"


def test_spans_in_lines_are_grouped_by_trace_in_any_order(tmp_path):
    lines = [tool_span(number, trace=TRACE + number % 2) for number in (4, 1, 2, 3)]
    first, second = read_lines(tmp_path, *lines)
    assert (first.place, second.place) == (f"trace {TRACE}", f"trace {TRACE + 1}")
    assert turns(first) == [(call(2), "rain"), (call(4), "rain")]
    assert turns(second) == [(call(1), "rain"), (call(3), "rain")]
    assert first.events[0].place == "line 3"


def otlp(*spans: dict[str, Any]) -> dict[str, Any]:
    """An OTLP export: ids in hexadecimal, times as texts, attributes as lists."""
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": [*spans]}]}]}


def otlp_span(number: int, result: object, trace: str = "5b8efff798038103d269b633813fc60c") -> Any:
    return {
        "traceId": trace,
        "spanId": f"{number:016x}",
        "parentSpanId": "",
        "name": "execute_tool weather",
        "startTimeUnixNano": str(1_758_000_000_000_000_000 + number),
        "endTimeUnixNano": str(1_758_000_000_000_000_001 + number),
        "attributes": [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
            {"key": "gen_ai.tool.name", "value": {"stringValue": "weather"}},
            {
                "key": "gen_ai.tool.call.arguments",
                "value": {
                    "kvlistValue": {"values": [{"key": "day", "value": {"intValue": str(number)}}]}
                },
            },
            {"key": "gen_ai.tool.call.result", "value": result},
        ],
    }


def test_otlp_exports_with_parts_of_several_traces_are_joined_by_trace(tmp_path):
    items = read_lines(
        tmp_path,
        otlp(otlp_span(2, {"stringValue": "sun"}), otlp_span(7, {"stringValue": "fog"}, "f" * 32)),
        otlp(otlp_span(1, {"arrayValue": {"values": [{"doubleValue": 0.5}, {"boolValue": True}]}})),
    )
    assert [item.place for item in items] == [
        f"trace {'f' * 32}",
        "trace 5b8efff798038103d269b633813fc60c",
    ]
    assert turns(items[1]) == [(call(1), "[0.5, true]"), (call(2), "sun")]
    assert items[1].events[0].place == "line 2, resourceSpans[0].scopeSpans[0].spans[0]"
    assert form_of(files_of(str(tmp_path / "a.jsonl"))) == "spans"


def test_iso_times_and_text_ids_of_the_python_sdk_are_read(tmp_path):
    late_span, early_span = (
        {
            "name": "weather",
            "context": {"trace_id": "0xf1", "span_id": f"0x0{number}", "trace_state": "[]"},
            "parent_id": None,
            "start_time": f"2025-09-16T12:43:15.00000000{number}Z",
            "end_time": None,
            "attributes": {
                "openinference.span.kind": "TOOL",
                "input.value": "{}",
                "output.value": "x",
            },
        }
        for number in (2, 1)
    )
    (item,) = read_lines(tmp_path, late_span, early_span)
    assert [turn.time for turn in item.trajectory.turns] == [
        "1758026595000000001",
        "1758026595000000002",
    ]


def test_quoted_texts_in_mlflow_spans_are_unquoted(tmp_path):
    attributes = {"mlflow.spanType": '"TOOL"', "mlflow.spanInputs": "{}", "gen_ai.tool.name": '"a"'}
    spans = [
        span(1, attributes | {"mlflow.spanOutputs": '"rain"'}),
        span(2, attributes | {"mlflow.spanOutputs": '["rain"]'}),
    ]
    (item,) = read_document(tmp_path, {"spans": spans})
    assert [observation for _, observation in turns(item)] == ["rain", '["rain"]']


@pytest.mark.parametrize("result", ["{}", "null", '"None"', "None", "", '{\n  "a": 1\n}', "[1, 2]"])
def test_a_result_is_read_unchanged(tmp_path, result):
    (item,) = read_document(tmp_path, {"spans": [tool_span(1, result)]})
    assert turns(item) == [(call(1), result)]


def test_arguments_that_are_no_object_stay_as_the_agent_wrote_them(tmp_path):
    (item,) = read_document(tmp_path, {"spans": [tool_span(1, arguments="day one"), tool_span(2)]})
    assert turns(item)[0] == ('{"name": "weather", "arguments": "day one"}', "rain")


def test_spans_without_arguments_or_a_result_are_counted_and_not_paired(tmp_path):
    bare_span = tool_span(3)
    del bare_span["attributes"]["gen_ai.tool.args"]
    (item,) = read_document(
        tmp_path, {"spans": [tool_span(1), tool_span(2, None), bare_span, tool_span(4, "sun")]}
    )
    assert turns(item) == [(call(1), "rain"), (call(4), "sun")]
    assert item.notes == {"call without a result": 1, "tool span without arguments": 1}


def test_calls_of_the_named_harness_tools_are_omitted_and_counted(tmp_path):
    document = {"spans": [tool_span(1), tool_span(2, tool="final_answer")]}
    (item,) = read_document(tmp_path, document, harness_tools=("final_answer",))
    assert turns(item) == [(call(1), "rain")]
    assert item.notes == {"call of a tool of the harness": 1}
    assert [tool.name for tool in item.trajectory.tools] == ["weather"]
    (full_item,) = read_document(tmp_path, document)
    assert len(turns(full_item)) == 2


def test_nested_spans_of_one_call_are_one_turn(tmp_path):
    outer_span, middle_span = tool_span(1), span(2, {}, parent=(1 << 63) + 1)
    inner_span = tool_span(3, "RAIN", arguments='{"day":1}', parent=(1 << 63) + 2)
    other_span = tool_span(4, parent=(1 << 63) + 1)
    (item,) = read_document(tmp_path, {"spans": [inner_span, middle_span, other_span, outer_span]})
    assert turns(item) == [(call(1), "rain"), (call(4), "rain")]
    assert item.notes == {"span: other": 1, "inner span of the same call": 1}


def test_spans_with_missing_or_cyclic_parents_are_read(tmp_path):
    ring = [
        tool_span(1, parent=(1 << 63) + 2),
        tool_span(2, parent=(1 << 63) + 1),
        tool_span(3, parent=7),
    ]
    (item,) = read_document(tmp_path, {"spans": ring})
    assert len(turns(item)) == 3


def test_a_span_that_was_exported_twice_is_one_turn(tmp_path):
    (item,) = read_lines(tmp_path, tool_span(1), tool_span(2), tool_span(1))
    assert len(turns(item)) == 2
    assert item.notes == {"copy of a span": 1}


def test_two_different_spans_with_one_id_are_both_read(tmp_path):
    (item,) = read_lines(tmp_path, tool_span(1, None), {**tool_span(1), "start_time": 7})
    assert turns(item) == [(call(1), "rain")]
    assert item.notes == {"call without a result": 1}


def test_a_result_of_exactly_cut_at_characters_is_cut(tmp_path):
    document = {"spans": [tool_span(1, "rain"), tool_span(2, "sun")]}
    (item,) = read_document(tmp_path, document, cut_at=4)
    assert [turn.is_cut for turn in item.trajectory.turns] == [True, False]
    (item,) = read_document(tmp_path, {"spans": [tool_span(1, "")]})
    assert not item.trajectory.turns[0].is_cut


def test_the_session_and_the_tools_of_a_trace_are_imported(tmp_path):
    schema = {"type": "object", "properties": {"day": {"type": "integer"}}}
    tool = {"type": "function", "function": {"name": "weather", "parameters": schema}}
    other_tool = json.dumps({"name": "other", "input_schema": schema})
    spans = [
        model_span(1, **{"session.id": "s", "gen_ai.tool.definitions": json.dumps([tool])}),
        model_span(2, **{"llm.tools.0.tool.json_schema": other_tool, "my.task": "t"}),
        tool_span(3),
        tool_span(4, tool="undefined"),
    ]
    (item,) = read_document(tmp_path, {"spans": spans})
    assert item.trajectory.task_id == "s"
    assert [tool.name for tool in item.trajectory.tools] == ["weather", "other", "undefined"]
    assert item.trajectory.tools[0].input_schema == schema
    (item,) = read_document(tmp_path, {"spans": spans}, task="my.task", source="me")
    assert (item.trajectory.task_id, item.trajectory.source) == ("t", "me")


def test_a_trace_without_a_call_is_an_episode_without_a_turn(tmp_path):
    (item,) = read_document(tmp_path, {"spans": [model_span(1)]})
    assert turns(item) == []


def test_an_invalid_span_is_a_problem_of_its_trace_only(tmp_path):
    wrong_span = tool_span(2, start_time="yesterday")
    good_item, bad_item = read_lines(tmp_path, tool_span(1, trace="a"), tool_span(1), wrong_span)
    assert turns(good_item) == [(call(1), "rain")]
    assert bad_item.place == f"trace {TRACE}"
    assert bad_item.problem.startswith("line 3: start_time")
    assert "neither nanoseconds nor a time" in bad_item.problem


def test_a_floating_point_trace_id_is_refused(tmp_path):
    (item,) = read_document(tmp_path, {"spans": [tool_span(1, trace=1.2e38)]})
    assert "context.trace_id" in item.problem


def test_rows_without_spans_are_problems(tmp_path):
    items = read_lines(
        tmp_path, {"resourceLogs": []}, {"spans": []}, 7, otlp(), {"resourceSpans": 1}
    )
    assert [item.place for item in items] == [f"line {number}" for number in range(1, 6)]
    assert all(item.problem for item in items)


@pytest.mark.parametrize(
    "value",
    [
        {"messages": [{"role": "user"}]},
        {"spans": []},
        {"spans": [{"text": "a span of text"}]},
        {"info": {"trace_id": "tr-1"}, "data": {"spans": [span(1, {})]}},
        [],
        None,
    ],
)
def test_rows_of_other_formats_are_not_claimed(value):
    assert not IMPORTER.claims(value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("\ud800\x00"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    entries = dict(enumerate(value)) if isinstance(value, list) else value
    children = entries.items() if isinstance(entries, dict) else ()
    return [path, *(inner for key, child in children for inner in _paths(child, (*path, key)))]


DOCUMENTS = [
    {"spans": [model_span(1), tool_span(2), tool_span(3, parent=(1 << 63) + 2)]},
    otlp(otlp_span(1, {"stringValue": "sun"}), otlp_span(2, {"arrayValue": {"values": []}})),
]


@examples(150)
@given(st.data())
def test_a_record_with_any_wrong_value_is_an_episode_or_a_problem(tmp_path_factory, data):
    document = copy.deepcopy(data.draw(st.sampled_from(DOCUMENTS)))
    path = data.draw(st.sampled_from(_paths(document)))
    value = data.draw(json_values)
    target = document
    for key in path[:-1]:
        target = target[key]
    if path:
        target[path[-1]] = value
    else:
        document = value
    items = read_document(tmp_path_factory.mktemp("spans"), document)
    assert items or document == []
    assert all((item.trajectory is None) == bool(item.problem) for item in items)
    IMPORTER.claims(document)


def test_deep_nesting_is_a_problem(tmp_path):
    value: Any = "x"
    for _ in range(900):
        value = {"kvlistValue": {"values": [{"key": "k", "value": value}]}}
    deep_span = otlp_span(1, {"stringValue": "x"})
    deep_span["attributes"].append({"key": "deep", "value": value})
    (tmp_path / "a.json").write_text("[" * 100_000)
    assert read(tmp_path / "a.json")[0].problem
    assert not IMPORTER.claims(otlp(deep_span))
