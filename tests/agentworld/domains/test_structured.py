import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.domains.structured import structured_content, with_structured_content
from agentworld.errors import InputError

ANY = {"type": "object"}
NUMBER = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
WORD = {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]}
NUMBERS = {
    "type": "object",
    "properties": {"result": {"type": "array", "items": {"type": "integer"}}},
    "required": ["result"],
}
CONTENT = st.dictionaries(st.text(max_size=3), st.integers(-9, 9) | st.text(max_size=3), max_size=3)


@given(text=st.text(max_size=9), content=CONTENT)
def test_structured_content_is_recovered_from_an_observation(text, content):
    observation = with_structured_content(text, content, ANY)
    assert structured_content(observation, ANY) == content
    assert observation.startswith(text)


@pytest.mark.parametrize(
    ("text", "content", "schema"),
    [
        ('{"n": 1}', {"n": 1}, NUMBER),
        ('{\n  "n": 1\n}', {"n": 1}, NUMBER),
        ("kolu", {"result": "kolu"}, WORD),
        ("[1, 2]", {"result": [1, 2]}, NUMBERS),
        ('here it is:\n{"n": 1}', {"n": 1}, NUMBER),
    ],
)
def test_structured_content_already_in_the_text_is_not_appended(text, content, schema):
    assert with_structured_content(text, content, schema) == text


@pytest.mark.parametrize("text", ["one", '{"n": 2}', '{"n": true}', ""])
def test_structured_content_missing_from_the_text_is_appended_as_a_line(text):
    observation = with_structured_content(text, {"n": 1}, NUMBER)
    assert observation == (f"{text}\n" if text else "") + json.dumps(
        {"n": 1}, separators=(",", ":")
    )


@pytest.mark.parametrize("observation", ["", "one", '{"n": "one"}', "[1]", '{"n": 1'])
def test_an_observation_without_content_of_the_schema_is_refused(observation):
    with pytest.raises(InputError, match="holds no structured content"):
        structured_content(observation, NUMBER)
