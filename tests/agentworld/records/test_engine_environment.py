"""The environment variables that an engine may be pinned with."""

import pytest
from pydantic import ValidationError

from agentworld.records.base import first_problem
from agentworld.records.engine_environment import refused_argument
from agentworld.records.simulator import EnginePin
from make import records

FIELDS = {"kind": "vllm", "version": "vllm 1", "lock": records.digest("lock")}


def test_a_changed_engine_environment_changes_the_simulator_digest():
    first, second = ({**FIELDS, "environment": {"VLLM_BATCH_INVARIANT": value}} for value in "01")
    assert records.manifest(engine=first).digest != records.manifest(engine=second).digest


def test_an_empty_engine_environment_does_not_change_the_digest():
    manifest = records.manifest(engine={**FIELDS, "environment": {}})
    assert manifest.digest == records.manifest(engine=FIELDS).digest
    assert b"environment" not in manifest.canonical


@pytest.mark.parametrize(
    ("name", "message"),
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
def test_unsafe_reserved_secret_and_invalid_variables_are_refused(name, message):
    with pytest.raises(ValueError, match=message):
        EnginePin(**FIELDS, environment={name: "1"})


def test_the_error_for_a_secret_variable_does_not_contain_its_value():
    with pytest.raises(ValidationError) as error:
        EnginePin(**FIELDS, environment={"HF_TOKEN": "hf_0123"})
    assert first_problem(error.value).startswith("environment: HF_TOKEN names a secret")
    assert "hf_0123" not in first_problem(error.value)


def test_a_value_with_a_null_character_is_refused():
    with pytest.raises(ValueError, match="String should match"):
        EnginePin(**FIELDS, environment={"A": "\0"})


@pytest.mark.parametrize(
    "argument",
    [
        "--enable-sleep-mode",
        "--weight-transfer-config.backend",
        "--middleware=a.b",
        "--enable_elastic_ep",
    ],
)
def test_an_engine_argument_that_allows_runtime_changes_is_refused_by_name(argument):
    name = refused_argument(["--dtype", "float32", argument]).partition(" ")[0]
    assert argument.replace("_", "-").startswith(name)


def test_arguments_that_only_affect_answers_are_accepted():
    assert refused_argument(["--max-model-len", "1024", "--enable-lora", "--seed=7"]) is None
