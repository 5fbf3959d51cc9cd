"""Authenticates callers of the console: by the access file, or by an authenticating proxy."""

import hmac
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentworld.access import Access, Caller, Role
from agentworld.access.run_token import RunTokens
from agentworld.access.secret import RUN_TOKENS, new_secret, read_secret
from agentworld.errors import AccessError, AgentworldError, InputError
from agentworld.http.auth import check_loopback, credential
from agentworld.serving.setup import access_of

_OPEN = re.compile(r"/healthz|/static/[a-z.]+")
_TENANT = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_LEAST_SECRET = 32
_PROXY = "x-agentworld-"
_SECURITY = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}

Refusal = Callable[[Request, AgentworldError], Response]


class Callers:
    """Authenticates callers by access control, or by the headers of a proxy that has the secret."""

    def __init__(
        self, access: Access | None, *, proxy_secret: str = "", loopback_only: bool = False
    ) -> None:
        self._access = access
        self._secret = proxy_secret.encode()
        self._loopback_only = loopback_only

    @classmethod
    def of(
        cls, access: Literal["local"] | Path | None, proxy_secret: str, keys: Path, host: str
    ) -> "Callers":
        """Raises InputError for settings that would admit every caller, or none."""
        if proxy_secret and len(proxy_secret) < _LEAST_SECRET:
            raise InputError(
                f"AGENTWORLD_CONSOLE_PROXY_SECRET has {len(proxy_secret)} characters; give it at"
                f" least {_LEAST_SECRET}"
            )
        if access is None and not proxy_secret:
            raise InputError(
                "the console has no access control yet; give `--access local` for all users of this"
                " machine, or `--access FILE` with an access file (in a container set"
                " AGENTWORLD_CONSOLE_ACCESS)"
            )
        if access == "local" and proxy_secret:
            raise InputError(
                "`--access local` trusts all users of this machine, and"
                " AGENTWORLD_CONSOLE_PROXY_SECRET is set for a proxy; remove one of them"
            )
        authenticator = access_of(_tokens(keys), access, host) if access else None
        return cls(authenticator, proxy_secret=proxy_secret, loopback_only=access == "local")

    async def caller(self, request: Request) -> Caller:
        """The caller of a request; raises AccessError."""
        if self._loopback_only:
            check_loopback(request.scope["headers"])
        if caller := self._resolve_proxy_caller(request):
            return caller
        if self._access is None:
            raise AccessError(
                "this console has no access file and answers only its proxy; open the proxy's"
                " address, or start the console with `--access FILE`"
            )
        return await self._access.caller(credential(request.scope["headers"]))

    def _resolve_proxy_caller(self, request: Request) -> Caller | None:
        """Ignores the proxy's headers without the right secret."""
        secrets = request.headers.getlist(f"{_PROXY}proxy-secret")
        is_known = len(secrets) == 1 and hmac.compare_digest(secrets[0].encode(), self._secret)
        if not self._secret or not is_known:
            return None
        tenant, user, roles = (_single_value(request, name) for name in ("tenant", "user", "roles"))
        if not user or not _TENANT.fullmatch(tenant):
            raise AccessError(
                f"the proxy sent the user {user!r:.80} and the tenant {tenant!r:.80}; configure it"
                f" to send {_PROXY}user and {_PROXY}tenant",
                kind="forbidden",
            )
        names = {name.strip() for name in roles.split(",")}
        all_roles: tuple[Role, ...] = get_args(Role)
        return Caller(tenant, f"{tenant}/{user}", frozenset(r for r in all_roles if r in names))


class AuthMiddleware:
    """Puts the caller into the scope, and refuses unknown ones; `/health` needs no caller."""

    def __init__(self, app: ASGIApp, callers: Callers, refuse: Refusal) -> None:
        self._app = app
        self._callers = callers
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _OPEN.fullmatch(scope["path"]):
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            scope["caller"] = await self._callers.caller(request)
        except AgentworldError as error:
            await self._refuse(request, error)(scope, receive, send)
            return
        await self._app(scope, receive, send)


class SecurityHeaders:
    """Adds security headers to every response, errors included."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_static = scope.get("path", "").startswith("/static/")
        caching = {"cache-control": "public, max-age=3600" if is_static else "no-store"}
        headers = [(n.encode(), v.encode()) for n, v in (_SECURITY | caching).items()]

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *headers]
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _single_value(request: Request, name: str) -> str:
    """A header's value; a header that occurs twice counts as missing."""
    values = request.headers.getlist(f"{_PROXY}{name}")
    return values[0].strip() if len(values) == 1 else ""


def _tokens(keys: Path) -> RunTokens:
    """The service's run tokens; if the service has no secret yet, every token is invalid.

    The console writes no secret.
    """
    path = keys / RUN_TOKENS
    return RunTokens(read_secret(path) if path.exists() else new_secret())
