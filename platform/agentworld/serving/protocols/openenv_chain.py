"""The episodes of an OpenEnv session, which every replica finds by name.

A session is only a name. Its first episode has that name; the names of later episodes are derived
from it and their number. So the name of any episode can be used as a session that continues it.
"""

import hashlib
import re

from agentworld.errors import InputError, NotFound
from agentworld.serving.authorized_service import AuthorizedService

_NAME = re.compile("[0-9a-f]{32}")


class Chain:
    """The episodes of a session in a run."""

    __slots__ = ("_authorized", "_num_episodes", "_run", "name")

    def __init__(self, authorized: AuthorizedService, run: str, name: object) -> None:
        """Raises InputError for an invalid name of a session."""
        if type(name) is not str or not _NAME.fullmatch(name):
            raise InputError(
                f"there is no session {name!r:.80}; create one by openenv/session/create"
            )
        self.name = name
        self._authorized = authorized
        self._run = run
        self._num_episodes = 0
        """A lower bound of the number of episodes."""

    async def current(self) -> str | None:
        """The newest episode; null if there is none."""
        length = await self._length()
        return self._episode(length) if length else None

    async def following(self) -> str:
        """The name of the next episode."""
        return self._episode(await self._length() + 1)

    async def _length(self) -> int:
        """The number of episodes, by binary search: no number before the last is missing."""
        length, step = self._num_episodes, 1
        while await self._exists(length + step):
            length, step = length + step, 2 * step
        while step > 1:
            step //= 2
            if await self._exists(length + step):
                length += step
        self._num_episodes = length
        return length

    async def _exists(self, number: int) -> bool:
        try:
            await self._authorized.check_in(self._run, self._episode(number))
        except NotFound:
            return False
        return True

    def _episode(self, number: int) -> str:
        if number == 1:
            return self.name
        return hashlib.sha256(f"{self._run}\n{self.name}\n{number}".encode()).hexdigest()[:32]
