"""OpenAI's own client, unchanged, uses the service in this process."""

import asyncio
import json
import re
import subprocess

import openai
import pytest

from agentworld.engine.base import Completion
from agentworld.errors import EngineError
from make import records
from make.chat import (
    LS,
    MODEL,
    SIMULATOR,
    assistant,
    call,
    chat,
    named,
    said,
    streamed,
    user,
)
from make.peers import ROOT, python_of
from make.service import listening

KEY = {"Idempotency-Key": "0123456789abcdef" * 2}
SEEDED = {"sampling": {"seed_policy": "seeded", "temperature": 1.0}}


def test_the_simulator_is_the_only_listed_model(serve):
    service = serve()
    run = service.run()

    async def ask(client):
        models = [model async for model in client.models.list()]
        return [*models, *[await client.models.retrieve(name) for name in (MODEL, SIMULATOR)]]

    models = call(service, run, ask)
    assert {(model.id, model.owned_by, model.object) for model in models} == {
        (MODEL, "agentworld", "model")
    }
    assert len(models) == 3


@pytest.mark.parametrize("model", ["gpt-9", MODEL + "0", "", "sha256:" + "0" * 64])
def test_another_model_is_not_found(serve, model):
    service = serve()
    run = service.run()
    with pytest.raises(openai.NotFoundError, match="there is no model") as caught:
        chat(service, run, LS, model=model)
    assert (caught.value.code, caught.value.type) == ("not-found", "invalid_request_error")
    assert service.ledger.run(run).num_episodes == 0


def test_a_completion_is_recorded_as_an_episode_of_one_step(serve):
    service = serve()
    run = service.run()
    answer = chat(service, run, [user("echo a")], model=SIMULATOR)
    assert (said(answer), answer.choices[0].finish_reason) == ("a\n[0] ~", "stop")
    assert (answer.model, answer.system_fingerprint) == (MODEL, SIMULATOR)
    _, episode, step = answer.id.split("-")
    record = service.ledger.episode(episode)
    assert (record.run, record.closed, step) == (run, "limit", "1")
    assert [(step.action, step.observation) for step in record.steps] == [("echo a", "a\n[0] ~")]


def test_earlier_messages_become_prior_turns_of_the_episode(serve):
    service = serve()
    messages = [{"role": "system", "content": "be slow"}, user("echo a"), assistant("b"), *LS]
    answer = chat(service, service.run(), messages, metadata={"initial_state": "rimo.txt: besa"})
    (request,) = service.engine.requests
    system, *turns = (message["content"] for message in request.messages)
    assert system.endswith("rimo.txt: besa\nbe slow")
    assert turns == ["echo a", "b", "ls"]
    opening = service.ledger.episode(answer.agentworld["episode"]).opening
    assert [(turn.action, turn.observation) for turn in opening.prior_turns] == [("echo a", "b")]


@pytest.mark.parametrize("source_kind", ["fork", "replay"])
def test_a_fork_or_replay_keeps_the_prior_turns(serve, source_kind):
    service = serve()
    run = service.run()
    prior_messages = [user("echo a"), assistant("b")]
    answer = chat(service, run, [*prior_messages, *LS])
    source = {"episode": answer.agentworld["episode"], "step": 0 if source_kind == "fork" else 1}
    episode = service.reset(run, **{source_kind: source})
    assert service.ledger.episode(episode).opening.prior_turns
    assert said(chat(service, run, [*prior_messages, *LS], **named(episode))) == said(answer)


def test_the_usage_of_a_completion_matches_the_ledger(serve):
    service = serve(lambda messages: Completion("[0] ~", 40, 5, "stop", num_cached_tokens=32))
    answer = chat(service, service.run(), LS)
    usage = answer.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (40, 5, 45)
    assert usage.prompt_tokens_details.cached_tokens == 32
    (step,) = service.ledger.episode(answer.agentworld["episode"]).steps
    assert step.usage[:3] == (40, 32, 5)


def test_a_named_episode_continues_with_each_message_and_returns_its_reward(serve):
    service = serve()
    run = service.run()
    episode = service.reset(run, task=records.task().model_dump(mode="json"))
    messages = list(LS)
    first = chat(service, run, messages, extra_headers={"x-agentworld-episode": episode})
    messages += [first.choices[0].message, user("echo besa")]
    second = chat(service, run, messages, **named(episode))
    assert [first.id, second.id] == [f"chatcmpl-{episode}-{number}" for number in (1, 2)]
    assert (first.agentworld["reward"], first.agentworld["done"]) == (None, False)
    assert (second.agentworld["reward"], second.agentworld["done"]) == (1.0, True)
    assert service.ledger.episode(episode).closed == "done"


def test_a_repeated_message_gets_the_recorded_answer(serve):
    service = serve()
    run = service.run()
    episode = service.reset(run)
    first = chat(service, run, LS, **named(episode))
    next_messages = [user("ls"), assistant(said(first)), user("echo b")]
    answers = [chat(service, run, next_messages, **named(episode)) for _ in range(2)]
    assert chat(service, run, LS, **named(episode)).id == first.id
    assert len({answer.id for answer in answers}) == 1
    assert len(service.engine.requests) == len(service.ledger.episode(episode).steps) == 2


def test_concurrent_requests_with_the_same_message_make_one_step(serve):
    service = serve()
    run = service.run()
    episode = service.reset(run)

    async def ask(client):
        fields = {"model": MODEL, "messages": LS, **named(episode)}
        return await asyncio.gather(*(client.chat.completions.create(**fields) for _ in range(8)))

    assert len({answer.id for answer in call(service, run, ask)}) == 1
    assert len(service.engine.requests) == 1


SHOWN = assistant("[0] ~")


@pytest.mark.parametrize(
    ("messages", "fields", "message"),
    [
        ([user("pwd")], {}, "with another action"),
        ([user("pwd"), SHOWN, user("a")], {}, "turn 1 .* differs"),
        ([user("ls"), assistant("kolu"), user("a")], {}, "turn 1 .* differs"),
        ([*LS, SHOWN, *LS, SHOWN, *LS], {}, "its next step is 2"),
        ([{"role": "system", "content": "be slow"}, *LS], {}, "the system message"),
        (LS, {"seed": 7}, "seed"),
        (LS, {"metadata": {"initial_state": "other"}}, "initial_state"),
    ],
    ids=["action", "told action", "told observation", "a gap", "system", "seed", "start"],
)
def test_a_conversation_that_differs_from_the_record_is_a_conflict(
    serve, messages, fields, message
):
    service = serve()
    run = service.run()
    episode = service.reset(run)
    chat(service, run, LS, **named(episode))
    fields = {**fields, **named(episode, **fields.get("metadata", {}))}
    with pytest.raises(openai.ConflictError, match=message) as caught:
        chat(service, run, messages, **fields)
    assert (caught.value.code, caught.value.response.headers["x-should-retry"]) == (
        "conflict",
        "false",
    )
    assert len(service.ledger.episode(episode).steps) == 1


def test_a_named_episode_accepts_its_own_initial_state_seed_and_system_message(serve):
    service = serve(**SEEDED)
    run = service.run()
    settings = {"initial_state": "a.txt: b", "simulation_instruction": "be slow"}
    episode = service.reset(run, seed=7, **settings)
    messages = [{"role": "developer", "content": "be slow"}, *LS]
    model = f"agentworld-{records.manifest(**SEEDED).digest[7:19]}"
    fields = {"seed": 7, **named(episode, initial_state="a.txt: b")}
    assert said(chat(service, run, messages, model=model, **fields)) == "[0] ~"


@pytest.mark.parametrize("name", ["nobody", "0" * 32, "", "\x00", "0" * 33])
def test_an_unknown_episode_or_an_episode_of_another_run_is_not_found(serve, name):
    service = serve()
    run = service.run()
    for episode in (name, service.reset()):
        with pytest.raises(openai.NotFoundError, match="there is no episode"):
            chat(service, run, LS, **named(episode))
    with pytest.raises(openai.BadRequestError, match="name one") as caught:
        chat(service, run, LS, **named(name), extra_headers={"x-agentworld-episode": "other"})
    assert caught.value.param == "metadata.episode"


@pytest.mark.waits
def test_a_completion_with_an_idempotency_key_is_executed_once(serve):
    service = serve()
    run = service.run()
    answers = [chat(service, run, LS, extra_headers=KEY) for _ in range(2)]
    assert {answer.id for answer in answers} == {f"chatcmpl-{KEY['Idempotency-Key']}-1"}
    for messages in ([user("pwd")], [*LS, SHOWN, *LS]):
        with pytest.raises(openai.ConflictError):
            chat(service, run, messages, extra_headers=KEY)
    assert len(service.engine.requests) == 1


@pytest.mark.parametrize(("headers", "closed"), [({}, "closed"), (KEY, None)])
def test_a_failed_step_without_an_idempotency_key_closes_its_episode(serve, headers, closed):
    answers = iter([EngineError("gone"), "[0] ~"])
    service = serve(lambda messages: next(answers))
    run = service.run()
    with pytest.raises(openai.InternalServerError):
        chat(service, run, LS, extra_headers=headers)
    (episode,) = service.ledger.episodes(run)
    assert (episode.closed, episode.steps) == (closed, ())
    second_answer = chat(service, run, LS, extra_headers=headers)
    assert (second_answer.agentworld["episode"] == episode.id) is (closed is None)


def test_requests_with_equal_seeds_use_equal_engine_seeds(serve):
    service = serve(**SEEDED)
    run, model = service.run(), records.manifest(**SEEDED).digest
    for seed in (7, 7, 8):
        chat(service, run, LS, model=model, seed=seed)
    first, second, third = (request.seed for request in service.engine.requests)
    assert first == second != third


def test_an_unseeded_simulator_refuses_a_seed(serve):
    service = serve()
    with pytest.raises(openai.BadRequestError, match="cannot be used") as caught:
        chat(service, service.run(), LS, seed=7)
    assert (caught.value.code, service.engine.requests) == ("input", [])


def test_a_stream_returns_the_recorded_step_in_chunks(serve):
    service = serve()
    run = service.run()
    chunks = streamed(service, run, [user("echo a")], stream_options={"include_usage": True})
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1])
    assert text == "a\n[0] ~"
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]] == [None, None, "stop"]
    assert (chunks[-1].choices, chunks[-1].usage.completion_tokens) == ([], len(text))
    assert {(chunk.model, chunk.system_fingerprint) for chunk in chunks} == {(MODEL, SIMULATOR)}
    (id_,) = {chunk.id for chunk in chunks}
    assert service.ledger.episode(id_.split("-")[1]).steps[0].observation == text
    assert chunks[-2].agentworld["step"] == 1


def test_a_stream_without_usage_ends_with_its_last_choice_and_can_be_repeated(serve):
    service = serve()
    run = service.run()
    first, second = (streamed(service, run, LS, extra_headers=KEY) for _ in range(2))
    assert [chunk.choices for chunk in first] == [chunk.choices for chunk in second]
    assert first[-1].choices[0].finish_reason == "stop"
    assert {chunk.usage for chunk in first} == {None}
    assert len(service.engine.requests) == 1


def test_a_failure_before_a_stream_is_an_http_error(serve):
    service = serve(lambda messages: EngineError("full", kind="capacity", retry_after_seconds=2))
    with pytest.raises(openai.RateLimitError) as caught:
        streamed(service, service.run(), LS)
    assert caught.value.response.headers["retry-after"] == "2"


@pytest.mark.parametrize("stream", [True, False])
def test_lone_surrogates_pass_through_a_named_episode_unchanged(serve, stream):
    service = serve(lambda messages: f"{messages[-1]['content']} \udfff")
    run = service.run()
    episode = service.reset(run)
    body = {"model": MODEL, "messages": [user("\ud800")], "stream": stream, **named(episode)}
    path = f"/runs/{run}/v1/chat/completions"
    answer = service.http("POST", path, body)
    assert answer.status_code == 200
    assert "\\ud800 \\udfff" in answer.text
    assert service.ledger.episode(episode).steps[0].observation == "\ud800 \udfff"
    body["messages"] += [assistant("\ud800 \udfff"), user("ls")]
    assert service.http("POST", path, body).headers["x-agentworld-step"] == "2"
    del body["metadata"]  # an opening's digest cannot cover text that is not Unicode
    assert service.http("POST", path, body).status_code == 400


@pytest.mark.waits
def test_the_synchronous_openai_client_works_over_a_socket(serve):
    service = serve()
    run = service.run()
    with (
        listening(service.transport.app) as url,
        openai.OpenAI(base_url=f"{url}/runs/{run}/v1", api_key="none", max_retries=0) as client,
    ):
        answer = client.chat.completions.create(model=MODEL, messages=LS)
        stream = client.chat.completions.create(model=MODEL, messages=LS, stream=True)
        texts = [chunk.choices[0].delta.content or "" for chunk in stream]
        raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=LS)
    assert said(answer) == "".join(texts) == "[0] ~"
    assert raw.headers["x-agentworld-episode"] == json.loads(raw.text)["agentworld"]["episode"]
    assert raw.headers["x-agentworld-simulator"] == SIMULATOR


@pytest.mark.waits
def test_the_guides_example_runs_with_the_newest_openai_client(serve):
    guide = (ROOT / "docs/guides/protocols.md").read_text()
    section = guide.partition("\n## OpenAI\n")[2].partition("\n## ")[0]
    (example,) = re.findall(r"^```python\n(.*?)^```", section, re.M | re.S)
    service = serve()
    opening = {"agent": "a", "starting_weights": records.digest("starting")}
    token = service.http("POST", "/runs", opening).json()["token"]
    with listening(service.transport.app) as url:
        env = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": token}
        command = [python_of("openai"), "-c", example]
        result = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert result.stdout.count("kolu > rimo.txt") == 2


def test_a_conversation_continues_across_replicas(serve):
    first_replica, second_replica = serve(), serve()
    run = first_replica.run()
    episode = first_replica.reset(run)
    messages = []
    for number, service in enumerate((first_replica, second_replica, first_replica), 1):
        messages.append(user(f"echo {number}"))
        answer = chat(service, run, messages, metadata={"episode": episode})
        assert said(answer) == f"{number}\n[0] ~"
        messages.append(assistant(said(answer)))
