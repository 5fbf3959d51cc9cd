"""The requests by which an operator records which agent is in use, and under which alias."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from agentworld.http.errors import failures
from agentworld.records.base import ShortText
from agentworld.records.statements.agent_use import AgentAlias, AgentName, AgentUse, AgentUseMove
from agentworld.serving.protocols.native import Authorized
from agentworld.serving.runs import Runs

router = APIRouter(generate_unique_id_function=lambda route: route.name)

_Name = Annotated[AgentName, Path()]
_Alias = Annotated[AgentAlias, Path()]


@router.put("/agent-uses/{name}/{alias}", responses=failures(400, 404, 409, 422, 503))
async def start_agent_use(
    name: _Name, alias: _Alias, move: AgentUseMove, request: Request, authorized: Authorized
) -> AgentUse:
    """Records that an agent version is in use under an alias; for operators.

    Its simulator is the one in the agent's edge, which was signed when the agent was registered. A
    repeated request is signed once.
    """
    authorized.caller.check("operator")
    return await _runs(request).start_agent_use(name, alias, move)


@router.delete("/agent-uses/{name}/{alias}", responses=failures(404, 409, 422, 503))
async def end_agent_use(
    name: _Name,
    alias: _Alias,
    by: Annotated[ShortText, Query()],
    request: Request,
    authorized: Authorized,
    reason: Annotated[ShortText | None, Query()] = None,
) -> AgentUse:
    """Records that no agent of this name is in use under an alias any more; for operators.

    The history keeps the earlier use. A repeated request changes nothing.
    """
    authorized.caller.check("operator")
    return await _runs(request).end_agent_use(name, alias, by, reason)


def _runs(request: Request) -> Runs:
    runs: Runs = request.app.state.app_state.runs
    return runs
