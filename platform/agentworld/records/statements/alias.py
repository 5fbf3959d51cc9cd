"""Targets of aliases of simulators and agents, who set them, and the gates of a move; and the
signed statement of a move, which is checked against the ledger's history of that alias.

An alias of an agent is NAME@ALIAS, such as `shell-agent@production`; any other is a simulator's.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

from pydantic import Field, StringConstraints, model_validator

from agentworld.errors import InputError
from agentworld.records.base import Digest, Name, Record, ShortText
from agentworld.records.gate import Gate, GateResult
from agentworld.records.statements.base import Column, LedgerColumns, SignedRecord

ObjectRequest = Annotated[str, StringConstraints(pattern="^[0-9A-Za-z-]{1,64}/[0-9]{1,19}$")]
"""A version of an object's spec on a cluster: the object's `UID/GENERATION`."""
AliasKind = Literal["simulator", "agent"]

AgentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}$")]
"""A name that both registries and evidence mirrors accept."""

_FORMS: dict[AliasKind, tuple[re.Pattern[str], str]] = {
    "simulator": (
        re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?"),
        "a simulator; use lower-case letters, digits, dots and dashes",
    ),
    # Registries reserve `latest` and `v1`.
    "agent": (
        re.compile(
            r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}@(?!(latest|v\d+)$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
        ),
        "an agent; write NAME@ALIAS with at most 63 lower-case letters, digits and dashes after"
        " the @, and neither latest nor v with a number",
    ),
}


def alias_kind(alias: str) -> AliasKind:
    """The kind of its target."""
    return "agent" if "@" in alias else "simulator"


def split_alias(alias: str) -> tuple[str, str]:
    """The agent's name, and its alias in the registry."""
    name, _, label = alias.partition("@")
    return name, label


def check_alias(alias: str, kind: AliasKind) -> str:
    """The alias; raises InputError if it is not a valid alias of this kind."""
    pattern, advice = _FORMS[kind]
    if not pattern.fullmatch(alias):
        raise InputError(f"{alias!r} is not an alias of {advice}")
    return alias


class Canary(Record):
    """A second simulator that gets a share of all new runs."""

    simulator: Digest
    percent: int = Field(ge=1, le=99)
    """The percentage of runs; a run's episodes are never split."""


class AliasMove(Record):
    """A move of a simulator's alias."""

    kind: Literal["simulator"]
    simulator: Digest
    canary: Canary | None = None
    by: ShortText
    """Who requested it."""
    gate: tuple[Gate, ...] = Field((), max_length=64)
    report: Digest | None = None
    """The digest of the evaluation that the gate uses."""
    override: ShortText | None = None
    """The reason for moving it regardless of the gate."""
    request: ObjectRequest | None = None
    """The object that requests it; null for a command."""
    reason: ShortText | None = None


class AgentVersion(Record):
    """A registered version of an agent."""

    version: int = Field(ge=1, lt=2**31)
    artifact: Digest
    run: Name
    """The run that produced it."""


class AgentMove(Record):
    """A move of an agent's alias to a version."""

    kind: Literal["agent"]
    agent: AgentVersion
    by: ShortText
    """Who requested it."""
    reason: ShortText | None = None


class Meaning(NamedTuple):
    """The current target of an alias."""

    simulator: Digest
    canary: Canary | None = None

    @property
    def simulators(self) -> tuple[Digest, ...]:
        """The simulators that new runs may get."""
        return (self.simulator, self.canary.simulator) if self.canary else (self.simulator,)


def gets_canary(alias: str, run: str, percent: int) -> bool:
    """Whether a run that is opened by an alias gets its canary.

    Depends on the run's name only: a retry gets the same simulator, and when the percentage grows,
    every run with the canary keeps it.
    """
    bucket = int.from_bytes(hashlib.sha256(f"{alias} {run}".encode()).digest()[:8]) % 100
    return bucket < percent


class AliasChange(Record):
    """A change of an alias's target."""

    kind: AliasKind = "simulator"
    alias: Name
    simulator: Digest
    """The simulator; for an agent, the one in its edge."""
    agent: AgentVersion | None = None
    """Null for an alias of a simulator."""
    set_by: Name
    at: Name
    canary: Canary | None = None
    report: Digest | None = None
    gate: tuple[GateResult, ...] = ()
    """The gate's results for the report."""
    override: Name | None = None
    request: ObjectRequest | None = None
    """The object that requested it; null for a command."""
    reason: Name | None = None
    ended: bool = False
    """The alias was ended and has no target; the other fields are the last target's."""

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if len({self.kind == "agent", self.agent is not None, "@" in self.alias}) > 1:
            raise ValueError(
                "an alias of an agent, NAME@ALIAS, has a version; other aliases have none"
            )
        return self

    @property
    def meaning(self) -> Meaning | None:
        """The target from then on; null if it was ended."""
        return None if self.ended else Meaning(self.simulator, self.canary)

    @property
    def target(self) -> str:
        """The target's text form: a simulator's digest, or NAME@VERSION."""
        if self.agent is None:
            return self.simulator
        return f"{split_alias(self.alias)[0]}@{self.agent.version}"

    @property
    def subject(self) -> Digest:
        """The digest of the simulator, or of the agent's weights."""
        return self.agent.artifact if self.agent else self.simulator

    @property
    def run(self) -> str:
        """The run that produced the agent; empty for an alias of a simulator."""
        return self.agent.run if self.agent else ""

    @property
    def text(self) -> str:
        """The change as a clause."""
        meaning = "nothing" if self.ended else self.target
        return f"alias {self.alias!r} meant {meaning} from {self.at} on, by {self.set_by!r}"

    def end(
        self, by: str, at: str, reason: str | None = None, request: str | None = None
    ) -> "AliasChange":
        """The change that ends the alias."""
        own = self.model_dump(include={"kind", "alias", "simulator", "agent"})
        fields = {"set_by": by, "at": at, "reason": reason, "request": request}
        return AliasChange(**own, **fields, ended=True)

    def repeats(self, last: "AliasChange") -> bool:
        """Whether it changes nothing: a second end, or the same agent, regardless of the requester.

        A simulator's move always counts, because its gate was judged again. A command's end counts
        after an object's, because the operator may undo the latter.
        """
        if self.ended:
            return last.ended and (self.request is not None or last.request is None)
        return self.agent is not None and (self.agent, False) == (last.agent, last.ended)


class SimulatorUse(Record):
    """The current users of a simulator."""

    open_runs: int
    open_episodes: int
    aliases: tuple[str, ...] = ()
    """The aliases that point at it, or have it as their canary."""


class AliasEntry(SignedRecord):
    """A change of an alias with its place in the alias's history."""

    kind: ClassVar[str] = "alias"
    predicate_type: ClassVar[str] = "urn:agentworld:alias-change:v1"
    folder: ClassVar[str] = "alias-changes"
    column: ClassVar[Column] = "name"

    change: AliasChange
    previous: Digest | None
    """The digest of the previous entry; null for the first."""

    @classmethod
    def folder_of(cls, value: str) -> str:
        """The folder of an alias; `NAME@` has those of all aliases of an agent, and `@` of all
        agents.
        """
        return "/".join((cls.folder, alias_kind(value), *filter(None, value.split("@"))))

    @classmethod
    def describe_row(cls, name: str, columns: LedgerColumns) -> str:
        """Describes it by the alias in its name, which is part of what it is filed under, and by
        its time.
        """
        alias = "@".join(name.split("/")[2:-1]) or columns.subject
        return f"the statement of alias {alias!r} at {columns.at}"

    def describe(self, name: str) -> str:  # noqa: ARG002 - a digest
        """Describes the change."""
        return f"the statement that {self.change.text}"

    def is_of(self, value: str) -> bool:
        """Whether it is of this alias, or of this agent."""
        return self.path.startswith(f"{self.folder_of(value)}/")

    @property
    def path(self) -> str:
        """Its digest, in the folder of its alias."""
        folder = self.folder_of(self.change.alias)
        return f"{folder}/{self.digest.removeprefix('sha256:')}.dsse.json"

    @property
    def columns(self) -> LedgerColumns:
        return LedgerColumns(self.change.alias, self.change.simulator, "", self.change.at)

    @property
    def subject_digest(self) -> Digest:
        return self.change.subject


def alias_entries(changes: Iterable[AliasChange]) -> list[AliasEntry]:
    """The entries of changes of any aliases, each alias's in its own order."""
    last: dict[str, Digest] = {}
    entries = []
    for change in changes:
        entry = AliasEntry(change=change, previous=last.get(change.alias))
        last[change.alias] = entry.digest
        entries.append(entry)
    return entries


KIND = AliasEntry
