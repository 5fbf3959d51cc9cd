"""A third-party model: a judge, or a teacher."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from agentworld.records.base import JsonObject, Record, Sparse

_SOURCE = re.compile(r"|[A-Z_][A-Z0-9_]*|/\S.*")


def _check_source(source: str) -> str:
    """Refuses a value that may be the key itself, without repeating it."""
    if not _SOURCE.fullmatch(source):
        raise PydanticCustomError(
            "secret",
            "it names the environment variable (in capital letters) or the file that holds the key;"
            " do not write the key itself",
        )
    return source


class EndpointRecipe(Record):
    """An OpenAI-compatible server of a third party."""

    url: str = "http://127.0.0.1:8000"
    """The server's address, without `/v1`."""
    model: str = "default"
    """The model's name at the server."""
    key_from: Annotated[Sparse[str], AfterValidator(_check_source)] = ""
    """Where the API key is: the name of an environment variable, as `TEACHER_KEY`, or the path of a
    file, as of a mounted Secret. Empty sends no key."""
    max_tokens: int = Field(8192, gt=0)
    """Longest answer in tokens, including thoughts; Qwen-AgentWorld's evaluation allows 32,768."""
    fields: Sparse[JsonObject] = {}
    """More fields of each request; null leaves one of ours out, as `max_tokens: null` for a server
    that wants `max_completion_tokens`."""
    concurrency: int = Field(8, gt=0)
    """The number of concurrent requests."""
    timeout_seconds: float = Field(300.0, gt=0)
    """How long to wait for an answer; a model that thinks takes minutes."""

    @property
    def identity(self) -> "EndpointRecipe":
        """The fields that answers depend on: not the server's address, nor how it is called."""
        return EndpointRecipe(model=self.model, max_tokens=self.max_tokens, fields=self.fields)
