"""The Pod Security Standard that each step's pods meet."""

import re
from pathlib import Path

import pytest

import make.pipelines
from agentworld.cluster.pod_security import USER
from agentworld.steps.table import names_of
from agentworld_pipelines.compile import PIPELINES
from agentworld_pipelines.placement import Nodes
from agentworld_pipelines.step_job import stage_job, step_job
from agentworld_pipelines.train_job import train_job
from fakes import kfp_security
from fakes.job_set import job_set
from machines.pod_standards import level_of
from make.pipelines import PLACEMENT, ROOT
from make.places import PLACE

pytestmark = pytest.mark.compute

FOLDER = Path("/stores/demo/steps/sft/0123456789abcdef")
ARGUMENTS = ["demo", "/stores/demo"]
ONE_NODE = PLACE.model_copy(update={"nodes": Nodes(count=1)})


def live_pod(profile: str = "") -> dict:
    job = step_job("a-name", "collect", ARGUMENTS, PLACE, seccomp_profile=profile)
    return job["spec"]["template"]["spec"]


def stage_pod() -> dict:
    return stage_job("sft", ARGUMENTS, FOLDER, ONE_NODE)["spec"]["template"]["spec"]


def node_pod() -> dict:
    (node_job,) = job_set(train_job("sft", ARGUMENTS, FOLDER, PLACE))["spec"]["replicatedJobs"]
    return node_job["template"]["spec"]["template"]["spec"]


@pytest.mark.parametrize("placement", [None, PLACEMENT], ids=["bare", "placed"])
@pytest.mark.parametrize("name", PIPELINES)
def test_every_step_of_a_pipeline_meets_restricted_and_runs_as_the_image_user(name, placement):
    compiled = make.pipelines.compiled(name, placement)
    assert compiled.containers
    for step in compiled.containers:
        config = compiled.pod(step)
        assert level_of(kfp_security.pod(config)) == "restricted"
        security = kfp_security.container_security(config)
        assert (security["runAsUser"], security["runAsGroup"]) == (USER, USER)


def test_a_kubeflow_pod_without_a_security_context_meets_only_baseline():
    assert level_of(kfp_security.pod({})) == "baseline"


def test_the_user_of_the_pods_is_the_user_of_the_images():
    users = re.findall(r"^USER (\S+)$", (ROOT / "Dockerfile").read_text(), re.M)
    assert set(users) == {f"{USER}:{USER}", "0:0"}
    assert users[-1] != "0:0"


def test_the_guide_lists_the_standard_that_each_kind_of_pod_meets():
    levels = {
        "all steps, in Kubeflow's pods": level_of(
            kfp_security.pod(make.pipelines.compiled("nightly").pod("measure"))
        ),
        "`cpt`, `sft`, `rl` with `nodes`, in a Job or a TrainJob": level_of(stage_pod()),
        f"{', '.join(f'`{step}`' for step in names_of('live'))}, in a Job": level_of(live_pod()),
        "the same with `AGENTWORLD_SECCOMP_PROFILE`": level_of(live_pod("profiles/shells.json")),
    }
    assert level_of(node_pod()) == level_of(stage_pod())
    guide = (ROOT / "docs/guides/cluster.md").read_text()
    rows = re.findall(r"^\| (.+?) \| `(restricted|baseline|privileged)` \|$", guide, re.M)
    assert dict(rows) == levels


@pytest.mark.parametrize("pod", [stage_pod, node_pod])
def test_a_stage_has_the_time_for_a_checkpoint_and_may_write_to_its_volumes(pod):
    spec = pod()
    (container,) = spec["containers"]
    (option,) = [word for word in container["command"] if word.startswith("--shutdown-timeout=")]
    assert spec["terminationGracePeriodSeconds"] > int(option.partition("=")[2])
    assert spec["securityContext"]["fsGroup"] == spec["securityContext"]["runAsGroup"]
    assert container["command"][0] == "torchrun"  # the first process, which gets the signal


def test_a_live_step_has_no_termination_grace_period():
    assert "terminationGracePeriodSeconds" not in live_pod()
