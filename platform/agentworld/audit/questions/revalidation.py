"""Which agents in use have to be validated anew, because a name for simulators moved on.

Nothing of this is stored: it follows from what is signed, so that nobody can forget to say it, and
it never is out of date.
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
    """Why an agent has to be validated anew."""

    alias: str
    """A name for simulators, which meant the one that trained the agent."""
    at: str
    """When it moved to what it means."""
    trained_in: Digest
    simulator: Digest
    """What it means now, and the agent was not validated in."""
    problem: Sentence | None = None
    """Why the validation that there is does not count; null where there is none."""

    def __str__(self) -> str:
        sentence = f"{self.alias} moved from {self.trained_in} to {self.simulator} at {self.at}"
        return f"{sentence}; {self.problem}" if self.problem else sentence


class UseState(NamedTuple):
    """What an agent is in use as, and what it has to be validated for."""

    aliases: tuple[str, ...] = ()
    revalidate: tuple[Revalidation, ...] = ()


class AgentsInUse(NamedTuple):
    """All agents in use, or those of one name, as they were read at one moment."""

    uses: Sequence[AliasChange]
    """By the newest change of each alias of an agent."""
    moves: History
    ledger: Ledger
    store: Path
    evidence: Evidence | None

    @property
    def at(self) -> datetime | None:
        """The moment of which is asked; null is now."""
        return self.evidence.at if self.evidence else None

    @classmethod
    def read(
        cls, ledger: Ledger, evidence: Evidence | None, store: Path, name: str = ""
    ) -> "AgentsInUse":
        """By the evidence, of its moment. Where nothing was ever signed, no agent is in use."""
        history = agent_changes(ledger.attestations, evidence, name) if evidence else []
        # Names matter to what is in use alone.
        moves = ledger.aliases.readable_history("simulator") if history else History([], {})
        return cls(in_use(history), moves, ledger, store, evidence)

    def of(self, ref: VersionRef, agent: Agent) -> UseState:
        """Of one agent as it is registered."""
        identity = AgentVersion(version=ref.version, artifact=agent.artifact, run=agent.run)
        own = [use for use in self.uses if (use.target, use.agent) == (str(ref), identity)]
        if not own:
            return UseState()
        labels = (split_alias(use.alias)[1] for use in own)
        return UseState(tuple(sorted(labels)), self.revalidations(own[0]))

    def revalidations(self, use: AliasChange) -> tuple[Revalidation, ...]:
        """What an agent in use has to be validated for; nothing where it is as it was trained."""
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
        """Unless it was validated; a validation that does not count is told with the reason."""
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
        """Why the validation that no step signed does not count; null where there is none."""
        try:
            step = newest_validation(self.store, artifact, simulator, self.at)
        except EvidenceError as error:
            return str(error)
        return "nobody signed the validation that is there" if step else None


def _revalidation(use: AliasChange, move: AliasChange, problem: str | None = None) -> Revalidation:
    simulators = {"trained_in": use.simulator, "simulator": move.simulator}
    return Revalidation(alias=move.alias, at=move.at, problem=problem, **simulators)


def moved_on(
    history: Sequence[AliasChange], simulator: Digest, opened_at: str
) -> AliasChange | None:
    """The move that gave a name the meaning that it has, if it had meant this simulator.

    `history` is of one name. What it meant before a run was `opened` does not count; a canary is
    meant too. Null where the name means the simulator, or nothing.
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
    """Not where somebody garbled one of them: rather one validation too many."""
    try:
        return datetime.fromisoformat(time) < datetime.fromisoformat(other)
    except (ValueError, TypeError):
        return False


def _simulators_of(move: AliasChange) -> Iterator[Digest]:
    if not move.ended:
        yield move.simulator
        if move.canary:
            yield move.canary.simulator
