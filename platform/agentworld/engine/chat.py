"""A chat as OpenAI-compatible servers take it, and a client for code without an event loop."""

from collections.abc import Sequence

import httpx
from pydantic import JsonValue

from agentworld.engine.answer import read_text
from agentworld.engine.http_client import open_client
from agentworld.engine.refusal import refusal
from agentworld.errors import EngineError, InputError
from agentworld.recipes.train import EndpointRecipe
from agentworld.records.message import Message
from agentworld.storage.address import redact

CHAT_PATH = "/v1/chat/completions"

Fields = dict[str, JsonValue]

_MISCONFIGURED = {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN, httpx.codes.NOT_FOUND}


class ChatClient:
    """Asks the endpoint of a recipe; `role` names it in errors."""

    def __init__(self, endpoint: EndpointRecipe, role: str) -> None:
        self.name = f"the {role} at {redact(endpoint.url)}"
        self._endpoint = endpoint
        self._client = open_client(endpoint.url, timeout_seconds=endpoint.timeout_seconds)

    def ask(self, messages: Sequence[Message], **fields: JsonValue) -> str:
        """What the model says; raises EngineError where it says nothing, and InputError where
        another request cannot help.
        """
        body = chat_body(self._endpoint.model, messages) | fields
        try:
            response = self._client.post(f"{self._endpoint.url}{CHAT_PATH}", json=body)
        except httpx.HTTPError as error:
            raise no_response(self.name, error) from error
        if response.status_code in _MISCONFIGURED:
            raise InputError(f"{self.name}: {refusal(response)}; correct the recipe's endpoint")
        return read_text(response)

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()


def chat_body(model: str, messages: Sequence[Message]) -> Fields:
    """The fields that every kind of server takes."""
    return {
        "model": model,
        "messages": [{"role": m["role"], "content": _encodable(m["content"])} for m in messages],
    }


def no_response(name: str, error: httpx.HTTPError) -> EngineError:
    """The failure of a request that got no response."""
    if isinstance(error, httpx.TimeoutException):
        return EngineError(
            f"{name} gave no answer in time ({error}); give it more time or less to do",
            kind="slow",
        )
    return EngineError(f"{name} gave no answer ({type(error).__name__}); is it running?")


def _encodable(text: str) -> str:
    """The text as UTF-8 can hold it: both halves of a surrogate pair are one character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
