"""An API server accepts every object of other projects' kinds that our pipelines create and our
guides show.

None of their controllers is here. A current server refuses a field that a definition lacks
(tests/cel); the tests' own drops it, which is checked.
"""

from typing import Any

import pytest

from agentworld.cluster.client import ApiServer, configuration
from agentworld.errors import ClusterError
from fakes.definitions import define
from fakes.kinds_of_others import RESOURCES, definition_of
from make.objects_of_others import misspelt, mistyped, objects

pytestmark = pytest.mark.waits


class Refused(Exception):
    """The server refuses it, or drops a part."""


@pytest.fixture(scope="module")
def server(control_plane) -> ApiServer:
    server = ApiServer(configuration(control_plane.kubeconfig))
    for kind in RESOURCES:
        define(server, definition_of(kind))
    return server


@pytest.fixture(scope="module")
def made() -> dict[str, dict[str, Any]]:
    return objects()


def create(server: ApiServer, made: dict[str, Any]) -> None:
    """A dry run; raises Refused."""
    resource = RESOURCES[made["kind"]]
    assert made["apiVersion"] == resource.api_version
    try:
        answer = server.call("POST", resource.path("default"), body=made, query={"dryRun": "All"})
    except ClusterError as error:
        raise Refused(str(error)) from error
    if answer["spec"] != made["spec"]:
        raise Refused("a field is not kept")


def test_every_third_party_kind_has_a_test_object(made):
    assert made.keys() == RESOURCES.keys()


@pytest.mark.parametrize("kind", RESOURCES)
def test_a_third_party_object_is_accepted_without_dropped_fields(server, made, kind):
    create(server, made[kind])


@pytest.mark.parametrize("kind", RESOURCES)
def test_a_third_party_object_with_an_unknown_or_mistyped_field_is_refused(server, made, kind):
    wrong = [*misspelt(made[kind]), *mistyped(made[kind])]
    assert len(wrong) > 1
    for other in wrong:
        with pytest.raises(Refused):
            create(server, other)
