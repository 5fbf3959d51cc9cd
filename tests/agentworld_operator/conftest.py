"""Operators of a real API server, each in a separate namespace."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

import make.operator
import make.service
from agentworld.cluster.api_resources import API_RESOURCES
from machines import older_operator
from machines.control_plane import ControlPlane
from machines.forked import Forked
from make.guarded import Guarded
from make.operator import OLDER_BUDGETS, Namespace, Operator, Service
from make.simulator import pinned_manifest


@pytest.fixture(scope="session")
def kubernetes(control_plane) -> ControlPlane:
    """A control plane that knows the custom resources of this release."""
    make.operator.define(control_plane)
    return control_plane


@pytest.fixture
def namespace(kubernetes, monkeypatch) -> Namespace:
    """A new namespace."""
    monkeypatch.setitem(API_RESOURCES, "PodDisruptionBudget", OLDER_BUDGETS)
    return make.operator.new_namespace(kubernetes)


@pytest.fixture
def service() -> Iterator[Service]:
    episode_service = Service()
    yield episode_service
    episode_service.close()


@pytest.fixture
def start(kubernetes, namespace, service, tmp_path) -> Iterator[Callable[..., Operator]]:
    """Starts an operator of the namespace under a replica name."""
    defaults = make.operator.settings(kubernetes, namespace, service)
    defaults |= {"look_seconds": 3600, "ask_seconds": 0.2, "lease_seconds": 60}
    with ExitStack() as stack:

        def start_operator(name: str = "first", **settings: object) -> Operator:
            log = tmp_path / f"{name}.log"
            variables = make.operator.variables({**defaults, "identity": name, **settings})
            operator = Operator(log, Forked(log, older_operator.run, **variables))
            stack.callback(operator.kill)
            return operator

        yield start_operator


@pytest.fixture
def world(tmp_path) -> make.service.Service:
    """The simulator service of the first Simulator."""
    (tmp_path / "store").mkdir()
    return make.service.service(tmp_path / "store", pinned=pinned_manifest("one"))


@pytest.fixture
def guarded(namespace, start, world, tmp_path) -> Iterator[Guarded]:
    with ExitStack() as stack:
        url = stack.enter_context(make.service.listening(world.app))
        yield Guarded(namespace, start, tmp_path, url)
        namespace.delete("ValidatingWebhookConfiguration", f"agentworld-{namespace.namespace}")


@pytest.fixture
def running(guarded) -> Guarded:
    guarded.run()
    guarded.guard()
    return guarded
