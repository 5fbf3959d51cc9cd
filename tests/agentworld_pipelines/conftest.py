"""A Kubeflow Pipelines server, and a pipeline that it takes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kfp import compiler, dsl

from agentworld_pipelines.components import COMPONENTS
from agentworld_pipelines.connection import Connection
from agentworld_pipelines.settings import ServerSettings
from fakes import kfp_server


@pytest.fixture
def server() -> Iterator[kfp_server.KfpServer]:
    with kfp_server.running() as server:
        yield server


@pytest.fixture
def at(server: kfp_server.KfpServer) -> Connection:
    return Connection(ServerSettings(url=server.url))


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a pipeline of one step that takes what the main job takes; do not write to it."""

    @dsl.pipeline(name="one-step")
    def one_step(recipe: str, store: str) -> None:
        COMPONENTS["collect"](recipe=recipe, store=store)

    path = tmp_path_factory.mktemp("compiled") / "pipeline.yaml"
    compiler.Compiler().compile(one_step, str(path))
    return path
