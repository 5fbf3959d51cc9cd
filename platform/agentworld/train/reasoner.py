"""Where the thoughts before an observation come from: the recorded state, or an endpoint."""

from collections.abc import Callable, Sequence

import httpx

from agentworld.domains.base import domain_of
from agentworld.errors import EngineError, InputError
from agentworld.recipes.train import NextTokenRecipe
from agentworld.records.sample import Sample
from agentworld.rendering.messages import world_messages

_ASK = (
    "Think aloud, in one short line, about what this action will show, and then stop."
    " It will in truth show:\n"
)


def _from_recorded_state(_recipe: NextTokenRecipe, sample: Sample) -> Sequence[str]:
    thoughts = [""] * len(sample.turns)
    domain = domain_of(sample.domain)
    for target in sample.targets:
        state = sample.turns[target - 1].state if target else sample.prompt.initial_state
        if state is None:
            raise InputError(
                f"the trajectory {sample.trajectory} has no recorded state before its turn"
                f" {target + 1}; collect with `record_state: true`, or set `reasoning: off`"
            )
        thoughts[target] = domain.thought(state, sample.turns[target].action)
    return thoughts


def _from_endpoint(recipe: NextTokenRecipe, sample: Sample) -> Sequence[str]:
    thoughts = [""] * len(sample.turns)
    # A proxy of the machine cannot reach a server on this machine's loopback.
    trusts_proxies = "://127.0.0.1" not in recipe.endpoint.url
    timeout = recipe.endpoint.timeout_seconds
    with httpx.Client(timeout=timeout, trust_env=trusts_proxies) as client:
        for target in sample.targets:
            thoughts[target] = _ask(client, recipe, sample, target)
    return thoughts


def _ask(client: httpx.Client, recipe: NextTokenRecipe, sample: Sample, target: int) -> str:
    """One thought; the endpoint knows the truth, as the paper's teacher does not, and must not
    end with another.
    """
    turn = sample.turns[target]
    messages = world_messages(sample.prompt, sample.turns[:target], turn.action)
    messages.append({"role": "user", "content": _ASK + turn.observation})
    body = {"model": recipe.endpoint.model, "messages": messages}
    try:
        answer = client.post(f"{recipe.endpoint.url}/v1/chat/completions", json=body)
        answer.raise_for_status()
        text = answer.json()["choices"][0]["message"]["content"]
        if not text:
            raise ValueError("its answer has no content")
    except (httpx.HTTPError, LookupError, TypeError, ValueError) as error:
        raise EngineError(
            f"the reasoner at {recipe.endpoint.url} gave no thought ({error}); start it, or set"
            " `reasoning: recorded-state`"
        ) from error
    return str(text).replace("<think>", "").replace("</think>", "").strip()


REASONERS: dict[str, Callable[[NextTokenRecipe, Sample], Sequence[str]]] = {
    "recorded-state": _from_recorded_state,
    "endpoint": _from_endpoint,
}
