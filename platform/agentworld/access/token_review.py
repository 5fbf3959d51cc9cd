"""Kubernetes service accounts: the cluster says whose a token is, and for whom it was made."""

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
"""What a token has to be made for: another service's token opens nothing here."""

_ACCOUNT = "system:serviceaccount:"
_BELIEVED_SECONDS = 60.0
_REFUSED_SECONDS = 5.0
_CACHE_SIZE = 10_000
_MOST_AT_ONCE = 4
_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"

Review = Callable[[str], Awaitable[str | None]]
"""From a token to NAMESPACE/NAME; null for a token that the cluster does not believe."""


class ServiceAccounts:
    """Remembers for a while what the cluster said, by the token's digest."""

    def __init__(self, review: Review, clock: Callable[[], float] = time.monotonic) -> None:
        self._review = review
        self._clock = clock
        self._cache: OrderedDict[bytes, tuple[str | None, float]] = OrderedDict()
        self._pending_reviews: dict[bytes, asyncio.Task[str | None]] = {}

    async def account(self, token: str) -> str | None:
        """Whose it is; raises AccessError where the cluster cannot be asked."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        account, until = self._cache.get(digest, (None, 0.0))
        if self._clock() < until:
            return account
        # Many agents of one account come at once, and one question is enough for them.
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
    """Whose a token says that it is, which nothing proves yet; null for what says no such thing.

    Whatever names nobody whom we know is refused here: who knows nothing may not make us ask the
    cluster without end, nor send it somebody's token for something else.
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
    """Asks the cluster that this runs in, or that this kubeconfig, or the current one, names."""
    server = _api(kubeconfig)
    # Its own threads: a cluster that does not answer keeps nobody from the ledger.
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
    """A cluster that knows no audiences answers without them."""


class _Answer(BaseModel):
    status: _Status


def _api(kubeconfig: Path | None) -> ApiServer:
    try:
        return ApiServer(configuration(kubeconfig, or_current=True))
    except InputError as error:
        raise AccessError(f"service accounts are named, and {error}", kind="unavailable") from error


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
        # Neither its text nor its cause, which quote what was sent.
        raise AccessError(
            f"the cluster cannot be asked whose a token is ({_kind_of(error)}); try again",
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
    """NAMESPACE/NAME; null for who is no service account."""
    namespace, _, name = username.removeprefix(_ACCOUNT).partition(":")
    return f"{namespace}/{name}" if username.startswith(_ACCOUNT) and name else None
