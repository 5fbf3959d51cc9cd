"""An API server accepts every object of other projects' kinds that our pipelines create and our
guides show.

None of their controllers runs here. A current server refuses a field that a definition lacks
(tests/cel); the tests' server drops it, and `create` checks that.
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
    """The server refuses an object, or drops a part of it."""


@pytest.fixture(scope="module")
def server(control_plane) -> ApiServer:
    server = ApiServer(configuration(control_plane.kubeconfig))
    for kind in RESOURCES:
        define(server, definition_of(kind))
    return server


@pytest.fixture(scope="module")
def examples() -> dict[str, dict[str, Any]]:
    return objects()


def create(server: ApiServer, example: dict[str, Any]) -> None:
    """Creates an object in a dry run; raises Refused."""
    resource = RESOURCES[example["kind"]]
    assert example["apiVersion"] == resource.api_version
    try:
        answer = server.call(
            "POST", resource.path("default"), body=example, query={"dryRun": "All"}
        )
    except ClusterError as error:
        raise Refused(str(error)) from error
    if answer["spec"] != example["spec"]:
        raise Refused("a field is not kept")


def test_every_third_party_kind_has_a_test_object(examples):
    assert examples.keys() == RESOURCES.keys()


@pytest.mark.parametrize("kind", RESOURCES)
def test_a_third_party_object_is_accepted_without_dropped_fields(server, examples, kind):
    create(server, examples[kind])


@pytest.mark.parametrize("kind", RESOURCES)
def test_a_third_party_object_with_an_unknown_or_mistyped_field_is_refused(server, examples, kind):
    invalid_objects = [*misspelt(examples[kind]), *mistyped(examples[kind])]
    assert len(invalid_objects) > 1
    for invalid in invalid_objects:
        with pytest.raises(Refused):
            create(server, invalid)
