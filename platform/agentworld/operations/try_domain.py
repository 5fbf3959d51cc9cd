"""Tries a domain by hand: each action is taken in a live environment and in a simulator of it.

Both share the start and the actions, and nothing else. The simulator's history has its own
observations, as in an agent's episode: after a difference it continues from what it showed, and no
live observation corrects it.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal, NamedTuple

from agentworld.client.simulator import SimulatorClient
from agentworld.domains.base import Axis, Domain, Start, domain_of, verdict_of
from agentworld.domains.live import Environment, live_domain, open_environment
from agentworld.errors import SimulatorError
from agentworld.records.base import Digest
from agentworld.records.episode import EpisodeOpening
from agentworld.records.run import RunOpening
from agentworld.records.task import Task
from agentworld.scoring.success import outcome

AGENT = "domain-try"
"""The agent's name in the run's record: a person."""

_MOST_TURNS = 1_000
"""The turn limit of an episode without a task."""


class TrialStart(NamedTuple):
    """The start of both episodes."""

    domain: str
    seed: int
    task: str | None
    """The task's instruction; null for an episode without one."""
    text: str
    """The initial state as text of the simulator's prompt."""
    tools: tuple[str, ...]
    example: str
    """An action of another task, as an example of the form."""
    simulator: Digest | None


class TrialTurn(NamedTuple):
    """An action and its observation in each world. Observations may have lone surrogates."""

    step: int
    action: str
    live: str
    simulated: str | None = None
    """Null without a simulator, and after the simulator's episode has ended."""
    problem: str = ""
    """Why the simulator showed nothing."""
    verdicts: Mapping[Axis, bool | None] = {}
    """The verdicts of the domain's rules on the simulator's observation."""
    is_same: bool | None = None
    """Whether all verdicts are true; null if there is none."""


Ending = Literal["task", "limit", "environment", "person"]
"""Who ended the live episode: an action that closed the task, the turn limit, the environment, or
the person.
"""


class TrialEnd(NamedTuple):
    """The result of a trial; a success is null if it is unknown or the task is open."""

    steps: int
    ending: Ending
    live_transcript: bool | None
    """Whether the task succeeded live by the rule that reads actions and observations."""
    live_state: bool | None
    """Whether the state of the environment shows success."""
    simulated_transcript: bool | None
    """Whether it succeeded in the simulator."""
    num_same: int
    num_judged: int
    """The number of observations with a verdict."""


class Trial:
    """One episode in both worlds; `open_trial` begins it."""

    def __init__(
        self,
        start: TrialStart,
        environment: Environment,
        task: Task | None,
        simulated: "_SimulatedEpisode | None",
    ) -> None:
        self.start = start
        self._domain: Domain = domain_of(start.domain)
        self._environment = environment
        self._task = task
        self._simulated = simulated
        self._turns: list[TrialTurn] = []
        self._ending: Ending = "person"
        self._success: bool | None = None

    @property
    def is_over(self) -> bool:
        """Whether the live episode has ended."""
        return self._ending != "person"

    async def act(self, text: str) -> TrialTurn:
        """Takes the action of a text in both worlds.

        Raises ActionError for a text without an action, and EnvironmentBroken if the action ended
        the live environment without an observation.
        """
        action = self._domain.parse_action(text)
        live = await self._environment.step(action)
        turn = TrialTurn(len(self._turns) + 1, action, live.text)
        self._judge(turn, is_done=live.done)
        if self._simulated:
            simulated = await self._simulated.step(action)
            turn = turn._replace(simulated=simulated, problem=self._simulated.problem)
            if simulated is not None:
                turn = turn._replace(
                    problem="",
                    verdicts=dict(self._domain.verify(simulated, live.text)),
                    is_same=verdict_of(self._domain, simulated, live.text),
                )
        self._turns.append(turn)
        return turn

    async def end(self) -> TrialEnd:
        """The result of the trial so far."""
        verdicts = [turn.is_same for turn in self._turns if turn.is_same is not None]
        return TrialEnd(
            steps=len(self._turns),
            ending=self._ending,
            live_transcript=self._success,
            live_state=await self._environment.check(self._task) if self._task else None,
            simulated_transcript=self._simulated.success if self._simulated else None,
            num_same=sum(verdicts),
            num_judged=len(verdicts),
        )

    def _judge(self, turn: TrialTurn, *, is_done: bool) -> None:
        """Updates the outcome of the live episode after a turn."""
        limit = self._task.turn_limit if self._task else _MOST_TURNS
        meaning = outcome(self._domain, self._task, limit, turn.step, turn.action, turn.live)
        if meaning.done:
            self._ending = "limit" if meaning.truncated else "task"
            self._success = _to_success(meaning.reward)
        elif is_done:  # an open task has failed if its environment ends
            self._ending = "environment"
            self._success = False if self._task else None


class _SimulatedEpisode:
    """The simulator's episode. It takes no action after one without an observation."""

    def __init__(self, client: SimulatorClient, episode: str) -> None:
        self.problem = ""
        """Why it takes no more actions."""
        self.success: bool | None = None
        """The task's outcome by the transcript; null while the task is open."""
        self._client = client
        self._episode = episode

    async def step(self, action: str) -> str | None:
        """The observation; null if the simulator has none."""
        if self.problem:
            return None
        try:
            result = await self._client.step(self._episode, action)
        except SimulatorError as error:
            self.problem = str(error)
            return None
        self.success = _to_success(result.reward)
        return result.observation


@asynccontextmanager
async def open_trial(
    name: str,
    seed: int,
    *,
    has_goal: bool,
    client: SimulatorClient | None = None,
    simulator: str | None = None,
) -> AsyncIterator[Trial]:
    """Begins an episode of the held-out task of a seed, or one without a task.

    `client` connects to the service of a simulator, and `simulator` is its name there; null is the
    only one. The simulator's episode is in its own run, which is closed with the block. Raises
    InputError for a domain without environments.
    """
    task = live_domain(name).task(seed, held_out=True, has_goal=has_goal)
    goal = task if has_goal else None
    async with AsyncExitStack() as stack:
        environment = await stack.enter_async_context(open_environment(name))
        start = await environment.reset(task)
        simulated = None
        if client:
            opening = _run_opening(task, client.simulator or simulator)
            simulated = await stack.enter_async_context(_simulate(client, opening, start, goal))
        trial_start = TrialStart(
            domain=name,
            seed=seed,
            task=task.instruction if has_goal else None,
            text=start.text,
            tools=tuple(tool.name for tool in start.tools or domain_of(name).tools),
            example=domain_of(name).question(seed + 1).action,
            simulator=client.simulator if client else None,
        )
        yield Trial(trial_start, environment, goal, simulated)


def _run_opening(task: Task, simulator: str | None) -> RunOpening:
    """A person has no weights, so the task's digest takes their place."""
    return RunOpening(
        agent=AGENT, starting_weights=task.digest, purpose="evaluation", simulator=simulator
    )


@asynccontextmanager
async def _simulate(
    client: SimulatorClient, opening: RunOpening, start: Start, task: Task | None
) -> AsyncIterator[_SimulatedEpisode]:
    try:
        run = await client.open_run(opening)
        try:
            reset = await client.begin(
                EpisodeOpening(
                    run=run.id,
                    task=task,
                    domain=start.domain,
                    initial_state=start.text,
                    tools=start.tools,
                    turn_limit=_MOST_TURNS,
                )
            )
            yield _SimulatedEpisode(client, reset.episode)
            await client.end(reset.episode)
        finally:
            await client.close_run(opening.starting_weights)
    finally:
        await client.close()


def _to_success(reward: float | None) -> bool | None:
    return None if reward is None else bool(reward)
