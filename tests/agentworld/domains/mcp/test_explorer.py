import json
import random

import jsonschema

from agentworld.domains.live import Observation
from agentworld.domains.mcp.explorer import SchemaExplorer
from agentworld.records.tool import Tool

WORDS = ("kolu", "tane", "besa", "rimo")
SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "mode": {"enum": ["r", "w"]},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
        "limit": {"anyOf": [{"type": "integer", "minimum": 3, "maximum": 5}, {"type": "null"}]},
        "share": {"type": ["number", "null"]},
        "deep": {"type": "boolean"},
        "kind": {"const": "file"},
    },
    "required": ["path", "mode"],
    "additionalProperties": False,
    "$defs": {"line": {"type": "object", "properties": {"text": {"type": "string"}}}},
}
TOOLS = (Tool(name="edit", input_schema=SCHEMA), Tool(name="list", input_schema={"type": "object"}))


def actions(seed, num_turns=200, observation=None):
    explorer = SchemaExplorer(random.Random(seed), TOOLS, WORDS, num_turns)
    calls = []
    while (action := explorer.act(observation)) is not None:
        calls.append(json.loads(action))
    return calls


def test_most_explorer_calls_fit_the_schemas_and_a_few_do_not():
    calls = actions(1)
    assert len(calls) == 200
    validator = jsonschema.Draft202012Validator(SCHEMA)
    edits = [call["arguments"] for call in calls if call["name"] == "edit"]
    are_valid = [validator.is_valid(arguments) for arguments in edits]
    assert 0.85 < sum(are_valid) / len(are_valid) < 1
    assert {name for arguments in edits for name in arguments} == {*SCHEMA["properties"]}
    unknown_names = {call["name"] for call in calls} - {"edit", "list"}
    assert unknown_names
    assert unknown_names <= {*WORDS}


def test_text_arguments_come_from_the_observation():
    calls = actions(1, observation=Observation('{"files": ["gudo.txt"]}'))
    paths = {call["arguments"].get("path") for call in calls if call["name"] == "edit"}
    assert "gudo.txt" in paths


def test_an_explorer_is_deterministic_for_a_seed():
    assert actions(1) == actions(1) != actions(2)


def test_an_explorer_without_tools_takes_no_action():
    assert SchemaExplorer(random.Random(1), (), WORDS, 5).act(None) is None
