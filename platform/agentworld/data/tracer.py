"""Makes the trace of one prompt: a teacher's rollouts, a judge's scores, and the selection."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agentworld.data.trace_selection import ScoredRollout, select
from agentworld.domains.base import Domain, domain_of
from agentworld.errors import EngineError, JudgeError
from agentworld.recipes.traces import TracesRecipe
from agentworld.records.message import Message
from agentworld.records.sample import Sample
from agentworld.records.traces import Trace, TraceYield
from agentworld.rendering.messages import with_thought, world_messages
from agentworld.rendering.parse import parse_observation, parse_thought
from agentworld.scoring.answers import Answer, AnswerStore
from agentworld.scoring.endpoint import EndpointClient
from agentworld.scoring.judge import EndpointJudge
from agentworld.scoring.prices import usage_of
from agentworld.scoring.verdict import Preference


class TracePrompt(NamedTuple):
    """A turn of a sample, which the teacher predicts."""

    sample: Sample
    turn: int

    @property
    def messages(self) -> list[Message]:
        """What the teacher reads: the same as the world model that is trained."""
        turns = self.sample.turns
        return world_messages(self.sample.prompt, turns[: self.turn], turns[self.turn].action)

    @property
    def truth(self) -> str:
        """What the environment showed."""
        return self.sample.turns[self.turn].observation


class TraceResult(NamedTuple):
    """What a prompt led to."""

    domain: str
    trace: Trace | None
    counts: TraceYield
    problem: str
    """Why an answer or a verdict is missing; empty if none is."""


class Rollout(NamedTuple):
    """A usable answer of the teacher."""

    thought: str
    observation: str


class Tracer:
    """The teacher and the judge of a recipe; threads may share it."""

    def __init__(
        self, recipe: TracesRecipe, answers: AnswerStore, *, pause_seconds: float = 2.0
    ) -> None:
        self._recipe = recipe
        self._teacher, self._judge = (
            EndpointClient(endpoint, role, answers=answers, pause_seconds=pause_seconds)
            for endpoint, role in ((recipe.teacher, "teacher"), (recipe.judge, "judge"))
        )

    def trace(self, prompt: TracePrompt) -> TraceResult:
        """Asks the teacher and the judge, and selects.

        Raises InputError if an endpoint refuses all requests.
        """
        return _Work(self._recipe, prompt, self._teacher, self._judge).result()

    def close(self) -> None:
        """Closes the connections."""
        self._teacher.close()
        self._judge.close()


class _Work:
    """On one prompt."""

    def __init__(
        self,
        recipe: TracesRecipe,
        prompt: TracePrompt,
        teacher: EndpointClient,
        judge: EndpointClient,
    ) -> None:
        self._recipe = recipe
        self._prompt = prompt
        self._messages = prompt.messages
        self._domain: Domain = domain_of(prompt.sample.domain)
        self._bills: dict[str, list[Answer]] = {"teacher": [], "judge": []}
        self._teacher = teacher.billed_to(self._bills["teacher"])
        self._judge = EndpointJudge(judge.billed_to(self._bills["judge"]))
        self._num_unanswered = 0
        self._problem = ""

    def result(self) -> TraceResult:
        threshold = self._recipe.threshold
        rollouts = list(self._rollouts())
        scored = list(self._scored(rollouts))
        winner = None
        # If the teacher answered and no answer is usable, the failure is the teacher's.
        is_hole = not scored and (len(rollouts) > 0 or self._num_unanswered > 0)
        if scored:
            try:
                compare = self._compare if self._recipe.pairwise else None
                winner = select(scored, threshold, compare)
            except JudgeError as error:
                self._problem, is_hole = str(error), True
        counts = TraceYield(
            prompts=1,
            rollouts=len(rollouts),
            unusable=self._recipe.rollouts - len(rollouts) - self._num_unanswered,
            unanswered=self._num_unanswered,
            scored=len(scored),
            passed=sum(rollout.score >= threshold for rollout in scored),
            selected=int(winner is not None),
            rejected=int(winner is None and not is_hole),
            holes=int(is_hole),
            turns=self._prompt.turn + 1 if winner else 0,
            teacher=usage_of(self._recipe.teacher, self._bills["teacher"]),
            judge=usage_of(self._recipe.judge, self._bills["judge"]),
        )
        trace = self._to_trace(winner) if winner else None
        return TraceResult(self._domain.name, trace, counts, self._problem)

    def _rollouts(self) -> Iterator[Rollout]:
        temperature = self._recipe.temperature
        for number in range(self._recipe.rollouts):
            try:
                answer = self._teacher.ask(self._messages, temperature=temperature, number=number)
            except EngineError as error:
                self._num_unanswered += 1
                self._problem = str(error)
            else:
                if rollout := usable_rollout(answer):
                    yield rollout

    def _scored(self, rollouts: Sequence[Rollout]) -> Iterator[ScoredRollout]:
        for rollout in rollouts:
            try:
                score = self._judge.score(
                    self._domain, rollout.observation, self._prompt.truth, self._messages
                )
            except JudgeError as error:
                self._problem = str(error)
            else:
                yield ScoredRollout(*rollout, score.mean)

    def _compare(self, first: str, second: str) -> Preference:
        return self._judge.compare(self._domain, first, second, self._prompt.truth, self._messages)

    def _to_trace(self, winner: ScoredRollout) -> Trace:
        sample = self._prompt.sample
        return Trace(
            trajectory=sample.trajectory,
            turn=self._prompt.turn,
            domain=sample.domain,
            **winner._asdict(),
        )


def usable_rollout(answer: Answer) -> Rollout | None:
    """The thought and the observation of a whole answer; null if one of them is missing.

    Null too if the text to be trained would be parsed as another observation.
    """
    text = with_thought(answer.thought, answer.text)
    thought, observation = parse_thought(text), parse_observation(text)
    if not answer.is_whole or not thought or observation is None:
        return None
    if parse_observation(with_thought(thought, observation)) != observation:
        return None
    return Rollout(thought, observation)
