"""A judge behind an OpenAI-compatible endpoint: it sees the truth and scores five dimensions.

What it cannot give is a hole in the sample and never a zero. It is told to see through
praise, and a prediction cannot leave the fence that it is shown in.
"""

import re
import time
from collections.abc import Sequence

from agentworld.domains.base import Domain
from agentworld.domains.rubric import RubricScore
from agentworld.engine.chat import ChatClient
from agentworld.errors import EngineError, JudgeError
from agentworld.recipes.train import EndpointRecipe
from agentworld.records.message import Message
from agentworld.scoring.verdict import parse_verdict

_ATTEMPTS = 3
_MAX_TOKENS = 4096


class EndpointJudge:
    """Asks up to three times, with a pause after each failure."""

    def __init__(self, endpoint: EndpointRecipe, *, pause_seconds: float = 2.0) -> None:
        self._pause_seconds = pause_seconds
        self._client = ChatClient(endpoint, "judge")

    def score(
        self, domain: Domain, predicted: str, truth: str, messages: Sequence[Message] = ()
    ) -> RubricScore:
        """The judge's scores of what followed these messages; raises JudgeError without any."""
        question: list[Message] = [
            {"role": "system", "content": domain.rubric.judge_prompt},
            {"role": "user", "content": _question(predicted, truth, messages)},
        ]
        problem = ""
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(self._pause_seconds)
            try:
                answer = self._client.ask(question, temperature=0.0, max_tokens=_MAX_TOKENS)
            except EngineError as error:
                problem = str(error)
                continue
            score = parse_verdict(answer)
            if score:
                return score
            problem = f"no scores in {answer[:100]!r}"
        raise JudgeError(f"{self._client.name} gave no verdict in {_ATTEMPTS} attempts: {problem}")

    def close(self) -> None:
        """Lets go of connections."""
        self._client.close()


def _question(predicted: str, truth: str, messages: Sequence[Message]) -> str:
    *history, action = [f"{message['role']}: {message['content']}" for message in messages] or [""]
    parts = {
        "History": "\n".join(history),
        "Action": action.removeprefix("user: "),
        "Prediction": predicted,
        "Truth": truth,
    }
    return "\n\n".join(f"## {name}\n{_fence(text)}" for name, text in parts.items())


def _fence(text: str) -> str:
    """In a fence longer than any that the text holds."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"
