"""The only connection to a Kubeflow Pipelines server: its own client, with errors of this project.

Requests use the services inside `kfp.Client`. The client's own methods print links, wait without a
timeout and read a login page as an empty list, so they are not used.
"""

import json
import string
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import kfp
from kfp.client.set_volume_credentials import ServiceAccountTokenVolumeCredentials
from kfp_server_api import ApiException, HealthzServiceApi
from pydantic import ValidationError
from urllib3 import Retry
from urllib3.exceptions import HTTPError

from agentworld.errors import (
    AccessError,
    AgentworldError,
    Conflict,
    InputError,
    NotFound,
    PipelineError,
)
from agentworld.records.base import Record
from agentworld_pipelines.settings import ServerSettings

_Read = TypeVar("_Read", bound=Record)

_CONNECT_SECONDS = 10.0

_PAGE_SIZE = 100
_LONGEST_QUOTE = 500
_IN_A_TOKEN = frozenset(string.printable) - frozenset(string.whitespace)


class _Client(kfp.Client):  # type: ignore[misc]
    """Does not touch the user's home, and sends no requests by itself."""

    def _load_context_setting_or_default(self) -> None:
        # A set namespace is not looked up, and no request of ours uses it.
        self._context_setting = {"namespace": "-"}

    def _load_config(self, *arguments: Any) -> Any:
        config = super()._load_config(*arguments)
        config.retries = Retry(connect=0, read=0)  # the caller decides about retries
        return config


class Connection:
    """A server, used by one thread at a time."""

    def __init__(self, settings: ServerSettings, *, answer_seconds: float = 60.0) -> None:
        """Sends no request; raises InputError for an invalid address or token.

        `answer_seconds` is the timeout of a response.
        """
        self.url = settings.url.rstrip("/")
        self.namespace = settings.namespace or None
        self._seconds = (_CONNECT_SECONDS, answer_seconds)
        if not self.url:
            raise InputError(
                "no Kubeflow Pipelines server is named; give --server URL or set AGENTWORLD_KFP_URL"
            )
        if not self.url.startswith(("http://", "https://")):
            raise InputError(f"{self.url} is not a server's address; it begins with http or https")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about the servers' versions
            self.client = _Client(self.url, credentials=_credentials(settings.token_file))
        # stores the bytes of the last response
        self._api = self.client.runs.run_service_get_run.__self__.api_client

    def is_multi_user(self) -> bool:
        """Whether the server separates users by namespaces."""
        return bool(self.ask(HealthzServiceApi(self._api).healthz_service_get_healthz).multi_user)

    def ask(self, call: Callable[..., Any], **arguments: object) -> Any:
        """The response to one call of a service of the client."""
        try:
            answer = call(**arguments, _request_timeout=self._seconds)
            # The client makes an object without fields from any response.
            if not isinstance(json.loads(self._api.last_response.data), dict):
                raise ValueError
        except ApiException as error:
            raise self._failure(error) from error
        except HTTPError as error:
            reason = getattr(error, "reason", None) or error
            raise PipelineError(
                f"the Kubeflow Pipelines server {self.url} cannot be reached: {reason}; check the"
                " address, and try again",
                retryable=True,
            ) from error
        except OSError as error:  # the token, which is read for each request
            raise InputError(f"cannot read the server's token: {error}; check its file") from error
        except (AttributeError, TypeError, ValueError) as error:
            raise self._unexpected_answer() from error
        return answer

    def ask_for_all(
        self, call: Callable[..., Any], field: str, **arguments: object
    ) -> Iterator[Any]:
        """All items of a paged list."""
        token = ""
        while True:
            page = self.ask(call, page_token=token, page_size=_PAGE_SIZE, **arguments)
            yield from getattr(page, field) or ()
            token = page.next_page_token
            if not token:
                return

    def ask_for_id(self, call: Callable[..., Any], field: str, **arguments: object) -> str:
        """The id of an object that a call created."""
        identifier = getattr(self.ask(call, **arguments), field)
        if not identifier:
            raise self._unexpected_answer()
        return str(identifier)

    def read(self, kind: type[_Read], **fields: object) -> _Read:
        """Converts the server's fields to one of our records."""
        try:
            return kind.model_validate(fields)
        except ValidationError as error:
            raise self._unexpected_answer() from error

    def _failure(self, error: ApiException) -> AgentworldError:
        message = _message(error.body)
        prefix = f"the Kubeflow Pipelines server {self.url} answers {error.status}"
        match error.status:
            case 401:
                return AccessError(
                    f"{prefix}: it does not accept the credential; name a token's file in"
                    " AGENTWORLD_KFP_TOKEN_FILE"
                )
            case 403:
                return AccessError(
                    f"{prefix}: {message}; ask its owner for permission", kind="forbidden"
                )
            case 404 if message:
                return NotFound(f"{prefix}: {message}; check its name")
            case 409:
                return Conflict(f"{prefix}: {message}; look at what is there, and try again")
            case 400 | 413 | 422:
                return InputError(f"{prefix}: {message}; correct the request")
            case status if status == 429 or status >= 500:
                return PipelineError(f"{prefix}: {message or 'nothing'}; try again", retryable=True)
            case _:
                return self._unexpected_answer()

    def _unexpected_answer(self) -> PipelineError:
        return PipelineError(
            f"{self.url} does not answer as a Kubeflow Pipelines server does; check the address,"
            " and whether a login page precedes it"
        )


def name_filter(name: str) -> str:
    """The filter for a name."""
    equals = {"operation": "EQUALS", "key": "display_name", "stringValue": name}
    return json.dumps({"predicates": [equals]})


def in_states(states: Iterable[str]) -> str:
    """The filter for runs in these states."""
    predicate = {"operation": "IN", "key": "state", "stringValues": {"values": sorted(states)}}
    return json.dumps({"predicates": [predicate]})


def _credentials(token_file: Path | None) -> ServiceAccountTokenVolumeCredentials | None:
    if token_file is None:
        return None
    try:
        token = token_file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read the token in {token_file}: {error}; check the path"
        ) from error
    if not token or not _IN_A_TOKEN.issuperset(token):
        raise InputError(f"{token_file} has no token; it is one word of ASCII")
    return ServiceAccountTokenVolumeCredentials(str(token_file))


def _message(body: str | None) -> str:
    """The server's error message, in either of its two forms; empty if there is none."""
    try:
        document = json.loads(body or "")
        message = (
            document.get("message") or document.get("error_message") or document.get("error") or ""
        )
    except (AttributeError, ValueError):
        return ""
    return str(message)[:_LONGEST_QUOTE]
