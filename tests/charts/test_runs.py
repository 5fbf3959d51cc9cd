"""The rights that the chart grants to the account of Kubeflow's runs."""

import pytest
import yaml
from helm_python.errors import HelmRenderError

import make.chart
from make.chart import ROOT

DEPLOY_RESOURCES = {"simulators", "simulatoraliases"}
JOB_RESOURCES = {"trainjobs", "jobs", "pods", "events", "pods/log"}


def objects(**account):
    return make.chart.objects({"pipelines": {"account": account}})


@pytest.mark.parametrize(
    ("namespace", "jobs", "resources"),
    [
        ("", True, DEPLOY_RESOURCES | JOB_RESOURCES),
        ("", False, DEPLOY_RESOURCES),
        ("kubeflow", False, DEPLOY_RESOURCES),
    ],
    ids=["with jobs", "without jobs", "of another namespace"],
)
def test_the_account_of_the_runs_may_deploy_and_may_start_jobs_only_if_enabled(
    namespace, jobs, resources
):
    rendered = objects(name="pipeline-runner", namespace=namespace, jobs=jobs)
    role = make.chart.only(rendered, "Role", "agentworld-runs")
    assert {resource for rule in role["rules"] for resource in rule["resources"]} == resources
    binding = make.chart.only(rendered, "RoleBinding", "agentworld-runs")
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "pipeline-runner", "namespace": namespace or "worlds"}
    ]


def test_without_an_account_name_no_rights_are_granted():
    names = {item["metadata"]["name"] for item in objects(name="", namespace="kubeflow")}
    assert "agentworld-runs" not in names


def test_job_rights_for_an_account_of_another_namespace_are_refused():
    with pytest.raises(HelmRenderError, match="the runs are in kubeflow; a step creates Jobs"):
        objects(name="pipeline-runner", namespace="kubeflow", jobs=True)


def test_the_job_rights_of_the_chart_equal_the_rules_in_the_guide():
    guide = (ROOT / "docs/guides/several-nodes.md").read_text()
    (text,) = [block for block in guide.split("```yaml\n") if "name: agentworld-stages" in block]
    guide_rules = yaml.safe_load(text.partition("```")[0])["rules"]
    rules = make.chart.only(objects(name="pipeline-runner", jobs=True), "Role", "agentworld-runs")[
        "rules"
    ]
    assert [rule for rule in rules if not DEPLOY_RESOURCES & {*rule["resources"]}] == guide_rules


def test_the_cluster_guides_values_grant_run_rights_and_a_shared_claim():
    guide = (ROOT / "docs/guides/cluster.md").read_text()
    blocks = [block.partition("```")[0] for block in guide.split("```yaml\n")[1:]]
    (values,) = [block for block in blocks if "account: {name: pipeline-runner" in block]
    rendered = make.chart.objects(yaml.safe_load(values))
    assert make.chart.only(rendered, "RoleBinding", "agentworld-runs")
    claim = make.chart.only(rendered, "PersistentVolumeClaim", "agentworld-stores")
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
