"""The wire on which an operator says which agent is in use, and as what."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from agentworld.http.errors import failures
from agentworld.records.base import Words
from agentworld.records.deployment import AgentAlias, AgentName, Deployment, DeploymentMove
from agentworld.serving.protocols.native import Authorized
from agentworld.serving.runs import Runs

router = APIRouter(generate_unique_id_function=lambda route: route.name)

_Name = Annotated[AgentName, Path()]
_Alias = Annotated[AgentAlias, Path()]


@router.put("/deployments/{name}/{alias}", responses=failures(400, 404, 409, 422, 503))
async def deploy(
    name: _Name, alias: _Alias, move: DeploymentMove, request: Request, authorized: Authorized
) -> Deployment:
    """From now on this version is in use as that; for operators.

    Its simulator is the one that the edge of the agent names, which was signed when the agent was
    registered. The same again is signed once.
    """
    authorized.caller.check("operator")
    return await _runs(request).deploy(name, alias, move)


@router.delete("/deployments/{name}/{alias}", responses=failures(404, 409, 422, 503))
async def end_deployment(
    name: _Name,
    alias: _Alias,
    by: Annotated[Words, Query()],
    request: Request,
    authorized: Authorized,
    reason: Annotated[Words | None, Query()] = None,
) -> Deployment:
    """From now on no agent of this name is in use as that, which its history tells; for operators.

    The same again changes nothing.
    """
    authorized.caller.check("operator")
    return await _runs(request).end_deployment(name, alias, by, reason)


def _runs(request: Request) -> Runs:
    runs: Runs = request.app.state.app_state.runs
    return runs
