"""A client of the OpenEnv protocol: an episode lives as long as its connection.

Its journal has the form of the other clients' journals.
"""

import asyncio
import json
import time
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, WebSocketException

from agentworld.records.run import RunOpening
from campaigns.harness.journal import Journal
from campaigns.service.client import Client, Plan, draw
from campaigns.service.wire import JournalledTransport
from make import records

_LONGEST_SECONDS = 6.0
_PAUSE_SECONDS = 0.1
_MOST_TRIES = 30
_GONE = (WebSocketException, InvalidHandshake, OSError, EOFError, TimeoutError)

Row = dict[str, Any]


class SocketClient(Client):
    """One run for each connection."""

    def __init__(self, name: str, url: str, seed: str, wire: Journal) -> None:
        super().__init__(name, seed)
        self._url = url
        self._wire = wire
        self._num_episodes = 0

    async def play(self) -> None:
        """Reconnects after each lost connection."""
        transport = JournalledTransport(self.name, self._wire)
        async with httpx.AsyncClient(base_url=self._url, transport=transport) as http:
            while not self._ending:
                try:
                    async with asyncio.timeout(_LONGEST_SECONDS):
                        run = await self._open_run(http)
                    if run is not None:
                        await self._converse(run)
                except (httpx.TransportError, *_GONE):
                    pass
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _open_run(self, http: httpx.AsyncClient) -> Row | None:
        opening = RunOpening(agent=self.name, starting_weights=records.digest("starting"))
        answer = await http.post("/runs", json=opening.model_dump(mode="json"))
        return answer.json()["run"] if answer.is_success else None

    async def _converse(self, run: Row) -> None:
        url = f"{self._url.replace('http', 'ws', 1)}/runs/{run['id']}/ws"
        async with connect(url, proxy=None, compression=None, close_timeout=1.0) as socket:
            while not self._ending:
                await self._episode(socket, run)

    async def _episode(self, socket: ClientConnection, run: Row) -> None:
        self._num_episodes += 1
        plan = draw(run["id"], f"{self.name}-{self._num_episodes}.txt: kolu", self._random)
        opening = plan.opening.model_dump(mode="json")
        fields = {name: value for name, value in opening.items() if name != "run"}
        reply = await self._insist(socket, "reset", fields, opening, run)
        if reply is not None:
            await self._play(socket, plan, reply["observation"]["episode"], run)

    async def _play(self, socket: ClientConnection, plan: Plan, episode: str, run: Row) -> None:
        for number, action in enumerate(plan.actions, 1):
            request = {"episode": episode, "step": number, "action": action}
            reply = await self._insist(socket, "step", {"action": action}, request, run)
            if reply is None:
                return
            self.num_steps += 1
            if reply["done"]:
                return

    async def _insist(
        self, socket: ClientConnection, kind: str, data: Row, request: Row, run: Row
    ) -> Row | None:
        """Repeats a request until there is an observation; `request` is its form in the journal."""
        for _ in range(_MOST_TRIES):
            sent_at = time.time()
            async with asyncio.timeout(_LONGEST_SECONDS):
                await socket.send(json.dumps({"type": kind, "data": data}))
                frame = json.loads(await socket.recv())
            self._note(kind, frame, request, run, sent_at)
            if frame["type"] == "observation":
                data_fields: Row = frame["data"]
                return data_fields
            await asyncio.sleep(_PAUSE_SECONDS)
        return None

    def _note(self, kind: str, frame: Row, request: Row, run: Row, sent: float) -> None:
        """A failure in this protocol names no simulator: it is the run's, or an error in any
        case.
        """
        body, status, simulator = {"error": frame["data"]}, 500, run["simulator"]
        if frame["type"] == "observation":
            fields, outcome = frame["data"]["observation"], frame["data"]
            body = {**outcome, "run": run["id"], **fields, "observation": fields["text"]}
            status, simulator = 200, fields["simulator"]
        self._wire.write(
            client=self.name,
            method="POST",
            path=f"/{kind}",
            body=request,
            sent=sent,
            status=status,
            simulator=simulator,
            text=json.dumps(body),
        )
