"""The requests by which an operator moves aliases of simulators and of agents and lists the use of
simulators, and by which an agent resolves an alias.
"""

import asyncio
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from pydantic import Field, StringConstraints

from agentworld.errors import InputError
from agentworld.http.errors import failures
from agentworld.records.base import Digest, ShortText
from agentworld.records.statements.alias import (
    AgentMove,
    AliasChange,
    AliasKind,
    AliasMove,
    ObjectRequest,
    SimulatorUse,
    alias_kind,
)
from agentworld.serving.authorized_service import AuthorizedService
from agentworld.serving.protocols.native import Authorized
from agentworld.statements.alias_moves import AliasMoveSigner

router = APIRouter(generate_unique_id_function=lambda route: route.name)


# a coroutine, because FastAPI calls other functions in a thread
async def alias_move_signer(request: Request) -> AliasMoveSigner:
    """The signer of this service's alias moves."""
    app_state = request.app.state.app_state
    return AliasMoveSigner(app_state.episode_store.ledger, app_state.runs.statement_signer)


_AliasMoveSigner = Annotated[AliasMoveSigner, Depends(alias_move_signer)]
_Alias = Annotated[
    str,
    Path(
        pattern=r"^([A-Za-z0-9_][A-Za-z0-9_-]{0,127}@)?[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$",
        description="of a simulator, or NAME@ALIAS of an agent",
    ),
]
_Key = Annotated[
    Annotated[str, StringConstraints(pattern="^[0-9A-Za-z-]{1,64}$")],
    Header(description="a repeated request with the same key is recorded once"),
]

_Move = Annotated[AliasMove | AgentMove, Field(discriminator="kind")]
_DryRun = Annotated[bool, Query(description="judges the move without recording it")]


@router.put("/aliases/{alias}", responses=failures(400, 404, 409, 422, 429, 502, 503, 504))
async def move_alias(
    alias: _Alias,
    move: _Move,
    authorized: Authorized,
    alias_moves: _AliasMoveSigner,
    idempotency_key: _Key,
    dry_run: _DryRun = False,
) -> AliasChange | None:
    """Points an alias at a simulator whose report passes the gate, or at an agent's version whose
    edge was signed; for operators.

    If the gate refuses, the answer is 409. With an override, the move is recorded with its reason.
    The answer is the recorded change; null for an agent's alias if the caller is not an auditor.
    """
    authorized.caller.check("operator")
    artifact = None
    if isinstance(move, AliasMove) and move.report:
        artifact = await _artifact(authorized, move.simulator)
    move_call = partial(alias_moves.move, alias, move, artifact, idempotency_key, dry_run=dry_run)
    return _readable(await asyncio.to_thread(move_call), authorized)


@router.delete("/aliases/{alias}", responses=failures(404, 409, 422, 503))
async def end_alias(
    alias: _Alias,
    by: Annotated[ShortText, Query()],
    authorized: Authorized,
    alias_moves: _AliasMoveSigner,
    idempotency_key: _Key,
    reason: Annotated[ShortText | None, Query()] = None,
    dry_run: _DryRun = False,
    request: Annotated[
        ObjectRequest | None, Query(description="the object by which it is asked for")
    ] = None,
) -> AliasChange | None:
    """Ends an alias, once, and keeps its history; for operators.

    The answer is the recorded change; null for an agent's alias if the caller is not an auditor.
    """
    authorized.caller.check("operator")
    end_call = partial(
        alias_moves.end,
        alias,
        by,
        idempotency_key,
        reason=reason,
        request=request,
        dry_run=dry_run,
    )
    return _readable(await asyncio.to_thread(end_call), authorized)


@router.get("/aliases/{alias}", responses=failures(404, 422, 503))
async def get_alias(
    alias: _Alias, authorized: Authorized, alias_moves: _AliasMoveSigner
) -> list[AliasChange]:
    """The history of an alias; the last entry is current. For auditors, and for operators if it is
    a simulator's.
    """
    _check_reader(authorized, alias_kind(alias))
    return await asyncio.to_thread(alias_moves.history, alias)


@router.get("/aliases/{alias}/simulator", responses=failures(400, 404, 409, 422, 503))
async def get_meaning(alias: _Alias, authorized: Authorized) -> Digest:
    """Resolves an alias to its current simulator, for callers that may open runs with it."""
    return await authorized.meaning(alias)


@router.get("/aliases", responses=failures(503))
async def get_aliases(
    authorized: Authorized, alias_moves: _AliasMoveSigner, kind: AliasKind = "simulator"
) -> list[AliasChange]:
    """The histories of all aliases of a kind."""
    _check_reader(authorized, kind)
    return await asyncio.to_thread(alias_moves.history, kind=kind)


@router.get("/simulators/{simulator}/use", responses=failures(422, 503))
async def get_use(
    simulator: Digest, authorized: Authorized, alias_moves: _AliasMoveSigner
) -> SimulatorUse:
    """The aliases of a simulator, and the number of its open runs and episodes; for operators."""
    authorized.caller.check("operator")
    return await asyncio.to_thread(alias_moves.use, simulator)


def _check_reader(authorized: AuthorizedService, kind: AliasKind) -> None:
    """Agents are for auditors only, because another tenant's run may have made an agent in use."""
    if kind == "agent":
        authorized.caller.check("auditor")
    else:
        authorized.caller.check("operator", "auditor")


def _readable(change: AliasChange, authorized: AuthorizedService) -> AliasChange | None:
    """The change, if the caller may read the alias's history; it may be an earlier one of another
    tenant. Every operator may read a simulator's.
    """
    is_reader = change.kind == "simulator" or "auditor" in authorized.caller.roles
    return change if is_reader else None


async def _artifact(authorized: AuthorizedService, simulator: Digest) -> Digest | None:
    """The artifact of a simulator; null if this service does not serve it."""
    try:
        return (await authorized.manifest(simulator)).artifact
    except InputError:
        return None
