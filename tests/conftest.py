"""What many rooms' tests share: a tiny model for engines, a database, a cluster, patience."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Of processor time, and twenty times what a fast test may take: other work cannot lengthen it so.
_FAR_TOO_LONG = 5.0
_OF_THE_SHELL = ("AGENTWORLD_PRICE_", "AGENTWORLD_KFP_")

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# A test's store is its own, also where the shell names a service's ledger, or a key to one.
_OF_A_STORE = ("LEDGER_URL", "OBJECTS_URL", "CHECKPOINTS_URL", "KEYS")
for name in (*_OF_A_STORE, "SERVICE_URL", "CREDENTIAL", "CREDENTIAL_FILE"):
    os.environ.pop(f"AGENTWORLD_{name}", None)
# So are its prices, and no run of a test is one on a server that the shell names.
for name in [name for name in os.environ if name.startswith(_OF_THE_SHELL)]:
    del os.environ[name]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what loads torch for its model, before the fast ones are chosen."""
    for item in items:
        if isinstance(item, pytest.Function) and "tiny_model" in item.fixturenames:
            item.add_marker("torch")


def pytest_collection_finish() -> None:
    """What was imported stays: no collector has to walk it after each of thousands of tests."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fails a fast test that is slow by far."""
    began = sum(os.times()[:4])
    result = yield
    seconds = sum(os.times()[:4]) - began
    if "not slow" in item.config.option.markexpr:
        assert seconds < _FAR_TOO_LONG, f"it took {seconds:.1f} s of a processor; mark it slow"
    return result


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory) -> Path:
    """The folder of a random Qwen3 with tokenizer and chat template; do not write into it."""
    import make_model

    return make_model.tiny_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(scope="session")
def postgres_server():
    """One server for all tests; its user may make and drop databases."""
    import postgres

    with postgres.running() as server:
        yield server


@pytest.fixture(scope="session")
def bucket():
    """The address of a bucket of S3; each test uses folders of its own."""
    import s3

    with s3.running() as url:
        yield url


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory):
    """One Kubernetes cluster without a node for all tests; each uses namespaces of its own."""
    import control_plane

    with control_plane.running(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """One Kubernetes cluster with two nodes for all tests; each uses namespaces of its own."""
    import nodes

    with nodes.running(tmp_path_factory.mktemp("nodes")) as cluster:
        yield cluster


@pytest.fixture
def postgres_url(postgres_server) -> Iterator[str]:
    """The address, password and all, of an empty database."""
    with postgres_server.database() as url:
        yield url
