"""A protocol: the body is the action, the answer is the observation."""

from starlette.responses import PlainTextResponse
from starlette.routing import Route

from agentworld.http.schemas import Request
from agentworld.serving.authorized_service import AuthorizedService
from agentworld.serving.protocols.base import Protocol


async def _step(request):
    action = (await request.body()).decode()
    episode = request.path_params["episode"]
    result = await AuthorizedService(request.scope, "line").step(episode, Request(None, action))
    return PlainTextResponse(result.observation)


def open_protocol(app):
    return Protocol([Route("/line/{episode}", _step, methods=["POST"])])
