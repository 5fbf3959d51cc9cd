"""A pinned simulator as a model of OpenAI's protocol: its name and its fixed settings.

A request cannot choose another model or another setting, because the answer would not be the pinned
simulator's.
"""

from typing import Literal

from agentworld.errors import NotFound
from agentworld.http.openai_errors import WrongField
from agentworld.records.base import Digest, Record
from agentworld.records.simulator import Sampling
from agentworld.serving.protocols.chat_request import ChatRequest, PinnedFields


class Model(Record):
    """The simulator, as a model."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    """Always 0, because a manifest has no date."""
    owned_by: Literal["agentworld"] = "agentworld"


class ModelList(Record):
    """The list with the only model."""

    object: Literal["list"] = "list"
    data: tuple[Model]


def model_name(simulator: Digest) -> str:
    """The simulator's name as a model."""
    return f"agentworld-{simulator.removeprefix('sha256:')[:12]}"


def check_model(model: str, simulator: Digest) -> None:
    """Raises NotFound for any other model than the simulator."""
    if model not in (model_name(simulator), simulator):
        raise NotFound(
            f"there is no model {model[:80]!r} in this run; its simulator is"
            f" {model_name(simulator)}"
        )


def check_pinned(sampling: Sampling, request: ChatRequest) -> None:
    """Raises WrongField for a field that differs from the pinned setting."""
    pins = _pins(sampling)
    for name in PinnedFields.model_fields:
        value, pin = getattr(request, name), pins[name]
        if name == "stop" and isinstance(value, str):
            value = (value,)
        if value is not None and value != pin:
            raise WrongField(
                name, f"{name} is pinned to {pin!r} and cannot be {value!r:.80}; leave it out"
            )


def _pins(sampling: Sampling) -> dict[str, object]:
    """The pinned value of each field that could change it."""
    return {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "max_tokens": sampling.max_tokens,
        "max_completion_tokens": sampling.max_tokens,
        "stop": sampling.stop,
        "n": 1,
        "tools": (),
        "tool_choice": "none",
        "functions": (),
        "function_call": "none",
        "response_format": {"type": "text"},
        "modalities": ("text",),
        "logprobs": False,
        "top_logprobs": 0,
        "frequency_penalty": 0,
        "presence_penalty": 0,
        "logit_bias": {},
    }
