"""A Kubeflow Pipelines server, a pipeline for it, and steps that follow the Jobs of a cluster."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kfp import compiler, dsl

from agentworld_pipelines.components import COMPONENTS
from agentworld_pipelines.connection import Connection
from agentworld_pipelines.placement import Place
from agentworld_pipelines.settings import ServerSettings
from fakes import kfp_server
from machines.step_process import StepProcess


@pytest.fixture
def server() -> Iterator[kfp_server.KfpServer]:
    with kfp_server.running() as server:
        yield server


@pytest.fixture
def at(server: kfp_server.KfpServer) -> Connection:
    return Connection(ServerSettings(url=server.url))


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a pipeline of one step with the inputs of the main job; do not write to it."""

    @dsl.pipeline(name="one-step")
    def one_step(recipe: str, store: str) -> None:
        COMPONENTS["collect"](recipe=recipe, store=store)

    path = tmp_path_factory.mktemp("compiled") / "pipeline.yaml"
    compiler.Compiler().compile(one_step, str(path))
    return path


@pytest.fixture(scope="module")
def kubelet(control_plane):
    """The kubelet of the only node."""
    from fakes import trainer

    with trainer.node(control_plane) as kubelet:
        yield kubelet


@pytest.fixture
def account(control_plane) -> tuple[str, Path]:
    """A new namespace, and the kubeconfig of its pipelines' account."""
    from fakes import trainer

    return trainer.new_namespace(control_plane)


@pytest.fixture
def start_step(tmp_path: Path, account: tuple[str, Path]) -> Iterator[Callable[..., StepProcess]]:
    """Starts a step of a type at a place, with the rights that the guide gives its account."""
    namespace, kubeconfig = account
    defaults = {"namespace": namespace, "kubeconfig": kubeconfig, "look_seconds": 0.1}
    defaults |= {"progress_seconds": 0.1, "settle_seconds": 1}
    with ExitStack() as stack:

        def start(
            step_type: type[StepProcess], place: Place | None, **settings: object
        ) -> StepProcess:
            values = {**defaults, **settings}.items()
            environment = {f"AGENTWORLD_{name.upper()}": str(value) for name, value in values}
            step = step_type(tmp_path, environment, place)
            stack.callback(step.kill)
            return step

        yield start
