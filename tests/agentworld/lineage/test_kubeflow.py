"""What Kubeflow's MLflow plugin gives a step, and what the step makes of it.

The server is MLflow's own, with workspaces. A door before it asks for the token of a service
account, whose files lie where a pod has them: in a mount namespace of the test's own.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlflow_server import Door, MlflowServer, door, serving

pytestmark = pytest.mark.slow  # as root, for what it mounts

WORKSPACE, TOKEN = "team-a", "a-service-accounts-token"
ACCOUNT = "/run/secrets/kubernetes.io/serviceaccount"
STEP = """
import json, os, sys
from pathlib import Path
import make
from agentworld.lineage.base import WorldModel
from agentworld.steps.addresses import open_registry

given = {name: value for name, value in os.environ.items() if name.startswith("MLFLOW")}
model = Path(sys.argv[1])
what = WorldModel(stages=(make.checkpoint("rl"),), report=make.digest("report"))
ref = open_registry(model.parent).register_world_model(sys.argv[2], what, model)
left = {name: value for name, value in os.environ.items() if name.startswith("MLFLOW")}
print(json.dumps([str(ref), left == given]))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    with serving(tmp_path_factory.mktemp("mlflow")) as server:
        yield server


@pytest.fixture
def before(server: MlflowServer) -> Iterator[Door]:
    with door(server.port) as state:
        state.token = TOKEN
        yield state


class Plugin:
    """What the plugin does: an experiment, and a run in it for each attempt at a task."""

    def __init__(self, port: int, workspace: str) -> None:
        from mlflow import MlflowClient

        url = f"http://127.0.0.1:{port}"
        self.client = MlflowClient(url, url)
        if workspace not in {each.name for each in self.client.list_workspaces()}:
            self.client.create_workspace(workspace)
        name = f"a pipeline {len(self.client.search_experiments())}"
        self.experiment = self.client.create_experiment(name)

    def open_run(self) -> dict[str, str]:
        """The variables that name a new run."""
        run = self.client.create_run(self.experiment, run_name="register").info.run_id
        return {"MLFLOW_RUN_ID": run, "MLFLOW_EXPERIMENT_ID": self.experiment}


@pytest.fixture
def plugin(server: MlflowServer, monkeypatch: pytest.MonkeyPatch) -> Plugin:
    monkeypatch.setenv("MLFLOW_WORKSPACE", WORKSPACE)
    return Plugin(server.port, WORKSPACE)


def step(
    folder: Path, name: str, token: str = TOKEN, **variables: str
) -> subprocess.CompletedProcess[str]:
    """A registration in a process that has a pod's service account and these variables."""
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model/weights").write_bytes(b"weights")
    (folder / "step.py").write_text(STEP)
    account = f"mkdir -p {ACCOUNT} && printf %s {token} >{ACCOUNT}/token"
    account += f" && printf %s {WORKSPACE} >{ACCOUNT}/namespace"
    program = f"{sys.executable} {folder}/step.py {folder}/model {name}"
    script = f"mount -t tmpfs tmpfs /run && {account} && exec {program}"
    kept = {name: each for name, each in os.environ.items() if not name.startswith("MLFLOW")}
    given = {"MLFLOW_TRACKING_AUTH": "kubernetes-namespaced", **variables}
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        env={**kept, "PYTHONPATH": os.pathsep.join(sys.path), **given},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize(
    "named", [{"MLFLOW_WORKSPACE": WORKSPACE}, {}], ids=["named", "of the pod"]
)
def test_a_version_is_linked_to_the_tasks_run_and_made_once_however_often_it_is_tried(
    tmp_path: Path, before: Door, plugin: Plugin, named: dict[str, str]
) -> None:
    at, name = {"MLFLOW_TRACKING_URI": before.url, **named}, f"worlds-{len(named)}"
    first, second = plugin.open_run(), plugin.open_run()
    runs = [each["MLFLOW_RUN_ID"] for each in (first, second)]
    untouched = [plugin.client.get_run(run).to_dictionary() for run in runs]
    for task in (first, second):
        done = step(tmp_path, name, **at, **task)
        assert done.returncode == 0, done.stderr
        ref, is_environment_kept = json.loads(done.stdout.splitlines()[-1])
        assert (ref, is_environment_kept) == (f"{name}@1", True)
    assert before.workspaces == {WORKSPACE}
    assert [plugin.client.get_run(run).to_dictionary() for run in runs] == untouched
    (version,) = plugin.client.search_model_versions(f"name = '{name}'")
    ours = plugin.client.get_run(version.run_id)
    assert version.tags["agentworld.kubeflow_run"] == runs[0]
    assert ours.data.tags["agentworld.kubeflow_run"] == runs[0]
    assert ours.data.tags["mlflow.parentRunId"] == runs[0]
    assert (ours.info.experiment_id, ours.info.status) == (plugin.experiment, "FINISHED")


def test_a_token_that_the_door_does_not_know_is_told_at_once(
    tmp_path: Path, before: Door, plugin: Plugin
) -> None:
    done = step(tmp_path, "worlds", "another", MLFLOW_TRACKING_URI=before.url, **plugin.open_run())
    *_, last = done.stderr.splitlines()
    assert last.startswith(f"agentworld.errors.StoreError: the registry {before.url} failed: ")
    assert "401" in last
    assert len(before.asked) == 1
