"""Makes the thoughts before observations, from the recorded state or by an endpoint."""

from collections.abc import Callable, Sequence
from contextlib import closing

from agentworld.domains.base import domain_of
from agentworld.engine.chat import ChatClient
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
    with closing(ChatClient(recipe.endpoint, "reasoner")) as client:
        for target in sample.targets:
            thoughts[target] = _ask(client, sample, target)
    return thoughts


def _ask(client: ChatClient, sample: Sample, target: int) -> str:
    """One thought; the endpoint knows the truth, as the paper's teacher does not, and must not
    end with another.
    """
    turn = sample.turns[target]
    messages = world_messages(sample.prompt, sample.turns[:target], turn.action)
    messages.append({"role": "user", "content": _ASK + turn.observation})
    try:
        text = client.ask(messages)
    except EngineError as error:
        raise EngineError(
            f"{client.name} gave no thought ({error}); start it, or set `reasoning: recorded-state`"
        ) from error
    return text.replace("<think>", "").replace("</think>", "").strip()


REASONERS: dict[str, Callable[[NextTokenRecipe, Sample], Sequence[str]]] = {
    "recorded-state": _from_recorded_state,
    "endpoint": _from_endpoint,
}
