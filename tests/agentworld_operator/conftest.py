"""Operators of a real API server, each in a namespace of its own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

import make_operator
import make_service
from agentworld_operator.resources.places import PLACES
from control_plane import ControlPlane
from make_guarded import Guarded
from make_operator import OLDER_BUDGETS, Namespace, Operator, Service
from make_simulator import pinned_manifest


@pytest.fixture(scope="session")
def kubernetes(control_plane) -> ControlPlane:
    """One that knows the custom resources of this release."""
    make_operator.define(control_plane)
    return control_plane


@pytest.fixture
def namespace(kubernetes, monkeypatch) -> Namespace:
    """A new one."""
    monkeypatch.setitem(PLACES, "PodDisruptionBudget", OLDER_BUDGETS)
    return make_operator.new_namespace(kubernetes)


@pytest.fixture
def service() -> Iterator[Service]:
    told = Service()
    yield told
    told.close()


@pytest.fixture
def start(kubernetes, namespace, service, tmp_path) -> Iterator[Callable[..., Operator]]:
    """Starts an operator of the namespace, by a name among its replicas."""
    known = make_operator.settings(kubernetes, namespace, service)
    known |= {"look_seconds": 3600, "ask_seconds": 0.2, "lease_seconds": 6}
    with ExitStack() as ending:

        def started(name: str = "first", **told: object) -> Operator:
            log = tmp_path / f"{name}.log"
            operator = Operator(log, {**known, "identity": name, **told})
            ending.callback(operator.kill)
            return operator

        yield started


@pytest.fixture
def world(tmp_path) -> make_service.Service:
    """The simulator service of the first of the Simulators."""
    (tmp_path / "store").mkdir()
    return make_service.service(tmp_path / "store", pinned=pinned_manifest("one"))


@pytest.fixture
def guarded(namespace, start, world, tmp_path) -> Iterator[Guarded]:
    with ExitStack() as ending:
        url = ending.enter_context(make_service.listening(world.app))
        yield Guarded(namespace, start, tmp_path, url)
        namespace.delete("ValidatingWebhookConfiguration", f"agentworld-{namespace.namespace}")


@pytest.fixture
def running(guarded) -> Guarded:
    guarded.run()
    guarded.guard()
    return guarded
