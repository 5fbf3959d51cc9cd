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
    shown = chain.from_iterable(map(guide.yamls, texts))
    made = [job, job_set(job), *shown]
    return {each["kind"]: _placed(each) for each in made if each.get("kind") in RESOURCES}


def _placed(made: Object) -> Object:
    namespace = {"namespace": "default"} if RESOURCES[made["kind"]].namespaced else {}
    return made | {"metadata": made["metadata"] | namespace}


def misspelt(made: Object) -> Iterator[Object]:
    """With one field too many, in each part of the spec that has fields of its own."""
    schema = definition_of(made["kind"])["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for spec in _misspelt(made["spec"], schema["properties"]["spec"]):
        yield made | {"spec": spec}


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


def mistyped(made: Object) -> Iterator[Object]:
    """With a list in the place of each text, number and truth of the spec."""
    for spec in _mistyped(made["spec"]):
        yield made | {"spec": spec}


def _mistyped(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from (value | {name: other} for other in _mistyped(item))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from ([*value[:index], other, *value[index + 1 :]] for other in _mistyped(item))
    else:
        yield [value]
