"""Fixtures that tests of many packages share: a tiny model for engines, a database, a cluster,
time-outs.
"""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import settings

from waiting import DEADLINE

pytest_plugins = ["lanes.plugin", "lanes.unwanted", "lanes.parts"]

_OF_THE_SHELL = ("AGENTWORLD_PRICE_", "AGENTWORLD_KFP_")

# Hypothesis saves no examples: the lanes run at the same time and must not affect each other.
settings.register_profile("patient", deadline=None, database=None)
settings.register_profile("quick", settings.get_profile("patient"), max_examples=10)
settings.load_profile("patient")

# The limit for requests of tests that set none: a machine with both cores busy may take longer
# than httpx's five seconds. The product sets its own limits everywhere.
httpx._config.DEFAULT_TIMEOUT_CONFIG.__init__(timeout=DEADLINE)

# A test uses its own store, even if the shell names the ledger of a service, or keys to it.
_OF_A_STORE = ("LEDGER_URL", "OBJECTS_URL", "MIRROR_URL", "KEYS")
for name in (*_OF_A_STORE, "SERVICE_URL", "CREDENTIAL", "CREDENTIAL_FILE"):
    os.environ.pop(f"AGENTWORLD_{name}", None)
# A test also uses its own prices, and starts no run on a server that the shell names.
for name in [name for name in os.environ if name.startswith(_OF_THE_SHELL)]:
    del os.environ[name]


# Imports and collection create many objects, none of which is garbage.
gc.disable()


def pytest_collection_finish() -> None:
    """Freezes imported objects, so that the collector does not scan them after each of thousands of
    tests.

    By default, it scans after every 700 new objects, which takes a tenth of the time of fast tests.
    """
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


@pytest.fixture(scope="session", autouse=True)
def statements_once() -> Iterator[None]:
    """Ledgers share compiled statements."""
    from agentworld.ledger import database
    from make import statements_once

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "connect", statements_once.connect)
        yield


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory) -> Path:
    """The folder of a random Qwen3 with tokenizer and chat template; do not write into it."""
    import make.model

    return make.model.tiny_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(scope="session")
def postgres_server():
    """One server for all tests; its user may make and drop databases."""
    from machines import postgres

    with postgres.running() as server:
        yield server


@pytest.fixture(scope="session")
def bucket():
    """The address of a bucket of S3; each test uses its own folders."""
    from fakes import s3

    with s3.running() as url:
        yield url


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory):
    """One Kubernetes cluster without nodes for all tests; each uses its own namespaces."""
    from machines import control_plane

    with control_plane.running(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """One Kubernetes cluster with two nodes for all tests; each uses its own namespaces."""
    from machines import nodes

    with nodes.running(tmp_path_factory.mktemp("nodes")) as cluster:
        yield cluster


@pytest.fixture
def postgres_url(postgres_server) -> Iterator[str]:
    """The address of an empty database, with its password."""
    with postgres_server.database() as url:
        yield url
