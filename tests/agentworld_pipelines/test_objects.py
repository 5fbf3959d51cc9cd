"""A pipeline's objects are valid for the operator, and it understands the operator's status."""

from pathlib import Path

import pytest

from agentworld.cluster.api_resources import type_fields
from agentworld.cluster.records.alias import AliasSpec
from agentworld.cluster.records.simulator import SimulatorSpec
from agentworld.cluster.records.view import SimulatorView
from agentworld.errors import InputError, PipelineError
from agentworld.operations.simulators import MoveConditions
from agentworld.records.gate import Gate
from agentworld.records.simulator import EnginePin
from agentworld.steps.deploy import AliasTarget
from agentworld.storage.simulators import PinnedSimulator
from agentworld.storage.working_copy import open_copy
from agentworld_operator.policy.identity import servable
from agentworld_pipelines import objects
from agentworld_pipelines.deployment import Deployment, Target
from make import records
from make.simulator import pinned_manifest

MANIFEST = pinned_manifest()
FOLDER = Path("/stores/demo/simulators") / MANIFEST.digest[7:]
CONDITIONS = MoveConditions((Gate(metric="exact_match", least=0.6),), records.digest("report"))
ALIAS = AliasTarget("terminal", PinnedSimulator(FOLDER, MANIFEST), CONDITIONS, key="deploy-1")
ALL_FIELDS = {
    "namespace": "worlds",
    "image": "mirror.example:5000/vllm",
    "claim": "stores",
    "node_selector": {"pool": "h100"},
    "tolerations": [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "spot", "value": "yes", "effect": "NoExecute", "toleration_seconds": 0},
    ],
    "accelerator": {"type": "nvidia.com/gpu", "count": 2},
    "requests": {"cpu": "4", "memory": "32Gi"},
    "limits": {"memory": "64Gi"},
    "queue": "worlds",
    "bounds": {"min": 1, "max": 4, "episodes_per_replica": 8, "idle_seconds": 60},
    "tenants": ["acme"],
    "startup_seconds": 600,
}


def simulator_spec(**fields: object) -> SimulatorSpec:
    """The operator's view of a deployment's Simulator."""
    deployment = Deployment.model_validate({"image": "vllm", "claim": "stores", **fields})
    target = Target(deployment=deployment, mounted="/stores")
    manifest = objects.simulator(ALIAS, target, objects.simulator_name(ALIAS))
    assert manifest.items() >= type_fields("Simulator").items()
    return SimulatorSpec.model_validate(manifest["spec"])


@pytest.fixture
def bucket_simulator(tmp_path: Path) -> tuple[AliasTarget, str]:
    """A simulator in the working copy of a bucket, and the URL of its files in the bucket."""
    copy = open_copy("memory://bucket/demo", tmp_path)
    folder = copy.root / "simulators" / FOLDER.name
    target = ALIAS._replace(simulator=PinnedSimulator(folder, MANIFEST))
    return target, f"memory://bucket/demo/simulators/{FOLDER.name}/model"


@pytest.mark.parametrize("secret", [None, "bucket"])
def test_weights_in_a_bucket_are_given_by_their_url_and_secret(bucket_simulator, secret):
    alias, url = bucket_simulator
    target = Target(deployment=Deployment(image="vllm", secret=secret), mounted=None)
    spec = SimulatorSpec.model_validate(objects.simulator(alias, target, "a")["spec"])
    weights = spec.serving.weights
    assert weights
    assert (weights.url, weights.secret, weights.claim) == (url, secret, None)


def test_a_claim_is_refused_for_a_bucket_and_required_for_other_stores(bucket_simulator):
    claim_target = Target(deployment=Deployment(image="vllm", claim="stores"), mounted="/stores")
    with pytest.raises(InputError, match="is in a bucket, and deploy.claim of the placement is"):
        objects.simulator(bucket_simulator[0], claim_target, "a")
    bare_target = Target(deployment=Deployment(image="vllm"), mounted=None)
    with pytest.raises(InputError, match="is in no bucket; name its claim as deploy.claim"):
        objects.simulator(ALIAS, bare_target, "a")


def test_the_operator_can_serve_the_simulator_of_a_deployment():
    spec = simulator_spec(**ALL_FIELDS)
    manifest, serving = spec.identity.manifest, spec.serving
    assert manifest
    assert manifest.digest == MANIFEST.digest
    assert servable(manifest, serving) is None
    assert serving.weights
    assert serving.weights.path == f"demo/simulators/{MANIFEST.digest[7:]}/model"
    fields = serving.model_dump(by_alias=False, exclude={"weights", "node_pool", "resources"})
    assert fields == {
        "replicas": 1,
        "bounds": ALL_FIELDS["bounds"],
        "image": "mirror.example:5000/vllm",
        "queue": "worlds",
        "suspend": False,
        "tenants": ("acme",),
        "startup_seconds": 600,
        "scratch": "10Gi",
        "shared_memory": "8Gi",
    }


def test_a_simulator_has_the_nodes_and_devices_of_its_deployment():
    serving = simulator_spec(**ALL_FIELDS).serving
    tolerations = [
        item.model_dump(by_alias=False, exclude_none=True) for item in serving.node_pool.tolerations
    ]
    expected = ALL_FIELDS["tolerations"]
    assert tolerations == [expected[0], expected[1] | {"operator": "Equal"}]
    assert serving.node_pool.selector == {"pool": "h100"}
    assert serving.resources.requests == {"cpu": "4", "memory": "32Gi", "nvidia.com/gpu": "2"}
    assert serving.resources.limits == {"memory": "64Gi", "nvidia.com/gpu": "2"}


def test_fields_missing_from_a_deployment_have_the_operators_defaults():
    serving = simulator_spec(replicas=3).serving
    own_fields = {"image", "weights", "replicas"}
    assert serving.model_dump(exclude=own_fields) == type(serving)().model_dump(exclude=own_fields)
    assert serving.replicas == 3


def test_fields_missing_from_a_deployment_are_not_set_in_the_simulator():
    deployment = Deployment.model_validate(ALL_FIELDS)
    target = Target.parse(Target(deployment=deployment, mounted="/stores").model_dump_json())
    serving = objects.simulator(ALIAS, target, "one")["spec"]["serving"]
    assert not {"suspend", "replicas"} & serving.keys()
    assert serving["nodePool"]["tolerations"][0] == ALL_FIELDS["tolerations"][0]
    bare_target = Target(deployment=Deployment(image="vllm", claim="stores"), mounted="/stores")
    serving = objects.simulator(ALIAS, bare_target, "one")["spec"]["serving"]
    assert not {"suspend", "bounds", "queue"} & serving.keys()
    assert serving["weights"].keys() == {"claim", "path"}


def test_an_alias_has_its_gate_and_report_and_removes_an_override():
    manifest = objects.alias(ALIAS, "terminal-1")
    spec = AliasSpec.model_validate(manifest["spec"])
    assert manifest.items() >= type_fields("SimulatorAlias").items()
    assert (spec.simulator, spec.report, spec.override) == ("terminal-1", CONDITIONS.report, None)
    assert [(gate.metric, gate.least) for gate in spec.gate] == [("exact_match", 0.6)]
    assert "canary" not in manifest["spec"]
    assert objects.moved_by(manifest) == "deploy-1"
    assert objects.moved_by(None) is objects.moved_by({"metadata": {}}) is None


def test_a_store_outside_of_the_claim_is_refused():
    target = Target(
        deployment=Deployment(image="vllm", claim="stores"), mounted="/elsewhere/stores"
    )
    with pytest.raises(InputError, match="is not on the claim stores, which is mounted at /else"):
        objects.simulator(ALIAS, target, "one")


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ({"kind": "transformers-serve", "image": records.digest("image")}, "cannot prove what it"),
        ({"kind": "vllm", "lock": records.digest("lock")}, "no container image"),
    ],
)
def test_an_engine_that_no_cluster_serves_is_refused(engine, words):
    manifest = records.manifest(engine=EnginePin(version="1", **engine))
    with pytest.raises(InputError, match=words):
        objects.check_servable(manifest)
    assert servable(manifest, SimulatorSpec.model_fields["serving"].default)


DIGEST = MANIFEST.digest


def simulator(**status: object) -> SimulatorView:
    """A Simulator of the second generation."""
    metadata = {"name": "one", "generation": 2}
    return SimulatorView.model_validate(
        {"metadata": metadata, "spec": {"identity": {}}, "status": status}
    )


def view(digest: str | None = DIGEST, observed: int = 2, **conditions: tuple[str, str]):
    """A Simulator with this status of the operator."""
    entries = [
        {"type": kind, "status": status, "reason": reason, "message": "why"}
        for kind, (status, reason) in conditions.items()
    ]
    return simulator(digest=digest, observedGeneration=observed, conditions=entries)


READY = {"Verified": ("True", "FilesMatch"), "Ready": ("True", "Serving")}


@pytest.mark.parametrize(
    ("simulator_view", "expected"),
    [
        (simulator(), False),
        (view(observed=1, **READY), False),
        (view(**READY), True),
        (view(Verified=("Unknown", "NotYet"), Ready=("True", "Idle")), True),
        (view(Verified=("Unknown", "NotYet"), Ready=("False", "Starting")), False),
        (view(Ready=("False", "Suspended"), Degraded=("True", "ImagePullBackOff")), False),
        (view(Ready=("False", "Unschedulable"), Degraded=("True", "Unschedulable")), False),
    ],
)
def test_a_simulator_is_ready_when_runs_can_be_opened(simulator_view, expected):
    assert objects.is_ready(simulator_view, DIGEST) is expected


@pytest.mark.parametrize(
    ("simulator_view", "words"),
    [
        (view(Verified=("False", "VerificationFailed")), "not served: VerificationFailed: why"),
        (view(digest=None, Verified=("False", "Invalid")), "not served: Invalid: why"),
        (view(Degraded=("True", "InvalidImageName")), "never starts: InvalidImageName: why"),
        (view(records.digest("other"), **READY), "install the operator of this release"),
    ],
)
def test_a_permanent_failure_raises_an_error_with_the_operators_message(simulator_view, words):
    with pytest.raises(PipelineError, match=words):
        objects.is_ready(simulator_view, DIGEST)
