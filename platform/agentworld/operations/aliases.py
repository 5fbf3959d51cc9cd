"""Moves aliases of agents, and finds the agents in use that need revalidation after a move.

A move is signed first, then mirrored to the registry. If a process is killed in between, the audit
reports it, and repeating the command completes it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from agentworld.audit.questions.revalidation import AgentsInUse, Revalidation
from agentworld.client.operator import OperatorClient
from agentworld.errors import InputError, StoreError
from agentworld.lineage.base import Registry, VersionRef
from agentworld.operations.ledger import existing_ledger, has_keys, open_evidence
from agentworld.operations.registry import check_store, open_registry
from agentworld.operations.serving import deployed_operator
from agentworld.records.base import first_problem
from agentworld.records.episode import new_name
from agentworld.records.statements.alias import (
    AgentMove,
    AgentVersion,
    AliasChange,
    alias_kind,
    check_alias,
    split_alias,
)
from agentworld.serving.setup import statement_signer_of
from agentworld.statements.alias_moves import AliasMoveSigner
from agentworld.storage.stores import Stores

_MARK = "revalidate"
_log = logging.getLogger(__name__)


def set_agent_alias(
    alias: str, ref: VersionRef, store: Path, by: str, reason: str | None = None
) -> AliasChange | None:
    """Points the alias at this version; repeating it changes nothing.

    Returns null if a service recorded it and the credential is not an auditor's. Raises InputError
    for invalid values, and NotFound for an agent without a signed edge.
    """
    name, label = split_alias(check_alias(alias, "agent"))
    if ref.name != name:
        raise InputError(
            f"{alias} is an alias of {name}, and {ref} is not a version of it; name one"
        )
    registry = _registry(store)
    agent = registry.agent(ref)
    change: AliasChange | None
    try:
        version = AgentVersion(version=ref.version, artifact=agent.artifact, run=agent.run)
        move = AgentMove(kind="agent", agent=version, by=by, reason=reason)
    except ValidationError as error:
        raise InputError(f"{alias!r} cannot be set; correct {first_problem(error)}") from error
    if operator := deployed_operator():
        change = asyncio.run(_close_after(operator, operator.move_alias(alias, move)))
    else:
        with _moves_of(store) as moves:
            change = moves.move(alias, move, None, new_name(), dry_run=False)
    registry.set_alias(ref, label)
    return change


def end_alias(alias: str, store: Path, by: str, reason: str | None = None) -> AliasChange | None:
    """Ends the alias, which then resolves to nothing; raises NotFound if it never existed.

    Returns null if a service recorded it and the credential is not an auditor's.
    """
    change: AliasChange | None
    kind = alias_kind(alias)
    check_alias(alias, kind)
    registry = _registry(store) if kind == "agent" else None
    if registry and (operator := deployed_operator()):
        change = asyncio.run(_close_after(operator, operator.end_alias(alias, by, reason)))
    else:
        with _moves_of(store) as moves:
            change = moves.end(alias, by, new_name(), reason=reason)
    if registry:
        registry.remove_alias(*split_alias(alias))
    return change


def due_by(change: AliasChange, store: Path) -> dict[str, Revalidation]:
    """The agents in use that need revalidation after a move of a simulator's alias."""
    if not has_keys(store):
        return {}
    with closing(existing_ledger(store)) as ledger:
        in_use = AgentsInUse.read(ledger, open_evidence(store), store)
        due = {use.target: in_use.revalidations(use) for use in in_use.uses}
    if due:
        mirror(due, partial(open_registry, store))
    move_key = change.alias, change.at
    pairs = ((agent, revalidation) for agent, reasons in due.items() for revalidation in reasons)
    return {
        agent: revalidation
        for agent, revalidation in pairs
        if (revalidation.alias, revalidation.at) == move_key
    }


def mirror(due: Mapping[str, Sequence[Revalidation]], opener: Callable[[], Registry]) -> None:
    """Tags exactly these versions in the registry, so a repeated call corrects the tags.

    If the registry does not answer, the next call sets the tags.
    """
    try:
        registry = opener()
        for version in registry.versions(kind="agent"):
            reason = "; ".join(map(str, due.get(str(version.ref), ()))) or None
            if version.tags.get(_MARK) != reason:
                registry.mark(version.ref, _MARK, reason)
    except StoreError as error:
        _log.warning("the registry was not told which agents need revalidation: %s", error)


def _registry(store: Path) -> Registry:
    check_store(store)
    return open_registry(store)


@contextmanager
def _moves_of(store: Path) -> Iterator[AliasMoveSigner]:
    """Moves aliases as a service does, if none is deployed."""
    with closing(existing_ledger(store)) as ledger:
        yield AliasMoveSigner(ledger, statement_signer_of(Stores.of(store), ledger))


async def _close_after(
    operator: OperatorClient, answer: Awaitable[AliasChange | None]
) -> AliasChange | None:
    try:
        return await answer
    finally:
        await operator.close()
