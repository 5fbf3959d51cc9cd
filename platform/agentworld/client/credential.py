"""Settings of the client: the service's address and the credential."""

import re
from collections.abc import Callable
from pathlib import Path

import httpx
from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld.errors import InputError
from agentworld.records.file import read_regular
from agentworld.records.garbled import redact

START_SECONDS = 900.0
"""As long as a Simulator's replica may take to start by default (`startupSeconds`)."""

Credential = str | Callable[[], str | None]
"""A credential, or a function that returns it for each use, because a token may be rotated."""


class ClientSettings(BaseSettings):
    """Read from environment variables and stored nowhere."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", env_ignore_empty=True, frozen=True)

    service_url: str = ""
    """The address of a deployed service; without it, steps serve simulators themselves."""
    credential: SecretStr = SecretStr("")
    """An API key (`agentworld api-key new`), a run's token or a service account's token."""
    credential_file: Path | None = None
    """A file with the credential, read again for each use."""
    start_seconds: float = Field(START_SECONDS, ge=0)
    """How long a step waits for an engine that is scaled to zero or still loads its weights."""

    def load_credential(self) -> str | None:
        """The current credential; raises InputError if the file cannot be read."""
        if self.credential.get_secret_value() or self.credential_file is None:
            return self.credential.get_secret_value().strip() or None
        try:
            return read_regular(self.credential_file).decode().strip() or None
        except (OSError, ValueError) as error:
            raise InputError(
                f"the credential cannot be read from {self.credential_file}"
                f" ({type(error).__name__}); name the token's file in AGENTWORLD_CREDENTIAL_FILE"
            ) from error


def authorisation(credential: Credential | None) -> Callable[[], dict[str, str]]:
    """Returns a function that makes the header; it raises InputError for an invalid credential
    without quoting it.
    """
    if callable(credential):
        return lambda: _header(credential())
    header = _header(credential)
    return lambda: header


def split_credential(url: str) -> tuple[str, str | None]:
    """Splits a URL into the address and its credential; raises InputError if it is not a URL."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        # not quoted: a wrong port may be a token without its host
        raise InputError(
            f"the URL is not a simulator's address ({type(error).__name__}); give http://host:port"
        ) from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InputError(f"{redact(url)!r} is not a simulator's address; give http://host:port")
    address = parsed.copy_with(username=None, password=None) if parsed.userinfo else parsed
    return str(address), parsed.password or None


def _header(credential: str | None) -> dict[str, str]:
    if not credential:
        return {}
    if not re.fullmatch("[!-~]+", credential):
        raise InputError(
            "the credential holds a blank, a line's end or a letter beyond ASCII; give it as it was"
            " printed"
        )
    return {"authorization": f"Bearer {credential}"}
