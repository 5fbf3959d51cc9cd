"""A Kubernetes of today takes every object of others' kinds of ours, and refuses it misspelt."""

from typing import Any

import httpx
import pytest

from cel.server import DRY, Api
from fakes.kinds_of_others import RESOURCES, definition_of
from make.objects_of_others import misspelt, mistyped, objects
from waiting import wait_for

pytestmark = pytest.mark.waits

EACH = pytest.mark.parametrize("kind", RESOURCES)


@pytest.fixture(scope="module")
def made() -> dict[str, dict[str, Any]]:
    return objects()


@pytest.fixture(scope="module")
def knowing(empty: Api) -> Api:
    """The server, which serves all these kinds."""
    for kind, resource in RESOURCES.items():
        empty.define(definition_of(kind)).raise_for_status()
        wait_for(lambda resource=resource: empty.client.get(resource.path("default")).is_success)
    return empty


def create(api: Api, made: dict[str, Any]) -> httpx.Response:
    path = RESOURCES[made["kind"]].path("default")
    return api.client.post(path, params={"fieldValidation": "Strict"} | DRY, json=made)


@EACH
def test_a_third_party_object_is_accepted(knowing, made, kind):
    answer = create(knowing, made[kind])
    assert answer.is_success, answer.text


@EACH
def test_a_third_party_object_with_an_unknown_field_is_refused_with_the_field_name(
    knowing, made, kind
):
    for wrong in misspelt(made[kind]):
        answer = create(knowing, wrong)
        assert answer.status_code == 400, answer.text
        assert '.misspelt"' in answer.json()["message"]


@EACH
def test_a_third_party_object_with_a_mistyped_value_is_refused(knowing, made, kind):
    for wrong in mistyped(made[kind]):
        assert create(knowing, wrong).status_code == 422
