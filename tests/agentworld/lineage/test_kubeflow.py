"""The registrations of steps in the MLflow server of Kubeflow.

The server is MLflow's own with Kubeflow's released plugin: its workspaces are the namespaces of a
real API server, which authenticates tokens and authorizes accounts. A step has the files of its
account where a pod has them, in a separate mount namespace; the tests open the runs of Kubeflow's
driver and set the variables that name them, as the driver's source does.
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

pytestmark = pytest.mark.waits  # as root, since it mounts file systems

TEAM, OTHER_TEAM, HOME = "worlds-a", "worlds-b", "worlds-mlflow"
RUNNER = "pipeline-runner"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLE = guide_role("agentworld-registry")
# The rights of the server's account in the plugin's own documents.
SERVER_RULES = [
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]},
    {
        "apiGroups": ["mlflow.kubeflow.org"],
        "resources": ["mlflowconfigs"],
        "verbs": ["list", "watch"],
    },
]
ACCOUNT_PATH = "/run/secrets/kubernetes.io/serviceaccount"
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
    """A name that no repetition of a test has used."""
    return f"{name}-{uuid4().hex[:8]}"


class Cluster:
    """A cluster's accounts and their rights."""

    def __init__(self, cluster: ControlPlane) -> None:
        self.control = cluster
        self._server = ApiServer(configuration(cluster.kubeconfig))

    def namespace(self, name: str) -> None:
        self._server.call("POST", "/api/v1/namespaces", body={"metadata": {"name": name}})

    def account(self, namespace: str, name: str, *rules: Object, everywhere: bool = False) -> str:
        """Creates an account with these rights; returns its token."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        self._server.call("POST", path, body={"metadata": {"name": name}})
        kind, scope = ("ClusterRole", "") if everywhere else ("Role", f"/namespaces/{namespace}")
        metadata = {"name": f"mlflow-{name}"}
        role = {"metadata": metadata, "rules": list(rules)}
        group = {"apiGroup": "rbac.authorization.k8s.io"}
        binding = {
            "metadata": metadata,
            "roleRef": {**group, "kind": kind, **metadata},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        }
        kinds = f"{RBAC}{scope}/{kind.lower()}"
        self._server.call("POST", f"{kinds}s", body=role)
        self._server.call("POST", f"{kinds}bindings", body=binding)
        body = {"spec": {"audiences": []}}
        response = self._server.call("POST", f"{path}/{name}/token", body=body)
        return str(response["status"]["token"])


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Cluster:
    cluster = Cluster(control_plane)
    for name in (TEAM, OTHER_TEAM, HOME):
        cluster.namespace(name)
    return cluster


@pytest.fixture(scope="module")
def server(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    token = cluster.account(HOME, "mlflow", *SERVER_RULES, everywhere=True)
    folder = tmp_path_factory.mktemp("mlflow")
    with serving(folder, cluster.control.kubeconfig_of(token)) as server:
        yield server


@pytest.fixture(scope="module")
def tokens(cluster: Cluster) -> dict[str, str]:
    """The tokens of the accounts of each namespace's pods."""
    return {name: cluster.account(name, RUNNER, *ROLE["rules"]) for name in (TEAM, OTHER_TEAM)}


class AccountClient:
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
        """Uses every operation of a registry."""
        registry, world = open_registry(self._folder), world_model(seed or name)
        model = self._folder / "model"
        model.mkdir(exist_ok=True)
        (model / "weights").write_bytes(b"weights")
        ref = registry.register_world_model(name, world, model)
        assert registry.world_model(ref) == world
        assert registry.world_models_of(world.artifact) == [ref]
        registry.fetch(ref, self._folder / "fetched")
        return ref


def world_model(seed: str) -> WorldModel:
    stage = records.checkpoint("rl", artifact=digest_bytes(seed.encode()))
    return WorldModel(stages=(stage,), report=records.digest("report"))


@pytest.fixture
def client(server: MlflowServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AccountClient:
    return AccountClient(server, tmp_path, monkeypatch)


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
        """Opens a run; returns the variables that name it."""
        tags = {"mlflow.parentRunId": self._run}
        run = self.client.create_run(self.experiment, run_name="register", tags=tags)
        return {"MLFLOW_RUN_ID": run.info.run_id, "MLFLOW_EXPERIMENT_ID": self.experiment}


def closed_run(store: Path) -> AgentRun:
    """A run of an episode, in a simulator that is pinned in the store."""
    simulator = records.pinned(store).digest
    with closing(make.service.ledger(store)) as ledger:
        run = ledger.open_run(make.ledger.OPENING, simulator)
        episode = make.ledger.open_episode(ledger, run.id, simulator)
        ledger.write(make.ledger.taken(episode, "[0] ~"))
        return ledger.close_run(run.id, make.ledger.closing("trained"))


def prepare(store: Path, seed: str) -> dict[str, list[str]]:
    """The outputs of the steps before the registrations, as the registrations' arguments."""
    run, weights = closed_run(store), records.digest("trained")
    rl = records.checkpoint("rl", artifact=records.digest(seed))
    stages = {"cpt": records.checkpoint("cpt"), "sft": records.checkpoint("sft"), "rl": rl}
    fields = {"parents": [run.opening.starting_weights], "simulator": run.simulator}
    stages["agent"] = records.checkpoint("agent", artifact=weights, **fields)
    folders = {}
    for name, checkpoint in stages.items():
        folders[name] = records.finished_step(store, name, checkpoint.artifact)
        checkpoint.write(folders[name] / CHECKPOINT)
        (folders[name] / "model").mkdir()
        (folders[name] / "model/weights").write_bytes(b"weights")
    Practice(run=run, live_steps=0).write(folders["agent"] / PRACTICE)
    folders["closed"] = records.finished_step(store, "close_run", run.digest)
    run.write(folders["closed"] / RUN)
    for name, report in {"report": records.world_report(), "tried": records.agent_report()}.items():
        folders[name] = records.finished_step(store, name, report.digest, agent=weights)
        report.write(folders[name] / REPORT)
    paths = {name: str(folder) for name, folder in folders.items()}
    return {
        "register": ["smoke", str(store), paths["report"], paths["cpt"], paths["sft"], paths["rl"]],
        "register_agent": ["smoke", str(store), paths["agent"], paths["closed"], paths["tried"]],
    }


def run_steps(
    folder: Path, arguments: object, token: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs both steps in a process with a pod's account and these variables."""
    (folder / "steps.py").write_text(STEPS)
    files = f"printf %s {token} >{ACCOUNT_PATH}/token && printf %s {TEAM} >{ACCOUNT_PATH}/namespace"
    script = f"mount -t tmpfs tmpfs /run && mkdir -p {ACCOUNT_PATH} && {files} && exec"
    program = [sys.executable, folder / "steps.py", json.dumps(arguments)]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW")}
    settings = {"MLFLOW_TRACKING_AUTH": "kubernetes-namespaced", **variables}
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", f'{script} "$@"', "sh", *program],
        env={**inherited, "PYTHONPATH": os.pathsep.join(sys.path), **settings},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )


def register_both(folder: Path, arguments: object, token: str, **variables: str) -> list[Path]:
    """The folders of both steps, which leave the environment unchanged."""
    process = run_steps(folder, arguments, token, **variables)
    assert process.returncode == 0, process.stderr
    folders, is_environment_kept = json.loads(process.stdout.splitlines()[-1])
    assert is_environment_kept
    return [Path(path) for path in folders]


@pytest.mark.parametrize("variables", [{"MLFLOW_WORKSPACE": TEAM}, {}], ids=["named", "of the pod"])
def test_repeated_steps_make_each_version_once_linked_to_the_first_tasks_run(
    tmp_path: Path, client: AccountClient, tokens: dict[str, str], variables: dict[str, str]
) -> None:
    client.by(tokens[TEAM])
    driver, arguments = Driver(client.url), prepare(tmp_path, unique("named"))
    settings = {"MLFLOW_TRACKING_URI": client.url, **variables}
    tasks = [driver.open_run(), driver.open_run()]
    runs = [task["MLFLOW_RUN_ID"] for task in tasks]
    driver_runs = [driver.client.get_run(run).to_dictionary() for run in runs]
    refs = []
    for task in tasks:
        worlds, agents = register_both(tmp_path, arguments, tokens[TEAM], **settings, **task)
        refs.append([VersionRef.read(worlds / VERSION), TrainedAgent.read(agents / AGENT).version])
        for folder in (worlds, agents):  # as if the step was killed just before its end
            (folder / "receipt.json").unlink()
    assert refs[0] == refs[1]
    assert [driver.client.get_run(run).to_dictionary() for run in runs] == driver_runs
    version = driver.client.get_model_version(refs[0][0].name, str(refs[0][0].version))
    step_run = driver.client.get_run(version.run_id)
    assert version.tags["agentworld.kubeflow_run"] == runs[0]
    assert step_run.data.tags["agentworld.kubeflow_run"] == runs[0]
    assert step_run.data.tags["mlflow.parentRunId"] == runs[0]
    assert (step_run.info.experiment_id, step_run.info.status) == (driver.experiment, "FINISHED")
    assert step_run.info.user_id == f"system:serviceaccount:{TEAM}:{RUNNER}"


def test_namespaces_do_not_see_each_others_versions_and_number_their_own(
    client: AccountClient, tokens: dict[str, str]
) -> None:
    client.by(tokens[TEAM])
    shared, first, second = unique("shared"), unique("first"), unique("second")
    refs = [client.register(shared, seed) for seed in (first, second)]
    client.by(tokens[OTHER_TEAM], OTHER_TEAM)
    other_registry = open_registry(Path("unused"))
    assert other_registry.world_models_of(world_model(first).artifact) == []
    with pytest.raises(NotFound, match=f"nothing is registered as '{shared}'; "):
        other_registry.world_model(refs[0])
    assert [*refs, client.register(shared, first)] == [
        VersionRef(name=shared, version=version) for version in (1, 2, 1)
    ]


@pytest.mark.parametrize(
    ("rights", "workspace", "cause"),
    [
        ([], TEAM, "PERMISSION_DENIED: Permission denied for requested operation"),
        (ROLE["rules"], OTHER_TEAM, "PERMISSION_DENIED: Permission denied for requested operation"),
        (ROLE["rules"], "nowhere", "RESOURCE_DOES_NOT_EXIST: Workspace 'nowhere' not found .*"),
        (None, TEAM, "UNAUTHENTICATED: .* token may be invalid or expired"),
    ],
    ids=["no rights", "another namespace", "no namespace", "nobody's token"],
)
def test_an_account_without_rights_gets_a_non_retryable_error_with_the_reason(
    client: AccountClient, cluster: Cluster, rights: list[Object] | None, workspace: str, cause: str
) -> None:
    token = rights is not None and cluster.account(TEAM, unique("visitor"), *rights)
    client.by(token or "nobodys.token.x", workspace)
    with pytest.raises(StoreError) as error:
        client.register("refused")
    assert re.fullmatch(
        f"the registry {client.url} refused: {cause}; "
        f"check the account's token and its rights in workspace '{workspace}'",
        str(error.value),
    )
    assert not error.value.retryable


def test_the_error_of_a_refused_pod_contains_its_own_namespace(
    tmp_path: Path, client: AccountClient, cluster: Cluster
) -> None:
    token = cluster.account(TEAM, unique("nobody"))
    process = run_steps(tmp_path, prepare(tmp_path, "rl"), token, MLFLOW_TRACKING_URI=client.url)
    *_, line = process.stderr.splitlines()
    assert line.startswith(f"agentworld.errors.StoreError: the registry {client.url} refused: ")
    assert line.endswith(f"rights in workspace '{TEAM}'")


RIGHTS = [
    (kind, verb) for rule in ROLE["rules"] for kind in rule["resources"] for verb in rule["verbs"]
]


@pytest.mark.parametrize(("kind", "verb"), RIGHTS, ids=lambda name: name)
def test_every_right_of_the_guides_role_is_needed(
    client: AccountClient, cluster: Cluster, kind: str, verb: str
) -> None:
    rules = [
        {"apiGroups": ["mlflow.kubeflow.org"], "resources": [other_kind], "verbs": [other_verb]}
        for other_kind, other_verb in RIGHTS
        if (other_kind, other_verb) != (kind, verb)
    ]
    namespace = unique(f"less-{kind}-{verb}")
    cluster.namespace(namespace)
    client.by(cluster.account(namespace, RUNNER, *rules), namespace)
    with pytest.raises(StoreError, match=f"refused: .* in workspace '{namespace}'"):
        client.register("less")


def test_an_api_server_that_is_down_is_an_outage_and_no_refusal(
    client: AccountClient, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.by(cluster.account(TEAM, unique("patient"), *ROLE["rules"]))
    monkeypatch.setenv("AGENTWORLD_MLFLOW_PATIENCE_SECONDS", "1")
    with (
        cluster.control.outage(),
        pytest.raises(StoreError, match=rf"{client.url} did not respond for \d+ s: "),
    ):
        client.register(unique("patient"))
    assert client.register(unique("patient")).version == 1
