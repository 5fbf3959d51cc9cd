"""Forms in which harnesses write observations, in both kinds of chats."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.data.importers.observations import ObservationOptions, observation_of
from make import logs

UNWRAP = ObservationOptions(unwrap="textcontent")


class TextContent:
    """Has the repr of MCP's `TextContent`."""

    def __init__(self, text, fields="annotations=None"):
        self.text = text
        self.fields = fields

    def __repr__(self):
        return f"TextContent(type='text', text={self.text!r}, {self.fields})"


def unwrap(text):
    return observation_of(text, UNWRAP)[0]


def result(*texts, end="isError=False"):
    return f"meta=None content={[TextContent(text) for text in texts]!r} {end}"


@given(st.lists(st.text(st.characters(exclude_categories=()))))
def test_texts_are_unwrapped_from_their_repr(texts):
    assert unwrap(result(*texts)) == "\n".join(texts)
    assert unwrap(repr([TextContent(text) for text in texts])) == "\n".join(texts)


@pytest.mark.parametrize(
    "end", ["isError=True", "structuredContent=None isError=False", "structuredContent=None"]
)
def test_all_versions_of_the_repr_are_unwrapped(end):
    assert unwrap(result("it's", end=end)) == "it's"


def test_a_text_that_looks_like_a_repr_is_not_unwrapped_twice():
    inner = result('a "b"', "c")
    assert unwrap(result(inner)) == inner


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Tool call timed out.",
        result("a long text")[:60],
        result("a") + " and more",
        result("a", end="structuredContent={'a': 1} isError=False"),
        "[ImageContent(type='image', data='QQ==', mimeType='image/png', annotations=None)]",
        "[TextContent(type='text', text='a', annotations=Annotations(audience=['user']))]",
        r"[TextContent(type='text', text='\d', annotations=None)]",
        r"[TextContent(type='text', text='\Uffffffff', annotations=None)]",
        "[TextContent(type='text', text='a\0', annotations=None)]",
        "[TextContent(type='text', text=__import__('os'), annotations=None)]",
    ],
)
def test_a_text_that_is_no_complete_repr_stays_unchanged(text):
    assert unwrap(text) == text


def test_nothing_is_unwrapped_without_the_option():
    assert observation_of(result("a"), ObservationOptions()) == (result("a"), (), False)


def test_cut_at_refers_to_the_wrapped_length_of_a_text():
    text = result("a")
    assert observation_of(text, UNWRAP.model_copy(update={"cut_at": len(text)})) == ("a", (), True)
    assert not observation_of(text, UNWRAP.model_copy(update={"cut_at": 1}))[2]
    assert not observation_of("", UNWRAP)[2]


def test_tool_results_are_unwrapped_marked_and_cut(tmp_path):
    call = {"id": "c", "function": {"name": "f", "arguments": "{}"}}
    record = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": result("a\nleft: 3")},
    ]
    options = {"unwrap": "textcontent", "cut_at": len(result("a\nleft: 3"))}
    item = logs.one("messages", tmp_path, record, harness_lines=[r"left: \d"], **options)
    (turn,) = item.trajectory.turns
    assert (turn.observation, turn.is_cut) == ("a\nleft: 3", True)
    assert [(span.start, span.end) for span in turn.spans] == [(2, 9)]
    assert item.notes == {"result that is cut": 1}
