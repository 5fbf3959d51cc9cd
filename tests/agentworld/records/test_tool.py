import pytest
from pydantic import ValidationError

from agentworld.records.episode import EpisodeOpening
from agentworld.records.tool import Tool

SCHEMA = {"type": "object"}


def test_an_opening_without_tools_is_named_as_it_was_before_there_were_any():
    assert EpisodeOpening(run="r").text == '{"run":"r"}'


def test_an_episodes_tools_are_in_its_openings_name():
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
    ],
    ids=["spaced", "long", "untyped", "text"],
)
def test_a_tool_has_a_plain_name_and_takes_an_object(fields, problem):
    with pytest.raises(ValidationError, match=problem):
        Tool(**{"name": "ls", "input_schema": SCHEMA, **fields})


def test_no_two_tools_have_one_name():
    tool = {"name": "ls", "input_schema": SCHEMA}
    with pytest.raises(ValidationError, match="there are 2 tools of the name 'ls'; leave one"):
        EpisodeOpening(run="r", tools=[tool, {**tool, "description": "another"}])
