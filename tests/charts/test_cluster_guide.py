"""The chart, the operator and Kueue accept the examples of the guide of a whole cluster."""

import re
import subprocess

import pytest
import yaml
from pydantic import ValidationError

import make.chart
from agentworld.signing.keys import SIGNER, current_key, read_public
from agentworld_operator.resources.kinds import KINDS
from agentworld_pipelines.placement import Placement
from fakes import kueue_objects
from fakes.kueue_objects import ClusterQueue, LocalQueue, ResourceFlavor
from machines import kubernetes_types
from machines.pod_standards import level_of
from make import guide
from make.chart import ROOT

TEXT = (ROOT / "docs/guides/cluster.md").read_text()
YAMLS = guide.yamls(TEXT)
VALUES = yaml.safe_load((make.chart.CHART / "values.yaml").read_text())


def check(document):
    """Raises an error if no schema accepts the document."""
    group = document.get("apiVersion", "").partition("/")[0]
    if group == "kueue.x-k8s.io":
        kueue_objects.OBJECT.validate_python(document)
    elif group == "v1":
        kubernetes_types.check_schema(document)
        assert level_of(document["spec"]) == "restricted"
    elif group:
        [kind] = [kind for kind in KINDS if kind.kind == document["kind"]]
        spec = kind.spec.model_validate(document["spec"])
        assert len(spec.model_fields_set) == len(document["spec"])
    elif "integrations" in document:
        kueue_objects.Configuration.model_validate(document)
    elif document.keys() <= VALUES.keys():
        assert make.chart.objects(document)
        if placement := document.get("pipelines", {}).get("placement"):
            assert Placement.model_validate({"image": "train", **placement}).deploy
    else:
        Placement.model_validate({"image": "train", "default": document})


@pytest.mark.parametrize(
    "document", YAMLS, ids=lambda document: document.get("kind") or min(document)
)
def test_every_yaml_example_of_the_guide_is_valid(document):
    check(document)


def test_a_misspelled_field_of_kueue_or_of_a_placement_is_rejected():
    for document in YAMLS:
        if not document.get("apiVersion", "").startswith(("agentworld", "v1")):
            with pytest.raises(ValidationError):
                check(document | {"misspelt": 1})


def test_the_queues_of_the_guide_refer_to_its_resource_flavor():
    objects = [
        kueue_objects.OBJECT.validate_python(document)
        for document in YAMLS
        if document.get("apiVersion", "").startswith("kueue")
    ]
    flavor, cluster_queue, local_queue = objects
    assert isinstance(flavor, ResourceFlavor)
    assert isinstance(cluster_queue, ClusterQueue)
    assert isinstance(local_queue, LocalQueue)
    assert local_queue.spec.cluster_queue == cluster_queue.metadata.name
    [group] = cluster_queue.spec.resource_groups
    [node_flavor] = group.flavors
    assert node_flavor.name == flavor.metadata.name
    assert [resource.name for resource in node_flavor.resources] == group.covered_resources


def test_the_kueue_configuration_of_the_guide_enables_all_needed_integrations():
    [configuration] = [document for document in YAMLS if "integrations" in document]
    frameworks = set(configuration["integrations"]["frameworks"])
    assert frameworks == {"pod", "deployment", "batch/job", "trainer.kubeflow.org/trainjob"}


def test_both_guides_install_the_chart_with_the_same_command():
    other_text = (ROOT / "docs/guides/kubernetes.md").read_text()
    (install,) = commands(TEXT, "helm upgrade ")
    assert install.replace(" kubeflow ", " worlds ") == commands(other_text, "helm upgrade ")[-1]


@pytest.mark.parametrize("page", ["cluster", "pipelines"])
def test_the_step_key_commands_name_the_public_key_by_its_key_id(tmp_path, page):
    text = (ROOT / f"docs/guides/{page}.md").read_text()
    lines = commands(text, ("openssl ", "mkdir public"))
    subprocess.run(["sh", "-ec", "\n".join(lines)], cwd=tmp_path, check=True)
    private = tmp_path / "step.pem"
    (public,) = {*tmp_path.rglob("*.pem")} - {private}
    private.rename(tmp_path / SIGNER)
    assert current_key(tmp_path) == public.stem
    assert read_public(public.stem, public.read_bytes(), public).keyid == public.stem


def commands(text, start):
    """The commands of a page that begin with `start`."""
    lines = "".join(guide.blocks(text, "sh")).splitlines()
    return [line for line in lines if line.startswith(start)]


def rows_of(heading):
    """The rows of the table under a heading."""
    table = TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    _, *rows = [
        line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")
    ]
    return rows


def test_every_need_of_day_1_and_day_30_has_a_value_and_a_test():
    rows = rows_of("What you need on day 1 and on day 30")
    assert len(rows) > 8
    for row in rows:
        assert len(row) == 3
        assert all(cell.strip() for cell in row), row


def test_the_table_of_tested_software_is_complete():
    rows = rows_of("What was tested of other software")
    for row in rows:
        assert len(row) == 4
        assert all(cell.strip() for cell in row), row
    upstreams = {row[0].partition(",")[0] for row in rows}
    kinds = {"Trainer", "JobSet", "Kueue", "KubeRay", "KEDA"}
    programs = {"Kubernetes", "Kubeflow Pipelines", "MLflow", "vLLM", "Prometheus operator"}
    networks = {"cert-manager", "Cilium", "DCGM exporter", "clouds (IRSA"}
    assert kinds | programs | networks == upstreams


def test_a_file_cited_by_a_commit_is_marked_as_commit_only():
    rows = rows_of("What was tested of other software")
    commit = re.compile(r"\b(?=[a-f]*\d)[0-9a-f]{7}\b")
    citations = {row[0]: row[3].partition("commit only: ") for row in rows if commit.search(row[3])}
    assert citations.keys() == {"Kubeflow Pipelines", "Kueue", "KEDA"}
    assert not any(commit.search(before) for before, _, _ in citations.values())


def test_both_guides_and_the_chart_name_the_same_versions_of_kubernetes():
    [row] = [row for row in TEXT.splitlines() if row.startswith("| Kubernetes | ")]
    first, last, chart_least = re.search(
        r"\| (1\.\d+) to (1\.\d+), .* our chart (1\.\d+) ", row
    ).groups()
    sentence = (
        f"You need Kubernetes {first} to {last} (the chart itself takes {chart_least} and newer)"
    )
    assert sentence in (ROOT / "docs/guides/kubernetes.md").read_text()
    chart = (ROOT / "charts/agentworld/Chart.yaml").read_text()
    assert f'kubeVersion: ">={chart_least}.0-0"' in chart


@pytest.mark.parametrize(
    ("part", "project"),
    [
        ("Kubeflow Pipelines", "kubeflow/pipelines"),
        ("Kubeflow Trainer", "kubeflow/trainer"),
        ("Kueue", "kubernetes-sigs/kueue"),
    ],
)
def test_the_commands_install_a_version_that_the_table_of_versions_names(part, project):
    row = next(row for row in TEXT.splitlines() if row.startswith(f"| {part} | "))
    table_versions = re.findall(r"\d[\d.]+\d", row.split(" | ")[1].partition(";")[0])
    installed_versions = re.findall(rf"github\.com/{project}\S*[=/]v?(\d+\.\d+\.\d+)", TEXT)
    assert installed_versions
    for version in installed_versions:
        assert any(f"{version}.".startswith(f"{name}.") for name in table_versions), version


def test_packages_in_the_table_of_tested_software_are_pinned():
    constraints = (ROOT / "tools/constraints").glob("*.txt")
    pins = "\n".join(path.read_text() for path in constraints)
    pinned_packages = re.findall(r"^([\w-]+)==(\S+)", pins, re.M)
    named_packages = [
        package
        for row in rows_of("What was tested of other software")
        for package in re.findall(r"\b([a-z][\w-]+) (\d+\.\d+\.\d+)", row[1])
    ]
    assert len(named_packages) > 6
    assert set(named_packages) <= set(pinned_packages)
