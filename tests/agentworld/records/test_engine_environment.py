"""The environment variables that an engine may be pinned with."""

import pytest
from pydantic import ValidationError

from agentworld.records.base import first_problem
from agentworld.records.engine_environment import refused_argument
from agentworld.records.simulator import EnginePin
from make import records

KNOWN = {"kind": "vllm", "version": "vllm 1", "lock": records.digest("lock")}


def test_another_value_in_an_engines_environment_is_another_simulator():
    one, other = ({**KNOWN, "environment": {"VLLM_BATCH_INVARIANT": value}} for value in "01")
    assert records.manifest(engine=one).digest != records.manifest(engine=other).digest


def test_an_empty_environment_is_left_out_so_that_digests_of_before_stay():
    empty = records.manifest(engine={**KNOWN, "environment": {}})
    assert empty.digest == records.manifest(engine=KNOWN).digest
    assert b"environment" not in empty.canonical


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("VLLM_SERVER_DEV_MODE", "would let others change its weights while it runs"),
        ("VLLM_ALLOW_RUNTIME_LORA_UPDATING", "would let others change its weights"),
        ("LD_PRELOAD", "loads code or files that no digest covers"),
        ("PYTHONPATH", "loads code"),
        ("HF_HUB_OFFLINE", "is reserved for the platform"),
        ("VLLM_API_KEY", "names a secret"),
        ("HF_TOKEN", "names a secret"),
        ("A=B", "is not the name of a variable"),
        ("", "is not the name of a variable"),
    ],
)
def test_a_variable_that_would_make_a_pin_worth_nothing_is_refused_by_name(name, words):
    with pytest.raises(ValueError, match=words):
        EnginePin(**KNOWN, environment={name: "1"})


def test_a_secret_that_is_refused_is_not_repeated():
    with pytest.raises(ValidationError) as refused:
        EnginePin(**KNOWN, environment={"HF_TOKEN": "hf_0123"})
    assert first_problem(refused.value).startswith("environment: HF_TOKEN names a secret")
    assert "hf_0123" not in first_problem(refused.value)


def test_a_value_that_no_process_can_be_given_is_refused():
    with pytest.raises(ValueError, match="String should match"):
        EnginePin(**KNOWN, environment={"A": "\0"})


@pytest.mark.parametrize(
    "argument",
    [
        "--enable-sleep-mode",
        "--weight-transfer-config.backend",
        "--middleware=a.b",
        "--enable_elastic_ep",
    ],
)
def test_an_argument_that_lets_others_change_an_engine_is_refused_by_name(argument):
    name = refused_argument(["--dtype", "float32", argument]).partition(" ")[0]
    assert argument.replace("_", "-").startswith(name)


def test_arguments_that_shape_answers_are_let_through():
    assert refused_argument(["--max-model-len", "1024", "--enable-lora", "--seed=7"]) is None
