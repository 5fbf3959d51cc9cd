import json

import pytest

from agentworld.cluster.records.serving import Serving
from agentworld.cluster.records.simulator import Reference
from agentworld.records.base import digest_bytes
from agentworld.records.simulator import Endpoint
from agentworld_operator.policy.identity import SimulatorIdentity, read_reference, servable
from agentworld_operator.policy.problem import Problem
from make import records
from make.simulator import pinned_manifest, serving


def reference(data: bytes) -> Reference:
    return Reference(url="s3://worlds/one.json", digest=digest_bytes(data))


def test_a_manifest_with_the_referenced_digest_is_the_identity():
    manifest = pinned_manifest()
    identity = read_reference(reference(manifest.canonical), manifest.canonical)
    assert identity == SimulatorIdentity(manifest.digest, manifest)


def test_a_manifest_with_an_extra_byte_is_refused():
    manifest = pinned_manifest()
    problem = read_reference(reference(manifest.canonical), manifest.canonical + b"\n")
    assert isinstance(problem, Problem)
    assert problem.reason == "AnotherManifest"


@pytest.mark.parametrize("data", [b"{}", b"no JSON", b"[1]"])
def test_invalid_manifest_data_is_refused_despite_a_matching_digest(data):
    problem = read_reference(reference(data), data)
    assert isinstance(problem, Problem)
    assert problem.reason == "NoManifest"


def test_a_noncanonical_manifest_is_refused():
    data = json.dumps(json.loads(pinned_manifest().canonical), indent=1).encode()
    problem = read_reference(reference(data), data)
    assert isinstance(problem, Problem)
    assert "another form" in problem.message


def test_a_pinned_vllm_with_an_image_and_weights_can_be_served():
    assert servable(pinned_manifest(), serving()) is None


def test_an_endpoint_needs_neither_image_nor_weights():
    endpoint = Endpoint(url="http://models.example/v1", model="world")
    assert servable(records.manifest(engine=endpoint, artifact=None, files={}), Serving()) is None


@pytest.mark.parametrize("field", ["image", "weights"])
def test_a_missing_image_or_weights_field_is_named(field):
    problem = servable(pinned_manifest(), serving().model_copy(update={field: None}))
    assert problem is not None
    assert field in problem.message


def test_an_engine_with_an_unsafe_argument_is_refused_with_its_name():
    manifest = pinned_manifest()
    arguments = (*manifest.engine.arguments, "--enable-sleep-mode")
    engine = manifest.engine.model_copy(update={"arguments": arguments})
    problem = servable(manifest.model_copy(update={"engine": engine}), serving())
    assert problem is not None
    assert problem.reason == "EngineUnsafe"
    assert "--enable-sleep-mode would let others change its weights" in problem.message


def test_an_engine_that_cannot_prove_its_weights_is_refused():
    problem = servable(records.manifest(), serving())
    assert problem is not None
    assert problem.reason == "EngineUnsupported"


def test_an_engine_pinned_by_a_lock_instead_of_an_image_is_refused():
    engine = pinned_manifest().engine.model_copy(
        update={"image": None, "lock": records.digest("lock")}
    )
    problem = servable(pinned_manifest(engine=engine), serving())
    assert problem is not None
    assert problem.reason == "NoImage"
