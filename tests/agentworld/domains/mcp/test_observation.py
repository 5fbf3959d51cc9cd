import pytest

from agentworld.domains.mcp.observation import is_failure, result_text

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TEXT = {"type": "text", "text": "a"}


def test_an_observation_is_the_texts_of_a_result_line_by_line():
    resource = {"type": "resource", "resource": {"uri": "file:///a", "text": "b"}}
    assert result_text([TEXT, resource]) == "a\nb"
    assert result_text([]) == ""


def test_non_text_content_is_shown_without_its_bytes():
    image = {"type": "image", "mimeType": "image/png", "data": "aaaa"}
    blob = {"type": "resource", "resource": {"uri": "file:///a", "blob": "aaaa"}}
    link = {"type": "resource_link", "uri": "file:///a", "name": "a"}
    assert result_text([image, blob, link]).splitlines() == [
        '{"data":4,"mimeType":"image/png","type":"image"}',
        '{"blob":4,"type":"resource","uri":"file:///a"}',
        '{"name":"a","type":"resource_link","uri":"file:///a"}',
    ]


@pytest.mark.parametrize(
    ("text", "observation"),
    [
        ("no such item", "Error: no such item"),
        ("Error executing tool add: 1 validation error", None),
        ("MCP error -32602: Unknown tool: a", None),
        ("", "Error: "),
    ],
)
def test_an_error_observation_begins_with_a_known_prefix(text, observation):
    result = result_text([{"type": "text", "text": text}], is_error=True)
    assert result == (text if observation is None else observation)
    assert is_failure(result)


def test_a_result_that_mentions_errors_is_no_failure():
    assert not is_failure("3 errors were corrected, of MCP error -1: too")


def test_structured_content_without_an_output_schema_is_omitted():
    assert result_text([TEXT], structured={"n": 1}) == "a"
    assert result_text([TEXT], structured={"n": 1}, output_schema=NUMBER) == 'a\n{"n":1}'
    assert result_text([TEXT], structured={"n": 1}, output_schema=NUMBER, is_error=True) == (
        "Error: a"
    )
