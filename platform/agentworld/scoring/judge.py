"""A judge behind an OpenAI-compatible endpoint: it sees the truth, scores five dimensions, and
compares two predictions. A missing verdict is a hole in the sample and never a zero. The prompt
says to ignore praise, and a prediction cannot end the code fence around it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from agentworld.domains.base import Domain
from agentworld.domains.rubric import RubricScore
from agentworld.errors import EngineError, JudgeError
from agentworld.records.message import Message
from agentworld.scoring.endpoint import EndpointClient
from agentworld.scoring.verdict import Preference, parse_preference, parse_verdict

_ATTEMPTS = 3
_COMPARE = """

Here you are given two predictions, A and B, instead of one. Do not score them. Compare them by
the dimensions above, factuality first, give a short reason, and end with exactly this form, with
"A", "B" or "tie":

<final_evaluation>
```json
{"better": "tie"}
```
</final_evaluation>"""

_Verdict = TypeVar("_Verdict")


class EndpointJudge:
    """Asks up to three times if an answer has no verdict."""

    def __init__(self, client: EndpointClient) -> None:
        self._client = client

    def score(
        self, domain: Domain, predicted: str, truth: str, messages: Sequence[Message] = ()
    ) -> RubricScore:
        """Scores an observation after these messages; raises JudgeError without a verdict."""
        material = _material(messages, {"Prediction": predicted, "Truth": truth})
        return self._ask(domain.rubric.judge_prompt, material, parse_verdict)

    def compare(
        self,
        domain: Domain,
        first: str,
        second: str,
        truth: str,
        messages: Sequence[Message] = (),
    ) -> Preference:
        """Which of two predictions is closer to the truth; raises JudgeError without a verdict.

        A judge may prefer the first one (arXiv 2306.05685), so ask in both orders.
        """
        predictions = {"Prediction A": first, "Prediction B": second, "Truth": truth}
        system = domain.rubric.judge_prompt.rstrip() + _COMPARE
        return self._ask(system, _material(messages, predictions), parse_preference)

    def _ask(self, system: str, material: str, parse: Callable[[str], _Verdict | None]) -> _Verdict:
        question: list[Message] = [
            {"role": "system", "content": system},
            {"role": "user", "content": material},
        ]
        problem = ""
        for number in range(_ATTEMPTS):
            try:
                answer = self._client.ask(question, temperature=0.0, number=number)
            except EngineError as error:
                problem = str(error)
                break
            verdict = parse(answer.text)
            if verdict is not None:
                return verdict
            problem = f"no verdict in {answer.text[:100]!r}"
        raise JudgeError(f"{self._client.name} gave no verdict: {problem}")

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()


def _material(messages: Sequence[Message], texts: Mapping[str, str]) -> str:
    *history, action = [f"{message['role']}: {message['content']}" for message in messages] or [""]
    parts = {"History": "\n".join(history), "Action": action.removeprefix("user: "), **texts}
    return "\n\n".join(f"## {name}\n{_fence(text)}" for name, text in parts.items())


def _fence(text: str) -> str:
    """The text in a code fence that is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"
