"""An API server takes every object of others' kinds that our pipelines make and our guides show.

No controller of theirs is here. A server of today refuses a field that a definition has not got;
the tests' own drops it, which is looked for.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from agentworld.cluster.client import ApiServer, configuration
from agentworld.errors import ClusterError
from agentworld_pipelines.train_job import train_job
from fakes.definitions import define
from fakes.job_set import job_set
from fakes.kinds_of_others import RESOURCES, definition_of
from make import guide
from make.chart import ROOT
from make.places import PLACE

pytestmark = pytest.mark.waits

GUIDES = [(ROOT / f"docs/guides/{page}.md").read_text() for page in ("cluster", "kubernetes")]
DRY = {"dryRun": "All"}


@pytest.fixture(scope="module")
def made() -> dict[str, dict[str, Any]]:
    """One object of each kind."""
    folder = Path("/stores/demo/steps/sft/1")
    job = train_job("sft", ["demo", "/stores/demo"], folder, PLACE)
    shown = chain.from_iterable(map(guide.yamls, GUIDES))
    return {
        each["kind"]: each for each in [job, job_set(job), *shown] if each.get("kind") in RESOURCES
    }


class Refused(Exception):
    """The server says no, or keeps less than it was sent."""


@pytest.fixture(scope="module")
def server(control_plane) -> ApiServer:
    server = ApiServer(configuration(control_plane.kubeconfig))
    for kind in RESOURCES:
        define(server, definition_of(kind))
    return server


def create(server: ApiServer, made: dict[str, Any]) -> None:
    """A dry run; raises Refused."""
    resource = RESOURCES[made["kind"]]
    assert made["apiVersion"] == resource.api_version
    metadata = made["metadata"] | ({"namespace": "default"} if resource.namespaced else {})
    try:
        answer = server.call(
            "POST", resource.path("default"), body=made | {"metadata": metadata}, query=DRY
        )
    except ClusterError as error:
        raise Refused(str(error)) from error
    if answer["spec"] != made["spec"]:
        raise Refused("a field is not kept")


def misspelt(value: Any, schema: dict[str, Any]) -> Iterator[Any]:
    """The value with one field too many, in each object that has fields of its own."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            for other in misspelt(item, schema["items"]):
                yield [*value[:index], other, *value[index + 1 :]]
    if isinstance(value, dict) and "properties" in schema:
        yield value | {"misspelt": "1"}
        for name, item in value.items():
            for other in misspelt(item, schema["properties"][name]):
                yield value | {name: other}


def mistyped(value: Any) -> Iterator[Any]:
    """The value with another type in the place of each text, number and truth in it."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from (value | {name: other} for other in mistyped(item))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from ([*value[:index], other, *value[index + 1 :]] for other in mistyped(item))
    else:
        yield [value]


def test_every_kind_of_others_that_we_define_has_an_object(made):
    assert made.keys() == RESOURCES.keys()


@pytest.mark.parametrize("kind", RESOURCES)
def test_an_object_of_another_is_taken_whole(server, made, kind):
    create(server, made[kind])


@pytest.mark.parametrize("kind", RESOURCES)
def test_an_object_of_another_with_a_field_too_many_or_of_another_type_is_refused(
    server, made, kind
):
    spec = made[kind]["spec"]
    schema = definition_of(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    wrong = [*misspelt(spec, schema["properties"]["spec"]), *mistyped(spec)]
    assert len(wrong) > 1
    for other in wrong:
        with pytest.raises(Refused):
            create(server, made[kind] | {"spec": other})
