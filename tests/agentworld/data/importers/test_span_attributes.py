import json
from typing import Any

import pytest

from agentworld.data.importers.span_attributes import kind_of, tool_call_of

EXECUTE_TOOL = {"gen_ai.operation.name": "execute_tool"}


def day_call(name: str) -> tuple[str, Any]:
    return name, {"day": 1}


@pytest.mark.parametrize(
    ("attributes", "call", "result"),
    [
        (
            {
                **EXECUTE_TOOL,
                "gcp.vertex.agent.tool_call_args": '{"day": 1}',
                "gcp.vertex.agent.tool_response": '{"result": "rain"}',
            },
            day_call("span 0"),
            '{"result": "rain"}',
        ),
        (
            {
                "openinference.span.kind": "TOOL",
                "tool.name": "weather",
                "input.value": '{"day": 1}',
                "output.value": '{"type": "tool", "tool_call_id": "1", "content": "rain"}',
            },
            day_call("weather"),
            "rain",
        ),
        (
            {
                "traceloop.span.kind": "tool",
                "traceloop.entity.name": "weather",
                "traceloop.entity.input": '{"args": [], "kwargs": {"day": 1}}',
                "traceloop.entity.output": '"rain"',
            },
            day_call("weather"),
            "rain",
        ),
        (
            {
                "traceloop.span.kind": "tool",
                "traceloop.entity.name": "weather",
                "traceloop.entity.input": '{"input_str": "{}", "inputs": {"day": 1}, "kwargs": {}}',
                "traceloop.entity.output": json.dumps(
                    {
                        "output": {
                            "lc": 1,
                            "id": ["a", "ToolMessage"],
                            "kwargs": {"content": "rain"},
                        },
                        "kwargs": {},
                    }
                ),
            },
            day_call("weather"),
            "rain",
        ),
        (
            {
                "langfuse.observation.type": "tool",
                "langfuse.observation.input": '{"args": [1], "kwargs": {}}',
                "langfuse.observation.output": '"rain"',
            },
            ("span 0", {"args": [1], "kwargs": {}}),
            '"rain"',
        ),
        (
            {"lmnr.span.type": "TOOL", "lmnr.span.input": '{"day": 1}', "lmnr.span.output": "[1]"},
            day_call("span 0"),
            "[1]",
        ),
        (
            {
                "ai.operationId": "ai.toolCall",
                "ai.toolCall.name": "weather",
                "ai.toolCall.args": '{"day": 1}',
                "ai.toolCall.result": '"rain"',
            },
            day_call("weather"),
            "rain",
        ),
        (
            {
                "mlflow.spanType": "TOOL",
                "mlflow.spanInputs": {"day": 1},
                "mlflow.spanOutputs": {"sky": "grey"},
            },
            day_call("span 0"),
            '{"sky": "grey"}',
        ),
    ],
)
def test_every_attribute_naming_convention_is_read(attributes, call, result):
    tool_call = tool_call_of("span 0", attributes)
    assert tool_call[:2] == call
    assert tool_call.result == result


def test_the_first_convention_with_a_value_is_used():
    attributes = {
        **EXECUTE_TOOL,
        "gen_ai.output": '"None"',
        "mlflow.spanType": "TOOL",
        "mlflow.spanInputs": {"day": 1},
        "mlflow.spanOutputs": "None",
    }
    tool_call = tool_call_of("weather", attributes)
    assert tool_call[:3] == (*day_call("weather"), '"None"')


def test_a_span_of_another_kind_is_no_call():
    attributes = {"openinference.span.kind": "LLM", "input.value": "{}", "output.value": "x"}
    assert tool_call_of("a", attributes) is None
    assert kind_of(attributes) == "LLM"
    assert kind_of({"openinference.span.kind": 1}) == "other"
