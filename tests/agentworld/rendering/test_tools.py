import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.records.episode import EpisodeOpening
from agentworld.records.tool import Tool
from agentworld.rendering.tools import action_space, read_tool, tool_fields

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-9, 9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
SCHEMAS = st.dictionaries(st.text(), VALUES, max_size=3).map(
    lambda schema: {**schema, "type": "object"}
)
TOOLS = st.lists(
    st.builds(
        Tool,
        name=st.text("abc.-_", min_size=1, max_size=3),
        description=st.text(),
        input_schema=SCHEMAS,
    ),
    max_size=3,
    unique_by=lambda tool: tool.name,
)


def test_the_action_space_without_tools_is_empty():
    assert action_space(()) == ""


def test_each_tool_is_rendered_as_one_line_in_mcp_format():
    schema = {"type": "object", "properties": {"path": {"type": "string", "maxLength": 9.0}}}
    tool = Tool(name="read", description='Says "hé"\n', input_schema=schema)
    assert action_space([tool, Tool(name="ls", input_schema={"type": "object"})]) == (
        '{"name":"read","description":"Says \\"hé\\"\\n","inputSchema":'
        '{"properties":{"path":{"maxLength":9,"type":"string"}},"type":"object"}}\n'
        '{"name":"ls","inputSchema":{"type":"object"}}'
    )


def test_a_tool_line_contains_the_output_schema_and_the_effect_if_set():
    schema = {"type": "object"}
    tool = Tool(name="ls", input_schema=schema, output_schema=schema, effect="write")
    assert action_space([tool]) == (
        '{"name":"ls","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},'
        '"annotations":{"readOnlyHint":false}}'
    )


@pytest.mark.parametrize("effect", ["", "read", "write"])
def test_a_tool_is_read_back_unchanged_from_its_mcp_fields(effect):
    tool = Tool(name="ls", input_schema={"type": "object"}, output_schema={"a": 1}, effect=effect)
    assert read_tool(tool_fields(tool)) == tool
    any_output = tool.model_copy(update={"output_schema": {}})
    assert read_tool(tool_fields(any_output)) == any_output
    assert read_tool(tool_fields(tool), name="a__ls").name == "a__ls"


@pytest.mark.compute
@given(TOOLS)
def test_every_line_contains_its_tools_name_description_and_schema(tools):
    lines = [json.loads(line) for line in action_space(tools).split("\n") if line]
    rows = [(line["name"], line.get("description", ""), line["inputSchema"]) for line in lines]
    assert rows == [(tool.name, tool.description, tool.input_schema) for tool in tools]


@pytest.mark.compute
@given(TOOLS)
def test_a_reloaded_opening_gives_the_same_action_space(tools):
    opening = EpisodeOpening(run="r", tools=tools)
    loaded = EpisodeOpening.model_validate_json(opening.text)
    assert action_space(loaded.tools) == action_space(opening.tools)
