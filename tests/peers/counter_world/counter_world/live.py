"""A counter that runs in this process, for nothing of it is a command."""

from contextlib import asynccontextmanager

from agentworld.domains.base import Start
from agentworld.domains.live import Observation
from agentworld.records.task import Task


class CounterEnvironment:
    def __init__(self):
        self.num_steps = 0
        self._value = 0

    async def reset(self, task):
        self._value = int(task.initial_state.removeprefix("at "))
        return Start(domain="counter", text=task.initial_state)

    async def step(self, action):
        self.num_steps += 1
        if action.startswith("add "):
            self._value += int(action.removeprefix("add "))
        return Observation(f"now {self._value}\n")

    async def state(self):
        return f"at {self._value}"

    async def fields(self):
        return {"value": str(self._value)}

    async def check(self, task):
        return f"now {self._value}\n" == task.success.output


class CounterExplorer:
    def __init__(self, rng, num_turns):
        self._actions = [rng.choice(["show", f"add {rng.randrange(4)}"]) for _ in range(num_turns)]

    def act(self, observation):
        return self._actions.pop() if self._actions else None


class LiveCounter:
    launchers = frozenset()
    programs = ()

    def check_available(self):
        """It is always there."""

    def task(self, seed, *, held_out, has_goal=True):
        start, goal = seed % 9, seed % 9 + 2
        return Task(
            domain="counter",
            id=f"counter-{'held-out-' if held_out else ''}{seed}",
            family="reach",
            instruction=f"reach {goal}",
            initial_state=f"at {start}",
            success={"closing": "show", "output": f"now {goal}\n"},
            turn_limit=4,
            seed=seed,
        )

    def explorer(self, rng, start, task, *, held_out, pursues_task, num_turns):
        return CounterExplorer(rng, num_turns)

    @asynccontextmanager
    async def open(self, settings):
        yield CounterEnvironment()


DOMAIN = LiveCounter()
