"""An engine with every known kind of failure: a separate process with a chat API.

It records its responses before it sends them, and which of them it spoiled. It always identifies
itself truthfully.
"""

import argparse
import asyncio
import json
import random
import secrets
from pathlib import Path

from campaigns.harness.journal import Journal
from campaigns.service import law
from campaigns.service.spoiled import SPOILED, Answer, response
from fakes import endpoint

_LONGEST_THOUGHT_SECONDS = 0.05
_CUT = ("reset", "half", "half without length")
_HARMLESS = ("slow", "another's")
"""After these, the text was complete, but late or for another client."""
_FAULTS = (*SPOILED, *_CUT, *_HARMLESS, "hang")


class Engine:
    """An engine of one version; a request's fault follows from the seed and the request's
    number.
    """

    def __init__(self, settings: argparse.Namespace) -> None:
        self._words = settings
        self._number = 0
        self._last: Answer | None = None
        self._metadata = endpoint.vllm(law.ENGINE_VERSION, settings.version, law.CONTEXT_TOKENS)
        self._said = Journal(settings.folder / "said.jsonl")
        self._faults = Journal(settings.folder / "faults.jsonl")

    async def serve(self) -> None:
        """Serves until it is killed."""
        server = await asyncio.start_server(self._converse, "127.0.0.1", self._words.port)
        await server.serve_forever()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer(reader, writer):
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client closed the connection
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Responds to one request; returns whether the connection stays open."""
        path, request, body = await _read_request(reader)
        if path in self._metadata:
            writer.write(response(self._metadata[path]))
            return True
        if not body:  # a route of vLLM that can change its settings
            writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
            return True
        request_body: Answer = json.loads(body)
        self._number += 1
        chance = random.Random(f"{self._words.name} {self._words.seed} {self._number}")
        # Long enough for another replica to reach the same step.
        await asyncio.sleep(chance.uniform(0, _LONGEST_THOUGHT_SECONDS))
        fault = self._draw(chance)
        answer = self._say(request, request_body, fault, chance)
        if fault == "hang":
            await reader.read()  # until the other side closes
            return False
        if fault == "slow":
            await asyncio.sleep(self._words.timeout * chance.uniform(0.1, 0.7))
        if fault in _CUT:
            return await _cut(writer, fault, answer)
        spoil = SPOILED.get(fault or "", response)
        writer.write(spoil(self._last if fault == "another's" and self._last else answer))
        self._last = answer
        return True

    def _draw(self, chance: random.Random) -> str | None:
        if chance.random() >= self._words.rate:
            return None
        fault = chance.choice(_FAULTS)
        if fault == "another's" and self._last is None:
            return None
        self._faults.write(kind=f"engine: {fault}", target=self._words.name)
        return fault

    def _say(self, request: str, body: Answer, fault: str | None, chance: random.Random) -> Answer:
        settings, nonce = self._words, secrets.token_hex(8)
        observation = law.observation(settings.secret, settings.version, body["messages"], nonce)
        record = {"engine": settings.name, "version": settings.version, "nonce": nonce}
        recorded_fault = None if fault in _HARMLESS else fault
        self._said.write(**record, observation=observation, fault=recorded_fault)
        thought = "<think>so be it</think>" if chance.random() < 0.2 else ""
        return {
            "id": f"chatcmpl-{request}",
            "object": "chat.completion",
            "model": settings.version,
            "choices": [_choice(thought + observation, -chance.random())],
            "usage": {"prompt_tokens": 8, "completion_tokens": 8, "total_tokens": 16},
        }


def _choice(text: str, logprob: float) -> Answer:
    return {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
        "logprobs": {"content": [{"token": "t", "logprob": logprob}]},
    }


async def _read_request(reader: asyncio.StreamReader) -> tuple[str, str, bytes]:
    """The path and the name of a request, and its body."""
    first, *head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (h.partition(":") for h in head)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return first.split()[1], headers.get("x-request-id", ""), body


async def _cut(writer: asyncio.StreamWriter, fault: str, answer: Answer) -> bool:
    if fault == "reset":
        writer.transport.abort()
        return False
    data = response(answer, length=fault == "half")
    writer.write(data[: len(data) - len(json.dumps(answer)) // 2])
    await writer.drain()
    return False


def main() -> None:
    """All settings are options, with a new seed for each start."""
    parser = argparse.ArgumentParser()
    for name in ("name", "version", "secret", "seed"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--timeout", type=float, required=True)
    asyncio.run(Engine(parser.parse_args()).serve())


if __name__ == "__main__":
    main()
