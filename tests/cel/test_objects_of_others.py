"""A current Kubernetes accepts every third-party object of ours, and refuses misspelled fields."""

from typing import Any

import httpx
import pytest

from cel.server import DRY, Api
from fakes.kinds_of_others import RESOURCES, definition_of
from make.objects_of_others import misspelt, mistyped, objects
from waiting import wait_for

pytestmark = pytest.mark.waits

EACH_KIND = pytest.mark.parametrize("kind", RESOURCES)


@pytest.fixture(scope="module")
def examples() -> dict[str, dict[str, Any]]:
    return objects()


@pytest.fixture(scope="module")
def server(empty: Api) -> Api:
    """The server, which serves all these kinds."""
    for kind, resource in RESOURCES.items():
        empty.define(definition_of(kind)).raise_for_status()
        wait_for(lambda resource=resource: empty.client.get(resource.path("default")).is_success)
    return empty


def create(api: Api, example: dict[str, Any]) -> httpx.Response:
    path = RESOURCES[example["kind"]].path("default")
    return api.client.post(path, params={"fieldValidation": "Strict"} | DRY, json=example)


@EACH_KIND
def test_a_third_party_object_is_accepted(server, examples, kind):
    answer = create(server, examples[kind])
    assert answer.is_success, answer.text


@EACH_KIND
def test_a_third_party_object_with_an_unknown_field_is_refused_with_the_field_name(
    server, examples, kind
):
    for invalid in misspelt(examples[kind]):
        answer = create(server, invalid)
        assert answer.status_code == 400, answer.text
        assert '.misspelt"' in answer.json()["message"]


@EACH_KIND
def test_a_third_party_object_with_a_mistyped_value_is_refused(server, examples, kind):
    for invalid in mistyped(examples[kind]):
        assert create(server, invalid).status_code == 422
