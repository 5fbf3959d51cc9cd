"""The chart and the operator accept the examples of the guide for a platform team."""

import re
import shlex

import pytest
import yaml

import make.chart
from agentworld.cluster.api_resources import type_fields
from agentworld.cluster.names import API_VERSION
from agentworld.records.simulator import SimulatorManifest
from agentworld_operator.resources.kinds import KINDS
from agentworld_pipelines.placement import Placement
from fakes import keda_objects
from machines.kubernetes_types import check_schema
from make import guide
from make.chart import ROOT

TEXT = (ROOT / "docs/guides/kubernetes.md").read_text()
BLOCKS = guide.fences(TEXT)
YAMLS = guide.yamls(TEXT)
METRICS_EXAMPLES = re.findall(
    r"^```yaml\n(.*?)^```", (ROOT / "docs/operate/metrics.md").read_text(), re.M | re.S
)
BACKUP_EXAMPLES = re.findall(
    r"^```yaml\n(.*?)^```", (ROOT / "docs/operate/backup.md").read_text(), re.M | re.S
)
OBJECTS = [document for document in YAMLS if document.get("apiVersion") == API_VERSION]
AUTOSCALERS = [
    document for document in YAMLS if document.get("apiVersion", API_VERSION) != API_VERSION
]
SIMULATOR_EXAMPLES = re.findall(
    r"^```yaml\n(.*?)^```", (ROOT / "docs/guides/simulators.md").read_text(), re.M | re.S
)
COMMANDS = [line for language, text in BLOCKS if language == "sh" for line in text.splitlines()]


@pytest.mark.parametrize(
    "manifest",
    [*OBJECTS, *map(yaml.safe_load, SIMULATOR_EXAMPLES)],
    ids=lambda document: document["kind"],
)
def test_the_operator_accepts_every_object_of_the_guides(manifest):
    [kind] = [kind for kind in KINDS if kind.kind == manifest["kind"]]
    spec = kind.spec.model_validate(manifest["spec"])
    assert len(spec.model_fields_set) == len(manifest["spec"])


def test_both_autoscaler_examples_are_valid_and_target_the_guides_simulator():
    simulator, *_ = OBJECTS
    manifest = SimulatorManifest.model_validate(simulator["spec"]["identity"]["manifest"])
    scaled_object, autoscaler = AUTOSCALERS
    check_schema(autoscaler)
    keda_objects.ScaledObjectSpec.model_validate(scaled_object["spec"])
    for scaler in AUTOSCALERS:
        target = scaler["spec"]["scaleTargetRef"]
        assert target == {**type_fields("Simulator"), "name": simulator["metadata"]["name"]}
        assert scaler["metadata"]["namespace"] == simulator["metadata"]["namespace"]
    [trigger] = scaled_object["spec"]["triggers"]
    series = f'agentworld_open_episodes{{simulator="{manifest.digest}"}}'
    assert trigger["metadata"]["query"] == f"max({series})"
    [metric] = autoscaler["spec"]["metrics"]
    assert metric["type"] == "External"  # not of a pod, because there may be none


def test_the_alias_of_the_guide_names_its_simulator():
    simulator, alias, _schedule = OBJECTS
    assert alias["spec"]["simulator"] == simulator["metadata"]["name"]
    assert alias["metadata"]["namespace"] == simulator["metadata"]["namespace"]


@pytest.mark.parametrize(
    "values",
    [
        *(document for document in YAMLS if "apiVersion" not in document),
        *map(yaml.safe_load, [*METRICS_EXAMPLES, *BACKUP_EXAMPLES]),
    ],
)
def test_the_chart_accepts_the_values_of_the_guides(values):
    assert make.chart.objects(values)
    if placement := values.get("pipelines", {}).get("placement"):
        assert Placement.model_validate({"image": "train", **placement}).deploy


def test_every_value_named_in_the_guide_exists():
    values = yaml.safe_load((make.chart.CHART / "values.yaml").read_text())
    names = re.findall(rf"`((?:{'|'.join(values)})(?:\.\w+)+)\b", TEXT)
    assert len(names) >= 3
    for name in names:
        value = values
        for part in name.split("."):
            assert part in value, name
            value = value[part]


def test_the_guide_shows_the_notes_of_the_chart():
    (guide_notes,) = [text for language, text in BLOCKS if "is in the namespace" in text]
    notes = make.chart.files({}, "agentworld", "worlds")["agentworld/templates/NOTES.txt"]
    assert notes.startswith(guide_notes)


def test_the_commands_of_the_guide_use_the_chart_and_one_namespace():
    lines = [line for line in COMMANDS if "charts/agentworld" in line]
    assert len(lines) == 3
    for line in COMMANDS:
        if "show crds" not in line:
            words = shlex.split(line)
            assert words[words.index("--namespace") + 1] == "worlds"


def documented_rights():
    """Account, resource, whether by name, and verbs of each right in the guide's table."""
    for account, rights in re.findall(r"^\| `(agentworld-\w+)`.*?\| (.*) \|$", TEXT, re.M):
        for right in rights.split("; "):
            description, _, verbs = right.rpartition(": ")
            names = re.search(r"of (its own|the) name ?(.*)", description)
            for resource in re.findall(r"`(.*?)`", description):
                yield account, resource, bool(names), frozenset(verbs.split(", "))


def granted_rights():
    """The same rights in the chart: the verbs of an account for a resource, of all its rules."""
    verbs: dict[tuple[str, str, bool], set[str]] = {}
    values = {
        "console": {"enabled": True},
        "definitions": {"upgrade": True},
        "pipelines": {"account": {"name": "pipeline-runner", "jobs": True}},
    }
    for item in make.chart.objects(values):
        for rule in item["rules"] if item["kind"] in ("Role", "ClusterRole") else ():
            account = f"agentworld-{item['metadata']['labels']['app.kubernetes.io/component']}"
            for resource in rule["resources"]:
                key = account, resource, "resourceNames" in rule
                verbs[key] = verbs.get(key, set()) | {*rule["verbs"]}
    return {(*key, frozenset(rule_verbs)) for key, rule_verbs in verbs.items()}


def test_the_rights_in_the_guide_equal_the_rights_in_the_chart():
    assert set(documented_rights()) == granted_rights()


def test_the_guides_document_the_kueue_integrations_and_kept_queues():
    """An engine is a Deployment; what Kueue does with one is in `fakes/kueue.py`."""
    text = re.sub(r"\s+", " ", (ROOT / "docs/guides/cluster.md").read_text())
    assert "**Kueue** with the integrations `pod`, `deployment`, `batch/job`" in text
    assert "| `QueueKept` |" in TEXT
