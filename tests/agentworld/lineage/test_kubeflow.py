"""What Kubeflow gives a step of its MLflow, and what the step makes of it.

The server is MLflow's own with Kubeflow's released plugin: its workspaces are the namespaces of a
real API server, which says whom a token names and what that account may. A step has the files of
its account where a pod has them, in a mount namespace of the test's own; the runs that Kubeflow's
driver opens, and the variables that name them, are made here as its source makes them.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

import make.ledger
import make.service
from agentworld.cluster.api_resources import Object
from agentworld.cluster.client import ApiServer, configuration
from agentworld.errors import NotFound, StoreError
from agentworld.lineage.base import VersionRef, WorldModel
from agentworld.operations.registry import open_registry
from agentworld.records.base import digest_bytes
from agentworld.records.run import AgentRun
from agentworld.runner.folders import (
    AGENT,
    CHECKPOINT,
    PRACTICE,
    REPORT,
    RUN,
    VERSION,
    Practice,
    TrainedAgent,
)
from fakes.trainer import guide_role
from machines.control_plane import ControlPlane
from machines.mlflow_server import MlflowServer, serving
from make import records
from waiting import DEADLINE

pytestmark = pytest.mark.waits  # as root, for what it mounts

TEAM, OTHER, HOME = "worlds-a", "worlds-b", "worlds-mlflow"
RUNNER = "pipeline-runner"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLE = guide_role("agentworld-registry")
# What the plugin's own documents give the server's account.
WATCHES = [
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]},
    {
        "apiGroups": ["mlflow.kubeflow.org"],
        "resources": ["mlflowconfigs"],
        "verbs": ["list", "watch"],
    },
]
ACCOUNT = "/run/secrets/kubernetes.io/serviceaccount"
STEPS = """
import json, os, sys
from agentworld.steps.run import run_by_name

given = {name: value for name, value in os.environ.items() if name.startswith("MLFLOW")}
told = json.loads(sys.argv[1])
made = [run_by_name(step, *told[step]) for step in ("register", "register_agent")]
left = {name: value for name, value in os.environ.items() if name.startswith("MLFLOW")}
print(json.dumps([made, left == given]))
"""


def unique(name: str) -> str:
    """One that no repetition of a test has used."""
    return f"{name}-{uuid4().hex[:8]}"


class Cluster:
    """Its accounts and their rights."""

    def __init__(self, cluster: ControlPlane) -> None:
        self.control = cluster
        self._server = ApiServer(configuration(cluster.kubeconfig))

    def namespace(self, name: str) -> None:
        self._server.call("POST", "/api/v1/namespaces", body={"metadata": {"name": name}})

    def account(self, namespace: str, name: str, *rules: Object, everywhere: bool = False) -> str:
        """A new one with these rights; its token."""
        at = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        self._server.call("POST", at, body={"metadata": {"name": name}})
        kind, within = ("ClusterRole", "") if everywhere else ("Role", f"/namespaces/{namespace}")
        metadata = {"name": f"mlflow-{name}"}
        role = {"metadata": metadata, "rules": list(rules)}
        group = {"apiGroup": "rbac.authorization.k8s.io"}
        binding = {
            "metadata": metadata,
            "roleRef": {**group, "kind": kind, **metadata},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        }
        kinds = f"{RBAC}{within}/{kind.lower()}"
        self._server.call("POST", f"{kinds}s", body=role)
        self._server.call("POST", f"{kinds}bindings", body=binding)
        asked = {"spec": {"audiences": []}}
        told = self._server.call("POST", f"{at}/{name}/token", body=asked)
        return str(told["status"]["token"])


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Cluster:
    cluster = Cluster(control_plane)
    for name in (TEAM, OTHER, HOME):
        cluster.namespace(name)
    return cluster


@pytest.fixture(scope="module")
def server(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    token = cluster.account(HOME, "mlflow", *WATCHES, everywhere=True)
    folder = tmp_path_factory.mktemp("mlflow")
    with serving(folder, cluster.control.kubeconfig_of(token)) as server:
        yield server


@pytest.fixture(scope="module")
def tokens(cluster: Cluster) -> dict[str, str]:
    """The tokens of the accounts of each namespace's pods."""
    return {each: cluster.account(each, RUNNER, *ROLE["rules"]) for each in (TEAM, OTHER)}


class Asked:
    """The server, used from this process as any account."""

    def __init__(self, server: MlflowServer, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.url = f"http://127.0.0.1:{server.port}"
        self._folder = folder
        self._patch = patch
        patch.setenv("MLFLOW_TRACKING_URI", self.url)

    def by(self, token: str, workspace: str = TEAM) -> None:
        self._patch.setenv("MLFLOW_TRACKING_TOKEN", token)
        self._patch.setenv("MLFLOW_WORKSPACE", workspace)

    def register(self, name: str, seed: str = "") -> VersionRef:
        """Every operation of a registry."""
        registry, what = open_registry(self._folder), world_model(seed or name)
        model = self._folder / "model"
        model.mkdir(exist_ok=True)
        (model / "weights").write_bytes(b"weights")
        ref = registry.register_world_model(name, what, model)
        assert registry.world_model(ref) == what
        assert registry.world_models_of(what.artifact) == [ref]
        registry.fetch(ref, self._folder / "fetched")
        return ref


def world_model(seed: str) -> WorldModel:
    stage = records.checkpoint("rl", artifact=digest_bytes(seed.encode()))
    return WorldModel(stages=(stage,), report=records.digest("report"))


@pytest.fixture
def asked(server: MlflowServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(server, tmp_path, monkeypatch)


class Driver:
    """The actions of Kubeflow's servers: an experiment, a run in it, and a nested run for each
    attempt.
    """

    def __init__(self, url: str) -> None:
        from mlflow import MlflowClient

        self.client = MlflowClient(url, url)
        name = f"a pipeline {len(self.client.search_experiments())}"
        self.experiment = self.client.create_experiment(name)
        self._run = self.client.create_run(self.experiment).info.run_id

    def open_run(self) -> dict[str, str]:
        """The variables that name a new run."""
        under = {"mlflow.parentRunId": self._run}
        made = self.client.create_run(self.experiment, run_name="register", tags=under)
        return {"MLFLOW_RUN_ID": made.info.run_id, "MLFLOW_EXPERIMENT_ID": self.experiment}


def closed_run(store: Path) -> AgentRun:
    """A run of an episode, in a simulator that is pinned in the store."""
    simulator = records.pinned(store).digest
    with closing(make.service.ledger(store)) as ledger:
        run = ledger.open_run(make.ledger.OPENING, simulator)
        episode = make.ledger.open_episode(ledger, run.id, simulator)
        ledger.write(make.ledger.taken(episode, "[0] ~"))
        return ledger.close_run(run.id, make.ledger.closing("trained"))


def finished(store: Path, seed: str) -> dict[str, list[str]]:
    """The outputs of the steps before the registrations, as the arguments of these."""
    run, weights = closed_run(store), records.digest("trained")
    rl = records.checkpoint("rl", artifact=records.digest(seed))
    stages = {"cpt": records.checkpoint("cpt"), "sft": records.checkpoint("sft"), "rl": rl}
    known = {"parents": [run.opening.starting_weights], "simulator": run.simulator}
    stages["agent"] = records.checkpoint("agent", artifact=weights, **known)
    folders = {}
    for name, made in stages.items():
        folders[name] = records.finished_step(store, name, made.artifact)
        made.write(folders[name] / CHECKPOINT)
        (folders[name] / "model").mkdir()
        (folders[name] / "model/weights").write_bytes(b"weights")
    Practice(run=run, live_steps=0).write(folders["agent"] / PRACTICE)
    folders["closed"] = records.finished_step(store, "close_run", run.digest)
    run.write(folders["closed"] / RUN)
    for name, report in {"report": records.world_report(), "tried": records.agent_report()}.items():
        folders[name] = records.finished_step(store, name, report.digest, agent=weights)
        report.write(folders[name] / REPORT)
    told = {name: str(folder) for name, folder in folders.items()}
    return {
        "register": ["smoke", str(store), told["report"], told["cpt"], told["sft"], told["rl"]],
        "register_agent": ["smoke", str(store), told["agent"], told["closed"], told["tried"]],
    }


def tried(
    folder: Path, told: object, token: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Both steps by a process that has a pod's account and these variables."""
    (folder / "steps.py").write_text(STEPS)
    files = f"printf %s {token} >{ACCOUNT}/token && printf %s {TEAM} >{ACCOUNT}/namespace"
    script = f"mount -t tmpfs tmpfs /run && mkdir -p {ACCOUNT} && {files} && exec"
    program = [sys.executable, folder / "steps.py", json.dumps(told)]
    kept = {name: each for name, each in os.environ.items() if not name.startswith("MLFLOW")}
    given = {"MLFLOW_TRACKING_AUTH": "kubernetes-namespaced", **variables}
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", f'{script} "$@"', "sh", *program],
        env={**kept, "PYTHONPATH": os.pathsep.join(sys.path), **given},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )


def registered(folder: Path, told: object, token: str, **variables: str) -> list[Path]:
    """The folders of both steps, which leave the environment as it was."""
    done = tried(folder, told, token, **variables)
    assert done.returncode == 0, done.stderr
    made, is_environment_kept = json.loads(done.stdout.splitlines()[-1])
    assert is_environment_kept
    return [Path(each) for each in made]


@pytest.mark.parametrize("named", [{"MLFLOW_WORKSPACE": TEAM}, {}], ids=["named", "of the pod"])
def test_repeated_steps_make_each_version_once_linked_to_the_first_tasks_run(
    tmp_path: Path, asked: Asked, tokens: dict[str, str], named: dict[str, str]
) -> None:
    asked.by(tokens[TEAM])
    driver, arguments = Driver(asked.url), finished(tmp_path, unique("named"))
    at = {"MLFLOW_TRACKING_URI": asked.url, **named}
    tasks = [driver.open_run(), driver.open_run()]
    runs = [task["MLFLOW_RUN_ID"] for task in tasks]
    untouched = [driver.client.get_run(run).to_dictionary() for run in runs]
    made = []
    for task in tasks:
        worlds, agents = registered(tmp_path, arguments, tokens[TEAM], **at, **task)
        made.append([VersionRef.read(worlds / VERSION), TrainedAgent.read(agents / AGENT).version])
        for folder in (worlds, agents):  # as if it had been killed just before its end
            (folder / "receipt.json").unlink()
    assert made[0] == made[1]
    assert [driver.client.get_run(run).to_dictionary() for run in runs] == untouched
    version = driver.client.get_model_version(made[0][0].name, str(made[0][0].version))
    ours = driver.client.get_run(version.run_id)
    assert version.tags["agentworld.kubeflow_run"] == runs[0]
    assert ours.data.tags["agentworld.kubeflow_run"] == runs[0]
    assert ours.data.tags["mlflow.parentRunId"] == runs[0]
    assert (ours.info.experiment_id, ours.info.status) == (driver.experiment, "FINISHED")
    assert ours.info.user_id == f"system:serviceaccount:{TEAM}:{RUNNER}"


def test_namespaces_do_not_see_each_others_versions_and_number_their_own(
    asked: Asked, tokens: dict[str, str]
) -> None:
    asked.by(tokens[TEAM])
    shared, first, second = unique("shared"), unique("first"), unique("second")
    mine = [asked.register(shared, seed) for seed in (first, second)]
    asked.by(tokens[OTHER], OTHER)
    theirs = open_registry(Path("unused"))
    assert theirs.world_models_of(world_model(first).artifact) == []
    with pytest.raises(NotFound, match=f"nothing is registered as '{shared}'; "):
        theirs.world_model(mine[0])
    assert [*mine, asked.register(shared, first)] == [
        VersionRef(name=shared, version=version) for version in (1, 2, 1)
    ]


@pytest.mark.parametrize(
    ("rights", "workspace", "why"),
    [
        ([], TEAM, "PERMISSION_DENIED: Permission denied for requested operation"),
        (ROLE["rules"], OTHER, "PERMISSION_DENIED: Permission denied for requested operation"),
        (ROLE["rules"], "nowhere", "RESOURCE_DOES_NOT_EXIST: Workspace 'nowhere' not found .*"),
        (None, TEAM, "UNAUTHENTICATED: .* token may be invalid or expired"),
    ],
    ids=["no rights", "another namespace", "no namespace", "nobody's token"],
)
def test_an_account_without_rights_gets_a_non_retryable_error_with_the_reason(
    asked: Asked, cluster: Cluster, rights: list[Object] | None, workspace: str, why: str
) -> None:
    known = rights is not None and cluster.account(TEAM, unique("visitor"), *rights)
    asked.by(known or "nobodys.token.x", workspace)
    with pytest.raises(StoreError) as failed:
        asked.register("refused")
    assert re.fullmatch(
        f"the registry {asked.url} refused: {why}; "
        f"check the account's token and its rights in workspace '{workspace}'",
        str(failed.value),
    )
    assert not failed.value.retryable


def test_the_error_of_a_refused_pod_contains_its_own_namespace(
    tmp_path: Path, asked: Asked, cluster: Cluster
) -> None:
    token = cluster.account(TEAM, unique("nobody"))
    done = tried(tmp_path, finished(tmp_path, "rl"), token, MLFLOW_TRACKING_URI=asked.url)
    *_, last = done.stderr.splitlines()
    assert last.startswith(f"agentworld.errors.StoreError: the registry {asked.url} refused: ")
    assert last.endswith(f"rights in workspace '{TEAM}'")


RIGHTS = [
    (kind, verb) for rule in ROLE["rules"] for kind in rule["resources"] for verb in rule["verbs"]
]


@pytest.mark.parametrize(("kind", "verb"), RIGHTS, ids=lambda each: each)
def test_every_right_of_the_guides_role_is_needed(
    asked: Asked, cluster: Cluster, kind: str, verb: str
) -> None:
    fewer = [
        {"apiGroups": ["mlflow.kubeflow.org"], "resources": [each], "verbs": [right]}
        for each, right in RIGHTS
        if (each, right) != (kind, verb)
    ]
    namespace = unique(f"less-{kind}-{verb}")
    cluster.namespace(namespace)
    asked.by(cluster.account(namespace, RUNNER, *fewer), namespace)
    with pytest.raises(StoreError, match=f"refused: .* in workspace '{namespace}'"):
        asked.register("less")


def test_an_api_server_that_is_down_is_an_outage_and_no_refusal(
    asked: Asked, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked.by(cluster.account(TEAM, unique("patient"), *ROLE["rules"]))
    monkeypatch.setenv("AGENTWORLD_MLFLOW_PATIENCE_SECONDS", "1")
    with (
        cluster.control.outage(),
        pytest.raises(StoreError, match=f"the registry {asked.url} did not respond for . s: "),
    ):
        asked.register(unique("patient"))
    assert asked.register(unique("patient")).version == 1
