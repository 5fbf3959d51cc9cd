"""The OpenAPI document of one run, with the requests of OpenEnv's and OpenAI's clients."""

import json
from functools import cache
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentworld.serving.authorized_service import AuthorizedService
from agentworld.serving.protocols.native import JSON

_RUN = "/runs/{run}"
_TAGS = {"OpenEnv", "OpenAI"}

Operation = dict[str, Any]


def document_of_run(app: FastAPI) -> dict[str, Any]:
    """The document, the same for every run, because its addresses are relative to its own."""
    whole = app.openapi()
    paths = {
        path.removeprefix(_RUN): {
            method: _without_run(operation)
            for method, operation in operations.items()
            if _TAGS.intersection(operation.get("tags", ()))
        }
        for path, operations in whole["paths"].items()
        if path.startswith(f"{_RUN}/")
    }
    own = {path: operations for path, operations in paths.items() if operations}
    return {**whole, "servers": [{"url": "."}], "paths": own}


def route(app: FastAPI) -> Route:
    """The route of the document, which is rendered once; only callers that see the run get it."""
    document_json = cache(lambda: json.dumps(document_of_run(app)).encode())

    async def document(request: Request) -> Response:
        await AuthorizedService(request.scope, "openenv").simulator_of(request.path_params["run"])
        return Response(document_json(), media_type=JSON)

    return Route(f"{_RUN}/openapi.json", document, methods=["GET"], include_in_schema=False)


def _without_run(operation: Operation) -> Operation:
    parameters = operation.get("parameters", [])
    own = [
        parameter
        for parameter in parameters
        if (parameter["in"], parameter["name"]) != ("path", "run")
    ]
    return {**operation, "parameters": own}
