"""What an episode says on each wire that goes over HTTP. An episode has 32 turns at most."""

import itertools
from collections.abc import Callable

from benchmarks.http_episode import Fields, Request, Words

_ACTIONS = ("ls", "cat rimo.txt", "echo kolu > tane.txt", "cat tane.txt", "rm rimo.txt", "pwd")
_MCP = "accept: application/json, text/event-stream\r\nmcp-protocol-version: 2025-06-18\r\n"


class _Wire:
    """`host` is the server's, `run` an open run of it."""

    def __init__(self, host: str, run: str) -> None:
        self._host, self._run = host, run
        self._episode, self._taken = "", 0
        self._actions = itertools.cycle(_ACTIONS)

    def begin(self) -> Request:
        return Request.post(self._host, "/episodes", {"run": self._run})

    def has_begun(self, answer: Fields) -> None:
        self._episode, self._taken = answer["episode"], 0

    def step(self) -> Request:
        self._taken += 1
        return self._step(next(self._actions))

    def is_over(self, answer: Fields) -> bool:
        """Whether this was the last step; raises KeyError for what is no answer."""
        raise NotImplementedError

    def _step(self, action: str) -> Request:
        raise NotImplementedError


class Native(_Wire):
    """Our own."""

    def is_over(self, answer: Fields) -> bool:
        return bool(answer["done"] and answer["observation"])

    def _step(self, action: str) -> Request:
        body = {"episode": self._episode, "action": action, "step": self._taken}
        return Request.post(self._host, "/steps", body)


class OpenEnv(_Wire):
    """OpenEnv without its socket."""

    def is_over(self, answer: Fields) -> bool:
        return bool(answer["done"] and answer["observation"]["text"])

    def _step(self, action: str) -> Request:
        body = {"action": {"action": action}, "episode_id": self._episode, "step": self._taken}
        return Request.post(self._host, f"/runs/{self._run}/step", body)


class OpenAI(_Wire):
    """Chat completions; a request brings all that was said before."""

    def has_begun(self, answer: Fields) -> None:
        super().has_begun(answer)
        self._model, self._said = answer["simulator"], []

    def is_over(self, answer: Fields) -> bool:
        text = answer["choices"][0]["message"]["content"]
        self._said.append({"role": "assistant", "content": text})
        return answer["agentworld"]["done"]

    def _step(self, action: str) -> Request:
        self._said.append({"role": "user", "content": action})
        body = {"messages": self._said, "metadata": {"episode": self._episode}}
        path = f"/runs/{self._run}/v1/chat/completions"
        return Request.post(self._host, path, {"model": self._model, **body})


class Mcp(_Wire):
    """A tool call for each step."""

    def is_over(self, answer: Fields) -> bool:
        result = answer["result"]
        return bool(result["content"][0]["text"]) and result["_meta"]["agentworld"]["done"]

    def _step(self, action: str) -> Request:
        call = {"name": "bash", "arguments": {"command": action}}
        body = {"jsonrpc": "2.0", "id": self._taken, "method": "tools/call", "params": call}
        return Request.post(self._host, f"/episodes/{self._episode}/mcp", body, _MCP)


HTTP_WIRES: dict[str, Callable[[str, str], Words]] = {
    "http": Native,
    "openenv_http": OpenEnv,
    "openai": OpenAI,
    "mcp": Mcp,
}
"""By their names; made of the server's host and the run."""
