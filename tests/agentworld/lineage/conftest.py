"""One MLflow server for all tests of the registry, and a proxy in front of it."""

from collections.abc import Iterator

import pytest

from machines.mlflow_server import MlflowServer, Proxy, proxying, serving


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    """The server; a test that kills it starts it again."""
    with serving(tmp_path_factory.mktemp("mlflow")) as server:
        yield server


@pytest.fixture
def proxy(server: MlflowServer) -> Iterator[Proxy]:
    """A proxy in front of the server, which fails on demand."""
    with proxying(server.port) as state:
        yield state
