"""Reading responses: every failure has a kind, and only a complete answer gives a text."""

import json
import math

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.engine.answer import Question, read_answer
from agentworld.engine.base import Completion
from agentworld.errors import EngineError
from agentworld.records.simulator import Sampling

RESPONSE_IDS = {"vllm": "chatcmpl-r", "transformers-serve": "r", "openai": "any"}
GREEDY, RANDOM = Sampling(), Sampling(temperature=0.5)


def choice(content="besa", finish_reason="stop", **fields):
    return {"message": {"content": content}, "finish_reason": finish_reason, **fields}


def answer(*choices, **fields):
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    defaults = {"id": "chatcmpl-r", "model": "m", "usage": usage}
    return {**defaults, "choices": list(choices or [choice()]), **fields}


def answer_with_logprobs(*logprobs):
    return answer(choice(logprobs={"content": [{"logprob": logprob} for logprob in logprobs]}))


def read(body, status=200, kind="vllm", sampling=GREEDY):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    response = httpx.Response(status, content=content)
    return read_answer(response, Question("r", kind, "m", sampling))


def failure(body, status=200, **options):
    with pytest.raises(EngineError) as error:
        read(body, status, **options)
    return error.value


def test_an_answer_contains_its_token_counts():
    assert read(answer()) == Completion("besa", 3, 2, "stop")


@pytest.mark.parametrize(
    ("details", "count"),
    [
        ({"cached_tokens": 2}, 2),
        ({"cached_tokens": 0}, 0),
        ({"cached_tokens": 3, "created_cache_tokens": None, "audio_tokens": 0}, 3),
        ({"cached_tokens": None}, 0),
        ({}, 0),
        (None, 0),
        ({"cached_tokens": 7}, 3),
    ],
)
def test_an_answer_contains_the_number_of_cached_prompt_tokens(details, count):
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": details}
    assert read(answer(usage=usage)) == Completion("besa", 3, 2, "stop", num_cached_tokens=count)


VALID_BODY = json.dumps(answer()).encode()
INVALID_BODIES = {
    "an error": {"error": {"message": "CUDA error", "code": 500}},
    "cut json": VALID_BODY[:-9],
    "two jsons": VALID_BODY * 2,
    "no json": b"<html>502 Bad Gateway</html>",
    "events": b"data: " + VALID_BODY,
    "nothing": b"",
    "null": None,
    "a list": [answer()],
    "no choice": answer() | {"choices": []},
    "two choices": answer(choice(), choice()),
    "no message": answer({"finish_reason": "stop"}),
    "content in parts": answer(choice([{"type": "text", "text": "besa"}])),
    "a number": answer(choice(7)),
    "half of a character": b'{"choices": "\\ud800"}',
    "bytes of latin-1": VALID_BODY.replace(b"besa", b"b\xe9sa"),
    "no usage": answer(usage=None),
    "tokens in words": answer(usage={"prompt_tokens": "3", "completion_tokens": 2}),
    "less than no tokens": answer(usage={"prompt_tokens": -1, "completion_tokens": 2}),
    "less than nothing held": answer(
        usage={
            "prompt_tokens": 3,
            "completion_tokens": 2,
            "prompt_tokens_details": {"cached_tokens": -1},
        }
    ),
    "no model": answer(model=None),
    "no end": answer(choice(finish_reason=None)),
    "aborted": answer(choice(finish_reason="abort")),
    "an end of its own": answer(choice(finish_reason="tired")),
}


@pytest.mark.parametrize("body", INVALID_BODIES.values(), ids=INVALID_BODIES.keys())
def test_an_invalid_response_is_a_retryable_engine_error(body):
    error = failure(body)
    assert (error.kind, error.retryable) == ("engine", True)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (choice(""), "unparsable"),
        (choice(None), "unparsable"),
        (choice(None, "tool_calls"), "unparsable"),
        (choice("besa besa", "repetition"), "cut-off"),
        (choice("be", "content_filter"), "refused"),
    ],
)
def test_a_failure_of_the_model_is_retryable_only_at_a_nonzero_temperature(reply, kind):
    greedy_error, random_error = failure(answer(reply)), failure(answer(reply), sampling=RANDOM)
    assert (greedy_error.kind, greedy_error.retryable) == (kind, False)
    assert (random_error.kind, random_error.retryable) == (kind, True)


def cut_off(num_tokens, **options):
    """The error for an answer that ended by `length` after this number of tokens."""
    usage = {"prompt_tokens": 900, "completion_tokens": num_tokens}
    return failure(answer(choice("be", "length"), usage=usage), **options)


def test_an_answer_that_reaches_max_tokens_is_cut_off():
    first, second = cut_off(GREEDY.max_tokens), cut_off(GREEDY.max_tokens, sampling=RANDOM)
    assert (first.kind, first.retryable, second.retryable) == ("cut-off", False, True)
    assert "raise max_tokens" in str(first)


def test_an_answer_cut_off_below_max_tokens_is_a_context_error():
    error = cut_off(GREEDY.max_tokens - 1, sampling=RANDOM)
    assert (error.kind, error.retryable) == ("context", False)
    assert "its prompt has 900" in str(error)
    assert "max_tokens" not in str(error)


def test_an_error_contains_the_number_of_prompt_tokens():
    assert cut_off(GREEDY.max_tokens).num_prompt_tokens == 900
    assert failure(answer(choice(""))).num_prompt_tokens == 3
    assert failure(b"").num_prompt_tokens == 0


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"error": {"message": "Provider returned error", "code": 502}}, "engine"),
        ({"error": {"message": "Rate limit exceeded", "code": 429}}, "capacity"),
        ({"error": {"message": "No endpoints found", "code": 404}}, "refused"),
        ({"error": {"message": "too long", "code": "context_length_exceeded"}}, "context"),
        ({"error": {"message": "out of credits", "code": None}}, "engine"),
        ({"error": {"message": "upstream", "code": True}}, "engine"),
        ({"error": "upstream is gone"}, "engine"),
        ({"object": "error", "message": "no such model", "code": 400}, "refused"),
        (answer() | {"error": {"message": "stream was cut", "code": 504}}, "slow"),
    ],
)
def test_a_providers_error_in_a_200_response_is_raised_with_its_message(body, kind):
    details = body.get("error", body)
    error = failure(body, kind="openai")
    assert (error.kind, error.retryable) == (kind, kind in ("engine", "slow", "capacity"))
    assert (details if isinstance(details, str) else details["message"]) in str(error)


def test_a_null_error_or_a_text_that_looks_like_an_error_is_no_error():
    assert read(answer(error=None)).text == "besa"
    assert read(answer(choice('{"error": 1}'))).text == '{"error": 1}'


def test_only_finish_reason_length_advises_to_raise_max_tokens():
    usage = {"prompt_tokens": 3, "completion_tokens": GREEDY.max_tokens}
    advice_by_reason = {
        reason: "max_tokens" in str(failure(answer(choice("be", reason), usage=usage)))
        for reason in ("length", "repetition", "tool_calls", "content_filter")
    }
    assert advice_by_reason == {
        "length": True,
        "repetition": False,
        "tool_calls": False,
        "content_filter": False,
    }


@pytest.mark.parametrize("status", [201, 302, 404, 429, 500])
def test_a_valid_body_with_a_status_other_than_200_is_an_error(status):
    assert f"status {status}" in str(failure(answer(), status))


@pytest.mark.parametrize(
    ("kind", "identity"),
    [
        ("vllm", {"id": "chatcmpl-r", "model": "m"}),
        ("transformers-serve", {"id": "r", "model": "m"}),
        ("transformers-serve", {"id": "r", "model": "m@main"}),
        ("openai", {"id": "chatcmpl-7", "model": "m"}),
        ("openai", {"model": "m-2026-08-06"}),
    ],
)
def test_each_engine_kinds_form_of_id_and_model_is_accepted(kind, identity):
    assert read(answer(**identity), kind=kind).text == "besa"


@pytest.mark.parametrize(
    ("kind", "model"),
    [("vllm", "m-2"), ("vllm", ""), ("transformers-serve", "m@other"), ("openai", "m-mini")],
)
def test_another_models_answer_is_refused(kind, model):
    error = failure(answer(id=RESPONSE_IDS[kind], model=model), kind=kind)
    assert (error.kind, error.retryable) == ("refused", False)


@pytest.mark.parametrize("kind", ["vllm", "transformers-serve"])
@pytest.mark.parametrize("response_id", ["chatcmpl-another", "another", "", None])
def test_an_answer_to_another_request_is_a_retryable_engine_error(kind, response_id):
    error = failure(answer(id=response_id), kind=kind)
    assert (error.kind, error.retryable) == ("engine", True)


def test_an_answer_ends_before_the_first_stop_string():
    sampling = Sampling(stop=("[1]", "[0]"))
    assert read(answer(choice("besa [0] ~ [1]", "length")), sampling=sampling).text == "besa "
    assert failure(answer(choice("[0] ~")), sampling=sampling).kind == "unparsable"


def test_an_aborted_answer_with_a_stop_string_is_an_engine_error():
    sampling = Sampling(stop=("[0]",))
    assert failure(answer(choice("besa [0]", "abort")), sampling=sampling).kind == "engine"


def test_mean_logprob_is_the_mean_of_the_tokens_log_probabilities():
    assert read(answer_with_logprobs(-0.5, -0.25, 0.0)).mean_logprob == -0.25


@pytest.mark.parametrize(
    "logprobs",
    [
        (),
        (math.nan,),
        (-math.inf, -0.1),
        (math.inf,),
        (None, -0.1),
        (-9999.0, -0.1),
        (1e308, 1e308),
    ],
)
def test_an_answer_without_usable_log_probabilities_has_no_mean_logprob(logprobs):
    completion = read(answer_with_logprobs(*logprobs))
    assert (completion.text, completion.mean_logprob) == ("besa", None)


@given(st.text(min_size=1))
def test_the_text_of_a_complete_answer_is_unchanged(text):
    assert read(answer(choice(text))).text == text
