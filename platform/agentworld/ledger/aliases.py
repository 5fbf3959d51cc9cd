"""People's names for simulators, and who gave them when. A name is resolved, never stored."""

import re
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import Engine, insert, select

from agentworld.errors import InputError, NotFound
from agentworld.ledger.database import translated
from agentworld.ledger.tables import ALIASES
from agentworld.records.base import Digest

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")


class AliasChange(NamedTuple):
    """From then on the alias meant this simulator."""

    alias: str
    simulator: Digest
    set_by: str
    at: str


class Aliases:
    """The history of all aliases; nothing in it changes."""

    def __init__(self, url: str, engine: Engine) -> None:
        self._url = url
        self._engine = engine

    def set(self, alias: str, simulator: Digest, set_by: str) -> AliasChange:
        """From now on the alias means this simulator; runs that are open keep theirs."""
        if not _NAME.fullmatch(alias):
            raise InputError(
                f"{alias!r} is no alias; use lower-case letters, digits, dots and dashes"
            )
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        change = AliasChange(alias, simulator, set_by, at)
        with translated(self._url), self._engine.begin() as connection:
            connection.execute(insert(ALIASES).values(change._asdict()))
        return change

    def resolve(self, name: str) -> Digest:
        """The simulator that a digest is, or that an alias means now; raises NotFound."""
        if name.startswith("sha256:"):
            return name
        changes = self.history(name)
        if not changes:
            raise NotFound(f"there is no alias {name!r}; set it, or give a digest")
        return changes[-1].simulator

    def history(self, alias: str | None = None) -> list[AliasChange]:
        """What an alias, or each of them, meant over time."""
        wanted = [] if alias is None else [ALIASES.c.alias == alias]
        columns = [ALIASES.c[name] for name in AliasChange._fields]
        changes = select(*columns).where(*wanted).order_by(ALIASES.c.sequence)
        with translated(self._url), self._engine.begin() as connection:
            return [AliasChange(*row) for row in connection.execute(changes)]
