"""The requests by which an operator moves aliases and lists the use of simulators, and by which an
agent resolves an alias.
"""

import asyncio
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from pydantic import StringConstraints

from agentworld.errors import InputError
from agentworld.http.errors import failures
from agentworld.records.alias import AliasChange, AliasMove, ObjectRequest, SimulatorUse
from agentworld.records.base import Digest, ShortText
from agentworld.serving.authorized_service import AuthorizedService
from agentworld.serving.protocols.native import Authorized
from agentworld.statements.alias_moves import AliasMoveSigner

router = APIRouter(generate_unique_id_function=lambda route: route.name)


# A coroutine, for FastAPI calls anything else in a thread.
async def alias_move_signer(request: Request) -> AliasMoveSigner:
    """The signer of this service's alias moves."""
    app_state = request.app.state.app_state
    return AliasMoveSigner(app_state.episode_store.ledger, app_state.runs.statement_signer)


_AliasMoveSigner = Annotated[AliasMoveSigner, Depends(alias_move_signer)]
_Alias = Annotated[str, Path(pattern="^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$")]
_Key = Annotated[
    Annotated[str, StringConstraints(pattern="^[0-9A-Za-z-]{1,64}$")],
    Header(description="a repeated request with the same key is recorded once"),
]
_DryRun = Annotated[bool, Query(description="judges the move without recording it")]


@router.put("/aliases/{alias}", responses=failures(400, 404, 409, 422, 429, 502, 503, 504))
async def move_alias(
    alias: _Alias,
    move: AliasMove,
    authorized: Authorized,
    alias_moves: _AliasMoveSigner,
    idempotency_key: _Key,
    dry_run: _DryRun = False,
) -> AliasChange:
    """Points an alias at a simulator whose report passes the gate; for operators.

    If the gate refuses, the answer is 409. With an override, the move is recorded with its reason.
    """
    authorized.caller.check("operator")
    artifact = await _artifact(authorized, move.simulator) if move.report else None
    move_call = partial(alias_moves.move, alias, move, artifact, idempotency_key, dry_run=dry_run)
    return await asyncio.to_thread(move_call)


@router.delete("/aliases/{alias}", responses=failures(404, 409, 422, 503))
async def end_alias(
    alias: _Alias,
    by: Annotated[ShortText, Query()],
    authorized: Authorized,
    alias_moves: _AliasMoveSigner,
    idempotency_key: _Key,
    dry_run: _DryRun = False,
    request: Annotated[
        ObjectRequest | None, Query(description="the object by which it is asked for")
    ] = None,
) -> AliasChange:
    """Ends an alias, and keeps its history; for operators."""
    authorized.caller.check("operator")
    end_call = partial(
        alias_moves.end, alias, by, idempotency_key, dry_run=dry_run, request=request
    )
    return await asyncio.to_thread(end_call)


@router.get("/aliases/{alias}", responses=failures(404, 422, 503))
async def get_alias(
    alias: _Alias, authorized: Authorized, alias_moves: _AliasMoveSigner
) -> list[AliasChange]:
    """The history of an alias; the last entry is current. For operators and auditors."""
    authorized.caller.check("operator", "auditor")
    return await asyncio.to_thread(alias_moves.history, alias)


@router.get("/aliases/{alias}/simulator", responses=failures(400, 404, 409, 422, 503))
async def get_meaning(alias: _Alias, authorized: Authorized) -> Digest:
    """Resolves an alias to its current simulator, for callers that may open runs with it."""
    return await authorized.meaning(alias)


@router.get("/aliases", responses=failures(503))
async def get_aliases(authorized: Authorized, alias_moves: _AliasMoveSigner) -> list[AliasChange]:
    """The histories of all aliases."""
    authorized.caller.check("operator", "auditor")
    return await asyncio.to_thread(alias_moves.history)


@router.get("/simulators/{simulator}/use", responses=failures(422, 503))
async def get_use(
    simulator: Digest, authorized: Authorized, alias_moves: _AliasMoveSigner
) -> SimulatorUse:
    """The aliases of a simulator, and the number of its open runs and episodes; for operators."""
    authorized.caller.check("operator")
    return await asyncio.to_thread(alias_moves.use, simulator)


async def _artifact(authorized: AuthorizedService, simulator: Digest) -> Digest | None:
    """The artifact of a simulator; null if this service does not serve it."""
    try:
        return (await authorized.manifest(simulator)).artifact
    except InputError:
        return None
