"""The rights that the chart grants to the account of Kubeflow's runs."""

import pytest
import yaml
from helm_python.errors import HelmRenderError

import make.chart
from make.chart import ROOT

DEPLOYS = {"simulators", "simulatoraliases"}
FOLLOWS = {"trainjobs", "jobs", "pods", "events", "pods/log"}


def objects(**account):
    return make.chart.objects({"pipelines": {"account": account}})


@pytest.mark.parametrize(
    ("namespace", "jobs", "resources"),
    [("", True, DEPLOYS | FOLLOWS), ("", False, DEPLOYS), ("kubeflow", False, DEPLOYS)],
    ids=["with jobs", "without jobs", "of another namespace"],
)
def test_the_account_may_deploy_here_and_start_jobs_only_where_that_is_said(
    namespace, jobs, resources
):
    found = objects(name="pipeline-runner", namespace=namespace, jobs=jobs)
    role = make.chart.only(found, "Role", "agentworld-runs")
    assert {each for rule in role["rules"] for each in rule["resources"]} == resources
    binding = make.chart.only(found, "RoleBinding", "agentworld-runs")
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "pipeline-runner", "namespace": namespace or "worlds"}
    ]


def test_no_account_gets_rights_that_nobody_named():
    names = {each["metadata"]["name"] for each in objects(name="", namespace="kubeflow")}
    assert "agentworld-runs" not in names


def test_jobs_in_another_namespace_are_not_the_releases_to_give():
    with pytest.raises(HelmRenderError, match="the runs are in kubeflow; a step creates Jobs"):
        objects(name="pipeline-runner", namespace="kubeflow", jobs=True)


def test_it_may_do_in_its_own_namespace_what_the_guide_shows_by_hand():
    guide = (ROOT / "docs/guides/several-nodes.md").read_text()
    (text,) = [block for block in guide.split("```yaml\n") if "name: agentworld-stages" in block]
    by_hand = yaml.safe_load(text.partition("```")[0])["rules"]
    rules = make.chart.only(objects(name="pipeline-runner", jobs=True), "Role", "agentworld-runs")[
        "rules"
    ]
    assert [rule for rule in rules if not DEPLOYS & {*rule["resources"]}] == by_hand


def test_the_values_of_the_guide_of_a_cluster_give_the_runs_rights_and_a_claim_for_all_nodes():
    guide = (ROOT / "docs/guides/cluster.md").read_text()
    blocks = [block.partition("```")[0] for block in guide.split("```yaml\n")[1:]]
    (values,) = [block for block in blocks if "account: {name: pipeline-runner" in block]
    found = make.chart.objects(yaml.safe_load(values))
    assert make.chart.only(found, "RoleBinding", "agentworld-runs")
    claim = make.chart.only(found, "PersistentVolumeClaim", "agentworld-stores")
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
