import pytest
from pydantic import ValidationError

from agentworld.records.episode import EpisodeOpening
from agentworld.records.tool import Tool

SCHEMA = {"type": "object"}


def test_the_text_of_an_opening_without_tools_has_no_tools_field():
    assert EpisodeOpening(run="r").text == '{"run":"r"}'


def test_the_text_of_an_opening_contains_its_tools():
    opening = EpisodeOpening(run="r", tools=[Tool(name="ls", input_schema=SCHEMA)])
    assert opening.text == '{"run":"r","tools":[{"input_schema":{"type":"object"},"name":"ls"}]}'
    assert EpisodeOpening.model_validate_json(opening.text) == opening


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"name": "two words"}, "pattern"),
        ({"name": "x" * 129}, "pattern"),
        ({"input_schema": {}}, "type: object"),
        ({"input_schema": {"type": "string"}}, "type: object"),
        (
            {"input_schema": {**SCHEMA, "maximum": 2**53 + 1}},
            "JSON does not keep 9,007,199,254,740,993",
        ),
        ({"output_schema": {"minimum": -(10**21)}}, "JSON does not keep -1,000,000"),
    ],
    ids=["spaced", "long", "untyped", "text", "large", "negative"],
)
def test_a_tool_with_an_invalid_name_or_an_invalid_schema_is_refused(fields, problem):
    with pytest.raises(ValidationError, match=problem):
        Tool(**{"name": "ls", "input_schema": SCHEMA, **fields})


def test_two_tools_of_the_same_name_are_refused():
    tool = {"name": "ls", "input_schema": SCHEMA}
    with pytest.raises(ValidationError, match="there are 2 tools of the name 'ls'; leave one"):
        EpisodeOpening(run="r", tools=[tool, {**tool, "description": "another"}])
