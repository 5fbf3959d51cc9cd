"""The chat client of a recipe's endpoint; what the judge and the reasoner need of it is theirs."""

import json
from contextlib import closing

import httpx
import pytest

from agentworld.engine.answer import read_text
from agentworld.engine.chat import ChatClient
from agentworld.errors import EngineError, InputError
from agentworld.recipes.train import EndpointRecipe
from fakes import endpoint


def ask(said, content="ls", **fields):
    """What an endpoint that says this answers, and its address."""
    with endpoint.running(lambda _: said) as server:
        recipe = EndpointRecipe(url=server.url, model="m", timeout_seconds=60)
        with closing(ChatClient(recipe, "judge")) as client:
            return client.ask([{"role": "user", "content": content}], **fields), server.asked[0]


def test_an_endpoint_is_asked_for_its_model_with_the_fields_of_the_caller():
    said, asked = ask("besa", "half-\ud800", temperature=0.0)
    assert said == "besa"
    messages = [{"role": "user", "content": "half-\ufffd"}]
    assert asked.body == {"model": "m", "messages": messages, "temperature": 0.0}


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_that_no_retry_changes_is_the_recipes(status):
    with pytest.raises(InputError, match=rf"the judge at .* status {status}.*; correct the recipe"):
        ask(status)


@pytest.mark.parametrize(("status", "kind"), [(400, "refused"), (429, "capacity"), (503, "engine")])
def test_another_refusal_is_the_engines(status, kind):
    with pytest.raises(EngineError, match=str(status)) as caught:
        ask(status)
    assert caught.value.kind == kind


def test_an_endpoint_that_is_not_there_is_named_without_its_password():
    client = ChatClient(EndpointRecipe(url="http://me:hidden@127.0.0.1:9"), "judge")
    with closing(client), pytest.raises(EngineError, match="me:.*ConnectError") as caught:
        client.ask([])
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        {"choices": []},
        {"choices": [{"message": {"content": ""}}]},
        {"choices": [{"message": {"content": None}}]},
        {"error": {"message": "no"}, "choices": [{"message": {"content": "besa"}}]},
    ],
    ids=json.dumps,
)
def test_an_answer_without_words_is_a_failure(answer):
    with pytest.raises(EngineError):
        read_text(httpx.Response(200, json=answer))
