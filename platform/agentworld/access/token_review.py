"""Authenticates Kubernetes service accounts by the TokenReview API."""

import asyncio
import base64
import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pydantic import BaseModel, ValidationError

from agentworld.cluster.client import ApiServer, configuration
from agentworld.errors import AccessError, ClusterError, InputError

AUDIENCE = "agentworld"
"""The audience that a token must have; tokens for other services are refused."""

_ACCOUNT = "system:serviceaccount:"
_BELIEVED_SECONDS = 60.0
_REFUSED_SECONDS = 5.0
_CACHE_SIZE = 10_000
_MOST_AT_ONCE = 4
_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"

Review = Callable[[str], Awaitable[str | None]]
"""Maps a token to NAMESPACE/NAME; null if the cluster rejects the token."""


class ServiceAccounts:
    """Caches the cluster's answers for a while, by the token's digest."""

    def __init__(self, review: Review, clock: Callable[[], float] = time.monotonic) -> None:
        self._review = review
        self._clock = clock
        self._cache: OrderedDict[bytes, tuple[str | None, float]] = OrderedDict()
        self._pending_reviews: dict[bytes, asyncio.Task[str | None]] = {}

    async def account(self, token: str) -> str | None:
        """The account of a token; raises AccessError if the cluster does not answer."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        account, until = self._cache.get(digest, (None, 0.0))
        if self._clock() < until:
            return account
        # Concurrent requests with the same token share one review.
        review = self._pending_reviews.get(digest)
        if review is None:
            review = self._pending_reviews[digest] = asyncio.create_task(self._ask(token, digest))
            review.add_done_callback(lambda _: self._pending_reviews.pop(digest))
        return await asyncio.shield(review)

    async def _ask(self, token: str, digest: bytes) -> str | None:
        account = await self._review(token)
        cache_seconds = _BELIEVED_SECONDS if account else _REFUSED_SECONDS
        self._cache[digest] = account, self._clock() + cache_seconds
        self._cache.move_to_end(digest)
        if len(self._cache) > _CACHE_SIZE:
            self._cache.popitem(last=False)
        return account


def claimed_account(token: str) -> str | None:
    """The account that a token names, unverified; null if it names none.

    Tokens of unknown accounts are refused here. So an unknown client cannot make the service send
    many reviews, or send the cluster a token that was made for another service.
    """
    parts = token.split(".")
    if len(parts) != 3:
        return None
    claims = parts[1] + "=" * (-len(parts[1]) % 4)
    try:
        payload = json.loads(base64.urlsafe_b64decode(claims))
    except (ValueError, RecursionError):
        return None
    subject = payload.get("sub") if isinstance(payload, dict) else None
    return _account(subject) if isinstance(subject, str) else None


def cluster_review(audience: str = AUDIENCE, kubeconfig: Path | None = None) -> Review:
    """Reviews tokens at the cluster of a kubeconfig, of this pod, or of the current context."""
    server = _api(kubeconfig)
    # Own threads, so that a slow cluster does not block access to the ledger.
    threads = ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix="token-review")

    async def review(token: str) -> str | None:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(threads, _ask, server, token, audience)

    return review


class _User(BaseModel):
    username: str = ""


class _Status(BaseModel):
    authenticated: bool = False
    user: _User = _User()
    audiences: tuple[str, ...] = ()
    """A cluster without support for audiences returns none."""


class _Answer(BaseModel):
    status: _Status


def _api(kubeconfig: Path | None) -> ApiServer:
    try:
        return ApiServer(configuration(kubeconfig, or_current=True))
    except InputError as error:
        raise AccessError(
            f"the access file has service accounts, and {error}", kind="unavailable"
        ) from error


def _ask(server: ApiServer, token: str, audience: str) -> str | None:
    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token, "audiences": [audience]},
    }
    try:
        answer = server.call("POST", _PATH, body=review)
        status = _Answer.model_validate(answer).status
    except (ClusterError, ValidationError) as error:
        # its text and its cause would quote the request
        raise AccessError(
            f"the cluster did not review the token ({_kind_of(error)}); try again",
            kind="unavailable",
        ) from None
    if not status.authenticated or audience not in status.audiences:
        return None
    return _account(status.user.username)


def _kind_of(error: ClusterError | ValidationError) -> str:
    if isinstance(error, ClusterError):
        return f"status {error.status}" if error.status else "it does not answer"
    return "the answer has no status"


def _account(username: str) -> str | None:
    """NAMESPACE/NAME; null if the user is not a service account."""
    namespace, _, name = username.removeprefix(_ACCOUNT).partition(":")
    return f"{namespace}/{name}" if username.startswith(_ACCOUNT) and name else None
