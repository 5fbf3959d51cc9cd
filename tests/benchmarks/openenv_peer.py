"""The peer: an OpenEnv server whose environment does nothing and keeps nothing.

It runs on the exact versions of tools/constraints/openenv.txt, as its users would run it:
`create_app`, one uvicorn worker. `generated` takes a step in a thread, like the code that
`openenv init` writes; `async` takes it in the event loop, the fastest that the package allows.
"""

import sys

import uvicorn
from openenv.core.env_server import Action, Environment, Observation, State, create_app

MOST_SESSIONS = 20_000


class Command(Action):
    """A request of the load client."""

    action: str


class TextObservation(Observation):
    """The response to every step."""

    text: str


class Idle(Environment[Command, TextObservation, State]):
    """Returns the same text for every action; no episode ends."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    text = ""

    def reset(self, *_arguments, **_options):
        return TextObservation(text="")

    def step(self, *_arguments, **_options):
        return TextObservation(text=self.text)

    @property
    def state(self):
        return State()


class AsyncIdle(Idle):
    """The same without a thread."""

    async def reset_async(self, *_arguments, **_options):
        return TextObservation(text="")

    async def step_async(self, *_arguments, **_options):
        return TextObservation(text=self.text)


def main(port: str, style: str, text: str) -> None:
    Idle.text = text
    environment = {"generated": Idle, "async": AsyncIdle}[style]
    app = create_app(environment, Command, TextObservation, max_concurrent_envs=MOST_SESSIONS)
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main(*sys.argv[1:])
