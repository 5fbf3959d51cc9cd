"""A client that breaks rules: the same step twice at once, at two replicas, or with two actions.

It uses HTTP directly, and accepts any response, of any simulator.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import httpx

from agentworld.records.run import RunOpening
from campaigns.harness.journal import Journal
from campaigns.service.client import Client, draw
from campaigns.service.wire import JournalledTransport
from make import records

_PAUSE_SECONDS = 0.1
_MOST_TRIES = 30
_CLOSING_RATE = 0.03
_MANNERS = ("once", "twice", "everywhere", "two actions", "again", "early")


class RoughClient(Client):
    """Plays one episode after another, through any replica."""

    def __init__(self, name: str, urls: Sequence[str], seed: str, wire: Journal) -> None:
        super().__init__(name, seed)
        self._urls = urls
        transport = JournalledTransport(name, wire)
        self._http = httpx.AsyncClient(transport=transport, timeout=6.0)

    async def play(self) -> None:
        """Begins episodes until it is ended."""
        number = 0
        opening = RunOpening(agent=self.name, starting_weights=records.digest("starting"))
        while not self._ending:
            opened_run = await self._insist("/runs", opening.model_dump(mode="json"))
            for _ in range(4 if opened_run else 0):
                number += 1
                await self._episode(opened_run["run"]["id"], f"{self.name}-{number}.txt: kolu")
        await self._http.aclose()

    async def _episode(self, run: str, start: str) -> None:
        plan = draw(run, start, self._random)
        episode = await self._insist("/episodes", plan.opening.model_dump(mode="json"))
        tries = 0
        for number, action in enumerate(plan.actions if episode else (), 1):
            if self._random.random() < _CLOSING_RATE:
                await self._close(episode["episode"], number, action)
                return
            while (answer := await self._step(episode["episode"], number, action)) is None:
                tries += 1
                if self._ending or tries > _MOST_TRIES:
                    return
                await asyncio.sleep(_PAUSE_SECONDS)
            self.num_steps += 1
            if answer["done"]:
                return

    async def _close(self, episode: str, number: int, action: str) -> None:
        """Closes an episode during a step on another replica; then no replica may take a step."""
        first, second = self._random.sample(self._urls, 2)
        bodies = [{"episode": episode, "step": number + n, "action": action} for n in range(3)]
        await asyncio.gather(
            self._post(first, "/steps", bodies[0]),
            self._post(second, f"/episodes/{episode}/close", None),
        )
        for body in bodies:
            await self._post(first, "/steps", body)

    async def _step(self, episode: str, number: int, action: str) -> dict[str, Any] | None:
        """A response to this step, if there was one."""
        first, second = self._random.sample(self._urls, 2)
        requests = {
            "once": [(first, number, action)],
            "twice": [(first, number, action)] * 2,
            "everywhere": [(url, number, action) for url in self._urls],
            "two actions": [(first, number, action), (second, number, f"{action} again")],
            "again": [(first, number, action), (second, max(1, number - 1), action)],
            "early": [(first, number + 1, f"{action} too early"), (second, number, action)],
        }[self._random.choice(_MANNERS)]
        bodies = [
            (url, {"episode": episode, "step": step, "action": requested_action})
            for url, step, requested_action in requests
        ]
        answers = await asyncio.gather(*(self._post(url, "/steps", body) for url, body in bodies))
        accepted = [answer for answer in answers if answer and answer.get("step") == number]
        return accepted[0] if accepted else None

    async def _insist(self, path: str, body: object) -> dict[str, Any]:
        """A response of any replica, or null if all refuse."""
        for _ in range(_MOST_TRIES):
            answer = await self._post(self._random.choice(self._urls), path, body)
            if answer or self._ending:
                return answer or {}
            await asyncio.sleep(_PAUSE_SECONDS)
        return {}

    async def _post(self, url: str, path: str, body: object) -> dict[str, Any] | None:
        try:
            async with asyncio.timeout(6.0):
                answer = await self._http.post(url + path, json=body)
        except (httpx.HTTPError, TimeoutError):
            return None
        return json.loads(answer.content or b"{}") if answer.is_success else None
