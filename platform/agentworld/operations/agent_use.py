"""Which agent is in use for what: signed first, then mirrored to the registry.

Whoever is killed between the two is told by the audit, and does the same again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from pydantic import ValidationError

from agentworld.audit.questions.revalidation import AgentUses, Revalidation
from agentworld.errors import InputError, StoreError
from agentworld.lineage.base import Registry, VersionRef
from agentworld.operations.ledger import existing_ledger, has_keys, open_evidence
from agentworld.operations.registry import check_store, open_registry
from agentworld.operations.serving import deployed_operator
from agentworld.records.alias import AliasChange
from agentworld.records.base import Record, first_problem
from agentworld.records.statements.agent_use import AgentAlias, AgentName, AgentUse, AgentUseMove
from agentworld.serving.setup import statement_signer_of
from agentworld.statements.signer import StatementSigner
from agentworld.storage.stores import Stores

_MARK = "revalidate"
_log = logging.getLogger(__name__)


class _AgentUseName(Record):
    """Whose use an operator speaks of."""

    name: AgentName
    alias: AgentAlias


def use(ref: VersionRef, alias: str, store: Path, by: str, reason: str | None = None) -> AgentUse:
    """From now on this version is in use so; the same again comes to the same end.

    Raises InputError for what is wrong, and NotFound for an agent whose simulator signed nothing.
    """
    registry = _registry(ref.name, alias, store)
    agent = registry.agent(ref)
    try:
        move = AgentUseMove(
            version=ref.version, artifact=agent.artifact, run=agent.run, by=by, reason=reason
        )
    except ValidationError as error:
        raise InputError(f"{ref} cannot be put in use; correct {first_problem(error)}") from error
    agent_use = asyncio.run(
        _run_at_backend(store, lambda backend: backend.start_agent_use(ref.name, alias, move))
    )
    registry.set_alias(ref, alias)
    return agent_use


def retire(name: str, alias: str, store: Path, by: str, reason: str | None = None) -> AgentUse:
    """From now on no version of this name is in use so; raises NotFound where none ever was."""
    registry = _registry(name, alias, store)
    agent_use = asyncio.run(
        _run_at_backend(store, lambda backend: backend.end_agent_use(name, alias, by, reason))
    )
    registry.remove_alias(name, alias)
    return agent_use


def due_by(change: AliasChange, store: Path) -> dict[str, Revalidation]:
    """The agents in use that a move of a name for simulators lets be validated anew."""
    if not has_keys(store):
        return {}
    with closing(existing_ledger(store)) as ledger:
        uses = AgentUses.read(ledger, open_evidence(store), store)
        due = {agent_use.agent: uses.revalidations(agent_use) for agent_use in uses.agent_uses}
    if uses.agent_uses:
        mirror(due, partial(open_registry, store))
    move_key = change.alias, change.at
    pairs = ((agent, revalidation) for agent, reasons in due.items() for revalidation in reasons)
    return {
        agent: revalidation
        for agent, revalidation in pairs
        if (revalidation.alias, revalidation.at) == move_key
    }


def mirror(due: Mapping[str, Sequence[Revalidation]], opener: Callable[[], Registry]) -> None:
    """Tags those versions in the registry, and no others; what is true is derived each time.

    A registry that is gone is told the next time, and holds nothing up.
    """
    try:
        registry = opener()
        for version in registry.versions(kind="agent"):
            reason = "; ".join(map(str, due.get(str(version.ref), ()))) or None
            if version.tags.get(_MARK) != reason:
                registry.mark(version.ref, _MARK, reason)
    except StoreError as error:
        _log.warning("the registry does not hear which agents are to be validated anew: %s", error)


def _registry(name: str, alias: str, store: Path) -> Registry:
    try:
        _AgentUseName(name=name, alias=alias)
    except ValidationError as error:
        raise InputError(
            f"{name!r} cannot be in use as {alias!r}; use at most 63 lower-case letters, digits and"
            " dashes, and neither latest nor v with a number"
        ) from error
    check_store(store)
    return open_registry(store)


class _AgentUseBackend(Protocol):
    """Raises a typed error for what a service refuses."""

    async def start_agent_use(self, name: str, alias: str, move: AgentUseMove) -> AgentUse:
        """From now on a version is in use so."""
        ...

    async def end_agent_use(self, name: str, alias: str, by: str, reason: str | None) -> AgentUse:
        """From now on no version of this name is."""
        ...


class _LocalBackend(NamedTuple):
    """A store's own signer of statements."""

    statement_signer: StatementSigner

    async def start_agent_use(self, name: str, alias: str, move: AgentUseMove) -> AgentUse:
        return self.statement_signer.start_agent_use(name, alias, move)

    async def end_agent_use(self, name: str, alias: str, by: str, reason: str | None) -> AgentUse:
        return self.statement_signer.end_agent_use(name, alias, by, reason)


async def _run_at_backend(
    store: Path, work: Callable[[_AgentUseBackend], Awaitable[AgentUse]]
) -> AgentUse:
    """By the service that is deployed, or by its own code here."""
    if operator := deployed_operator():
        try:
            return await work(operator)
        finally:
            await operator.close()
    with closing(existing_ledger(store)) as ledger:
        return await work(_LocalBackend(statement_signer_of(Stores.of(store), ledger)))
