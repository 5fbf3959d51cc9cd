"""Parsing of an external server's chat responses."""

import json

import httpx
import pytest

from agentworld.engine.answer import read_chat
from agentworld.errors import EngineError


def answer(message, **fields):
    return httpx.Response(200, json={"choices": [{"message": message, **fields}]})


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"choices": []},
        {"choices": [{"message": {"content": ""}}]},
        {"choices": [{"message": {"content": None}}]},
        {"choices": [{"message": {"content": None, "reasoning": "so"}}]},
        {"error": {"message": "no"}, "choices": [{"message": {"content": "besa"}}]},
    ],
    ids=json.dumps,
)
def test_a_response_without_text_or_with_an_error_raises(body):
    with pytest.raises(EngineError):
        read_chat(httpx.Response(200, json=body))


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_the_reasoning_beside_the_text_is_read(field):
    chat = read_chat(answer({"content": "besa", field: "so"}, finish_reason="stop"))
    assert (chat.text, chat.thought, chat.is_whole) == ("besa", "so", True)


@pytest.mark.parametrize("text", ["besa", "", None])
def test_a_cut_off_answer_is_returned_as_not_whole(text):
    chat = read_chat(answer({"content": text}, finish_reason="length"))
    assert (chat.text, chat.is_whole) == (text or "", False)


def test_missing_token_counts_are_none_and_a_missing_model_is_empty():
    chat = read_chat(answer({"content": "besa"}))
    assert (chat.num_prompt_tokens, chat.num_tokens, chat.model) == (None, None, "")
