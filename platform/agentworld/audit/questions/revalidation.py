"""Agents in use that have to be revalidated, because a simulator's alias moved.

The result is derived from signed statements and never stored, so it is always up to date.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby, pairwise, takewhile
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from agentworld.audit.checks.alias_history import agent_changes, in_use
from agentworld.audit.checks.statements import validations
from agentworld.audit.checks.validation import newest_validation, validation_problem
from agentworld.audit.read.evidence import Evidence, as_of
from agentworld.errors import EvidenceError
from agentworld.ledger import Ledger
from agentworld.ledger.aliases import History
from agentworld.lineage.base import Agent, VersionRef
from agentworld.records.base import Digest, Record, Sentence
from agentworld.records.statements.alias import AgentVersion, AliasChange, split_alias
from agentworld.records.statements.validation import Validation


class Revalidation(Record):
    """The reason why an agent has to be revalidated."""

    alias: str
    """An alias that pointed at the agent's simulator."""
    at: str
    """The time of the move to the current target."""
    trained_in: Digest
    simulator: Digest
    """The current target, in which the agent was not validated."""
    problem: Sentence | None = None
    """The reason why the existing validation does not count; null if there is none."""

    def __str__(self) -> str:
        sentence = f"{self.alias} moved from {self.trained_in} to {self.simulator} at {self.at}"
        return f"{sentence}; {self.problem}" if self.problem else sentence


class UseState(NamedTuple):
    """A use of an agent, and the revalidations that it needs."""

    aliases: tuple[str, ...] = ()
    revalidate: tuple[Revalidation, ...] = ()


class AgentsInUse(NamedTuple):
    """All agents in use, or those of one name, as of one time."""

    uses: Sequence[AliasChange]
    """The newest change of each alias of an agent."""
    moves: History
    ledger: Ledger
    store: Path
    evidence: Evidence | None

    @property
    def at(self) -> datetime | None:
        """The time asked about; null is now."""
        return self.evidence.at if self.evidence else None

    @classmethod
    def read(
        cls, ledger: Ledger, evidence: Evidence | None, store: Path, name: str = ""
    ) -> "AgentsInUse":
        """Reads as of the evidence's time. If nothing was ever signed, no agent is in use."""
        history = agent_changes(ledger.attestations, evidence, name) if evidence else []
        # Aliases only matter to agents in use.
        moves = ledger.aliases.readable_history("simulator") if history else History([], {})
        return cls(in_use(history), moves, ledger, store, evidence)

    def of(self, ref: VersionRef, agent: Agent) -> UseState:
        """The state of one registered agent."""
        identity = AgentVersion(version=ref.version, artifact=agent.artifact, run=agent.run)
        own = [use for use in self.uses if (use.target, use.agent) == (str(ref), identity)]
        if not own:
            return UseState()
        labels = (split_alias(use.alias)[1] for use in own)
        return UseState(tuple(sorted(labels)), self.revalidations(own[0]))

    def revalidations(self, use: AliasChange) -> tuple[Revalidation, ...]:
        """The revalidations that an agent in use needs; empty if its simulator's aliases have not
        moved.
        """
        reasons: list[Revalidation] = []
        by_name = sorted(as_of(self.moves.changes, self.at), key=attrgetter("alias"))
        for alias, group in groupby(by_name, key=attrgetter("alias")):
            moves, problem = list(group), self.moves.garbled.get(alias)
            opened = str(self.ledger.logs.first_entry(use.run).get("at", ""))
            if problem and any(use.simulator in _simulators_of(move) for move in moves):
                reasons.append(_revalidation(use, moves[-1], problem))
            elif move := moved_on(moves, use.simulator, opened):
                reasons += self._due(use, _revalidation(use, move))
        return tuple(reasons)

    def _due(self, use: AliasChange, reason: Revalidation) -> Iterator[Revalidation]:
        """The reason, unless a validation counts; adds why an existing one does not count."""
        artifact = use.subject
        attestations = self.ledger.attestations
        statements = validations(attestations, self.evidence, artifact) if self.evidence else []
        in_simulator = [
            validation
            for validation in statements
            if validation.report.simulator == reason.simulator
        ]
        problems = [self._problem(validation.step, statements) for validation in in_simulator]
        if None in problems:
            return
        problem = problems[-1] if problems else self._unsigned(artifact, reason.simulator)
        yield reason.model_copy(update={"problem": problem})

    def _problem(self, step: str, statements: Sequence[Validation]) -> str | None:
        own = [validation for validation in statements if validation.step == step]
        return validation_problem(self.store, step, own)

    def _unsigned(self, artifact: Digest, simulator: Digest) -> str | None:
        """The reason why an unsigned validation does not count; null if there is none."""
        try:
            step = newest_validation(self.store, artifact, simulator, self.at)
        except EvidenceError as error:
            return str(error)
        return "the existing validation is unsigned" if step else None


def _revalidation(use: AliasChange, move: AliasChange, problem: str | None = None) -> Revalidation:
    simulators = {"trained_in": use.simulator, "simulator": move.simulator}
    return Revalidation(alias=move.alias, at=move.at, problem=problem, **simulators)


def moved_on(
    history: Sequence[AliasChange], simulator: Digest, opened_at: str
) -> AliasChange | None:
    """The move to the alias's current target, if it pointed at this simulator before.

    `history` is of one alias. Targets from before a run was `opened` do not count; a canary counts
    as a target. Null if the alias points at the simulator, or at nothing.
    """
    newest = history[-1]
    if newest.ended or simulator in _simulators_of(newest):
        return None
    if not any(
        simulator in _simulators_of(move) and not _is_before(following.at, opened_at)
        for move, following in pairwise(history)
    ):
        return None

    def is_same(move: AliasChange) -> bool:
        return (
            not move.ended
            and move.simulator == newest.simulator
            and simulator not in _simulators_of(move)
        )

    return list(takewhile(is_same, reversed(history)))[-1]


def _is_before(time: str, other: str) -> bool:
    """False if a time is garbled, which errs towards a needless validation."""
    try:
        return datetime.fromisoformat(time) < datetime.fromisoformat(other)
    except (ValueError, TypeError):
        return False


def _simulators_of(move: AliasChange) -> Iterator[Digest]:
    if not move.ended:
        yield move.simulator
        if move.canary:
            yield move.canary.simulator
