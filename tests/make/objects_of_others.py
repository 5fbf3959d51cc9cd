"""Objects of other projects' kinds that our pipelines create and our guides show, and invalid
ones.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from agentworld_pipelines.train_job import train_job
from fakes.job_set import job_set
from fakes.kinds_of_others import RESOURCES, definition_of
from make import guide
from make.chart import ROOT
from make.places import PLACE

Object = dict[str, Any]

_GUIDES = ("cluster", "kubernetes")


def objects() -> dict[str, Object]:
    """One object of each kind; namespaced ones are in `default`."""
    folder = Path("/stores/demo/steps/sft/1")
    job = train_job("sft", ["demo", "/stores/demo"], folder, PLACE)
    texts = [(ROOT / f"docs/guides/{page}.md").read_text() for page in _GUIDES]
    documents = chain.from_iterable(map(guide.yamls, texts))
    results = [job, job_set(job), *documents]
    return {item["kind"]: _placed(item) for item in results if item.get("kind") in RESOURCES}


def _placed(manifest: Object) -> Object:
    namespace = {"namespace": "default"} if RESOURCES[manifest["kind"]].namespaced else {}
    return manifest | {"metadata": manifest["metadata"] | namespace}


def misspelt(manifest: Object) -> Iterator[Object]:
    """Adds an unknown field to each part of the spec that has fields of its own."""
    schema = definition_of(manifest["kind"])["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for spec in _misspelt(manifest["spec"], schema["properties"]["spec"]):
        yield manifest | {"spec": spec}


def _misspelt(value: Any, schema: Object) -> Iterator[Any]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            for other in _misspelt(item, schema["items"]):
                yield [*value[:index], other, *value[index + 1 :]]
    if isinstance(value, dict) and "properties" in schema:
        yield value | {"misspelt": "1"}
        for name, item in value.items():
            for other in _misspelt(item, schema["properties"][name]):
                yield value | {name: other}


def mistyped(manifest: Object) -> Iterator[Object]:
    """Replaces each text, number and boolean of the spec by a list."""
    for spec in _mistyped(manifest["spec"]):
        yield manifest | {"spec": spec}


def _mistyped(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from (value | {name: other} for other in _mistyped(item))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from ([*value[:index], other, *value[index + 1 :]] for other in _mistyped(item))
    else:
        yield [value]
