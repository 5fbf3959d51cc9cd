"""One server of custom resources for all these tests; each test names its own objects."""

from collections.abc import Iterator, Mapping

import httpx
import pytest

from agentworld_operator.resources.crd import crd
from agentworld_operator.resources.kinds import KINDS
from cel import server
from cel.server import Api
from waiting import wait_for


@pytest.fixture(scope="session")
def empty(tmp_path_factory) -> Iterator[Api]:
    """A server that knows no custom resource."""
    with server.running(tmp_path_factory.mktemp("cel")) as api:
        yield api


@pytest.fixture(scope="session")
def said(empty) -> Mapping[str, httpx.Response]:
    """The server's response to the definition of each kind."""
    return {kind.kind: empty.define(crd(kind)) for kind in KINDS}


@pytest.fixture(scope="session")
def api(empty, said) -> Api:
    """A server that serves all kinds."""
    for kind in KINDS:
        assert said[kind.kind].is_success, said[kind.kind].text
        wait_for(lambda kind=kind: empty.serves(kind))
    return empty
