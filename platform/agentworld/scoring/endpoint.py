"""The client of judges and teachers: paid models behind an OpenAI-compatible API.

It limits concurrent requests, retries temporary failures after a pause, sends the recipe's key, and
never sends a request again that was answered.
"""

import os
import re
import time
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from threading import BoundedSemaphore
from typing import Self

import httpx

from agentworld.engine.answer import read_chat
from agentworld.engine.chat import CHAT_PATH, Fields, chat_body, no_response
from agentworld.engine.http_client import open_client
from agentworld.engine.refusal import refusal
from agentworld.errors import EngineError, EngineFailure, InputError
from agentworld.recipes.endpoint import EndpointRecipe
from agentworld.records.base import Digest
from agentworld.records.garbled import redact
from agentworld.records.message import Message
from agentworld.scoring.answers import Answer, AnswerStore, Question

_REQUESTS = 3
_REQUESTS_OF_BUSY = 10
_LONGEST_PAUSE_SECONDS = 60.0
_BUSY: EngineFailure = "capacity"
_KEY = re.compile(r"[\x21-\x7e]+")
_MISCONFIGURED = {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN, httpx.codes.NOT_FOUND}


class EndpointClient:
    """Sends requests to the endpoint of a recipe; `role` names it in errors.

    Threads may share it. A failed request is sent three times, and ten times if the endpoint is
    busy. The pauses are as long as the endpoint asks for, or double each time.
    """

    def __init__(
        self,
        endpoint: EndpointRecipe,
        role: str,
        *,
        answers: AnswerStore | None = None,
        pause_seconds: float = 2.0,
    ) -> None:
        self.name = f"the {role} at {redact(endpoint.url)}"
        self._endpoint = endpoint
        self._answers = answers
        self._pause_seconds = pause_seconds
        self._turns = BoundedSemaphore(endpoint.concurrency)
        self._client = open_client(endpoint.url, timeout_seconds=endpoint.timeout_seconds)
        self._bill: list[Answer] | None = None
        self._billed: set[Digest] = set()
        """Questions whose answers are billed already."""

    def billed_to(self, bill: list[Answer]) -> Self:
        """The same client, which also appends each answer to a list: once for each question."""
        client = copy(self)
        client._bill = bill
        client._billed = set()
        return client

    def ask(self, messages: Sequence[Message], *, temperature: float, number: int = 0) -> Answer:
        """The model's answer, stored or new; another number gives another answer.

        Raises EngineError without an answer, and InputError if a retry cannot help.
        """
        body = self._body(messages, temperature)
        question = Question(request=body, number=number).digest
        answer = self._answers.find(question) if self._answers else None
        is_new = answer is None
        if answer is None:
            with self._turns:
                answer = self._ask_patiently(body)
            if self._answers:
                self._answers.add(question, answer)
        if self._bill is not None and (is_new or question not in self._billed):
            self._bill.append(answer)
            self._billed.add(question)
        return answer

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def _body(self, messages: Sequence[Message], temperature: float) -> Fields:
        recipe = self._endpoint
        body = chat_body(recipe.model, messages)
        body |= {"temperature": temperature, "max_tokens": recipe.max_tokens, **recipe.fields}
        return {name: value for name, value in body.items() if value is not None}

    def _ask_patiently(self, body: Fields) -> Answer:
        num_requests, pause = 0, self._pause_seconds
        while True:
            try:
                return self._ask_now(body)
            except EngineError as error:
                num_requests += 1
                most = _REQUESTS_OF_BUSY if error.kind == _BUSY else _REQUESTS
                if not error.retryable or num_requests >= most:
                    raise
                time.sleep(
                    pause if error.retry_after_seconds is None else error.retry_after_seconds
                )
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _ask_now(self, body: Fields) -> Answer:
        key = _read_key(self._endpoint.key_from)
        headers = {"authorization": f"Bearer {key}"} if key else {}
        try:
            response = self._client.post(
                f"{self._endpoint.url}{CHAT_PATH}", json=body, headers=headers
            )
        except httpx.HTTPError as error:
            raise no_response(self.name, error) from error
        try:
            if response.status_code in _MISCONFIGURED:
                message = f"{self.name}: {refusal(response)}; correct the recipe's endpoint"
                raise InputError(message)
            return Answer.of(read_chat(response))
        except (EngineError, InputError) as error:
            if key and key in str(error):  # a server may repeat the request
                error.args = (str(error).replace(key, "***"),)
            raise


def _read_key(source: str) -> str:
    """Read for each request, because a mounted Secret may change while a step runs."""
    if not source:
        return ""
    try:
        key = Path(source).read_text() if source.startswith("/") else os.environ[source]
    except (OSError, KeyError, UnicodeDecodeError) as error:
        raise InputError(
            f"key_from names {source}, and there is no key; set the variable, or mount the file"
        ) from error
    if not _KEY.fullmatch(key.strip()):  # otherwise an error of the HTTP client would quote it
        raise InputError(f"key_from names {source}, which holds no key; correct it")
    return key.strip()
