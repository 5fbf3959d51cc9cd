"""The chart on real nodes: agents continue through kills, a drain and an upgrade."""

import json
import re
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

import make.chart
from agentworld.audit.checks.run import verify_run
from agentworld.audit.read.evidence import Evidence
from agentworld.cluster.api_resources import API_RESOURCES
from agentworld.ledger import Ledger
from agentworld.statements.mounted_keys import read_trusted_keys
from agentworld.storage.objects import ObjectStore, WriteOnce
from agentworld_operator.policy.engine import VERIFIER
from cluster.rows import Rows
from fakes import file_server
from make import bounds, older_chart, records
from make.operator import OLDER_BUDGETS
from make.release import (
    AGENT,
    NAME,
    NAMESPACE,
    Agents,
    claimed_weights,
    drain,
    installed,
    manifest,
    shared_claim,
    simulator,
    values,
)
from make.simulator import alias, schedule
from waiting import wait_for

pytestmark = [pytest.mark.waits, pytest.mark.ordered]

SECONDS = 300.0

# Rights without a request in the audit log: the server checks them for an apply that creates an
# object or that sets an owner. A namespace is read where a Simulator in use is deleted; a test with
# exactly these rights covers that.
UNLOGGED_RIGHTS = {
    "operator": {
        ("", "configmaps", "create"),
        ("", "services", "create"),
        ("apps", "deployments", "create"),
        ("policy", "poddisruptionbudgets", "create"),
        ("agentworld.dev", "simulators/finalizers", "update"),
        ("", "namespaces", "get"),
    },
    "service": set(),
    "secrets": set(),
}


@pytest.fixture(scope="module")
def release(cluster, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(API_RESOURCES, "PodDisruptionBudget", OLDER_BUDGETS)
        with installed(cluster, tmp_path_factory.mktemp("release")) as release:
            yield release


class Source(NamedTuple):
    """The source of weights."""

    url: str
    folder: Path
    log: Path

    def files_not_read_once(self) -> list[str]:
        """Files of which pods requested a byte twice, or not at all."""
        return file_server.files_not_read_once(self.folder, file_server.read_log(self.log))


@pytest.fixture(scope="module")
def source(release, tiny_model):
    with release.cluster.serving(tiny_model) as (url, log):
        yield Source(url, tiny_model, log)


@pytest.fixture(scope="module")
def worlds(release, tiny_model, source):
    """Two versions of a world: a permanent one, whose replicas share one fetch, and one whose
    engine starts on demand.
    """
    claimed_weights(release, tiny_model)
    shared_claim(release, "models")
    first, second = manifest(tiny_model, "one"), manifest(tiny_model, "two")
    # The engines start beside MLflow and the console.
    weights = {"url": source.url, "cache": "models"}
    release.create(simulator("one", first, replicas=2, weights=weights))
    bounds = {"min": 0, "max": 1, "idleSeconds": 600}
    release.create(simulator("two", second, bounds=bounds))
    wait_for(lambda: ready_condition(release, "one") == ("True", "Serving"), SECONDS)
    wait_for(
        lambda: release.namespace.get("Simulator", "one")["status"]["readyReplicas"] == 2, SECONDS
    )
    wait_for(release.is_up, SECONDS)
    release.namespace.create(alias("one"))
    release.namespace.create(schedule())  # without a server that could start it
    expected = {"Scheduled": ("False", "NotConfigured"), "Degraded": ("False", "AsWanted")}
    wait_for(lambda: release.namespace.conditions("nightly", "TrainingSchedule") == expected)
    return first.digest, second.digest


@pytest.fixture(scope="module")
def agents(release, worlds):  # noqa: ARG001 - the alias means one of them
    """Agents, one of which opened its run before the first test."""
    agent_group = Agents(release.url, "stable")
    agent_group.open()
    yield agent_group
    agent_group.close()


def ready_condition(release, name):
    return release.namespace.conditions(name).get("Ready")


@pytest.mark.usefixtures("worlds")
def test_mlflow_is_up_stores_experiments_and_rejects_foreign_hosts(release):
    mlflow = release.core.read_namespaced_service(f"{NAME}-mlflow", NAMESPACE).spec.cluster_ip
    with release.cluster.reached(mlflow, 5000) as host:
        url = f"http://{host}/api/2.0/mlflow/experiments"
        headers = {"Host": f"{NAME}-mlflow:5000"}
        creation = httpx.post(f"{url}/create", json={"name": "first"}, headers=headers)
        assert creation.is_success, creation.text
        lookup = httpx.get(f"{url}/get-by-name?experiment_name=first", headers=headers)
        assert lookup.json()["experiment"]["experiment_id"] == creation.json()["experiment_id"]
        rejection = httpx.post(f"{url}/create", json={}, headers={"Host": "evil.example"})
        assert rejection.status_code == 403


@pytest.mark.usefixtures("worlds")
def test_the_release_runs_in_a_namespace_with_a_quota_and_limits(release):
    assert release.is_up()
    usage = bounds.used(release.namespace)
    names = ("operator", "service", "database", "mlflow", "console", "engine")
    pods = [pod for name in names for pod in release.pods(name)]
    assert int(usage["pods"]) >= len(pods) >= 9
    assert usage.keys() == bounds.HARD.keys()


@pytest.mark.usefixtures("worlds")
def test_the_console_is_up_and_requires_a_credential(release):
    console = release.core.read_namespaced_service(f"{NAME}-console", NAMESPACE).spec.cluster_ip
    with release.cluster.reached(console, 8090) as host:
        assert httpx.get(f"http://{host}/healthz").text == "ok"
        assert httpx.get(f"http://{host}/runs").status_code == 401
        headers = {"Authorization": f"Bearer {AGENT}"}
        assert httpx.get(f"http://{host}/runs", headers=headers).status_code == 200


def test_a_simulator_is_ready_once_its_weights_were_verified(release, worlds):
    conditions = release.namespace.conditions("one")
    assert conditions["Verified"] == ("True", "FilesMatch")
    assert conditions["Ready"] == ("True", "Serving")
    assert release.namespace.get("Simulator", "one")["status"]["digest"] == worlds[0]


def test_engine_replicas_are_spread_over_the_nodes(release, worlds):
    assert len(worlds) == 2
    assert len(release.pods("engine", "node-1")) == len(release.pods("engine", "node-2")) == 1


@pytest.mark.usefixtures("worlds")
def test_one_replica_fetches_the_weights_and_the_other_reuses_them(release, source):
    assert source.files_not_read_once() == []
    read_log = partial(
        release.core.read_namespaced_pod_log, namespace=NAMESPACE, container=VERIFIER
    )
    logs = [read_log(pod) for pod in release.pods("engine")]
    messages = sorted(re.search(r"\d+ files, (.+) in [\d.]+ s$", log, re.M)[1] for log in logs)
    assert messages == ["fetched and checked", "unchanged since their check, looked at"]


@pytest.mark.usefixtures("worlds")
def test_a_request_without_a_key_is_rejected(release):
    assert httpx.get(f"{release.url}/runs/any").status_code == 401


def test_episodes_are_answered_through_the_service(agents):
    agents.played(9)
    assert agents.failures == []


def test_a_run_is_opened_by_a_digest(release, worlds):
    opening = {"agent": "a", "starting_weights": worlds[0], "simulator": worlds[0]}
    headers = {"Authorization": f"Bearer {AGENT}"}
    answer = httpx.post(f"{release.url}/runs", json=opening, headers=headers)
    assert answer.json()["run"]["simulator"] == worlds[0]


def test_an_alias_moves_past_its_gate_while_a_run_is_open(release, worlds, agents):
    folder = release.folder / "agentworld-stores/objects"
    gain = records.estimate(0.4)
    agent_report = records.agent_report(simulator=worlds[1], live_gain=gain)
    report = ObjectStore(str(folder)).put(agent_report.canonical)
    # The service writes there at the same time: only the test's own file and folder are changed.
    (path,) = folder.rglob(report.removeprefix("sha256:"))
    path.chmod(0o644)
    path.parent.chmod(0o777)
    gate = [{"metric": "live_gain", "least": 0.3}]
    spec = {"simulator": "two", "report": report, "gate": gate}
    release.namespace.patch("SimulatorAlias", "stable", {"spec": spec})
    agents.open()  # waits in the service until the second engine has started
    agents.played(9)
    assert agents.failures == []
    assert sorted(agents.runs.values()) == sorted(worlds)


@pytest.mark.parametrize("component", ["service", "operator", "engine"])
def test_agents_continue_after_a_pod_is_killed(release, agents, component):
    pod = release.pods(component)[0]
    release.kill(pod)
    agents.played(12)
    assert agents.failures == []


def test_agents_continue_and_no_row_is_lost_after_the_database_is_killed(release, agents):
    with database(release) as url, Rows(url) as rows:
        for number in range(3):
            wait_for(lambda number=number: len(rows.servers) > number, SECONDS)
            before = len(rows.answered)
            wait_for(lambda before=before: len(rows.answered) > before + 100, SECONDS)
            release.kill(release.pods("database")[0])
        wait_for(lambda: len(rows.servers) > 3, SECONDS)
        assert rows.lost() == set()
    agents.played(12)
    assert agents.failures == []


@contextmanager
def database(release):
    """The address of the release's ledger, on this machine's loopback."""
    url = release.secret(f"{NAME}-database")["agentworld-url"]
    service = release.core.read_namespaced_service(f"{NAME}-database", NAMESPACE)
    with release.cluster.reached(service.spec.cluster_ip, 5432) as host:
        yield url.replace(f"{NAME}-database", host)


def test_agents_continue_while_a_node_is_drained(release, agents):
    drain(release, "node-1")
    agents.played(12)
    assert agents.failures == []
    release.core.patch_node("node-1", {"spec": {"unschedulable": False}})


def test_agents_continue_while_the_release_is_upgraded(release, agents):
    engines = release.pods("engine")
    with release.helm() as helm:
        chart = older_chart.older(release.folder / "now")
        new_values = values(operator=values()["operator"] | {"leaseSeconds": 5})
        new_values["service"] = new_values["service"] | {"idleSeconds": 3000}
        helm.upgrade(chart, NAME, new_values, timeout=int(SECONDS), wait="watcher")
    agents.played(12)
    assert agents.failures == []
    assert release.pods("engine") == engines


@pytest.mark.usefixtures("agents")
def test_no_later_pod_fetches_the_weights_again(source):
    assert source.files_not_read_once() == []


def test_every_run_has_one_simulator_and_a_verified_record(release, worlds, agents):
    agents.close()
    assert agents.failures == []
    stores = release.folder / "agentworld-stores"
    with database(release) as url:
        ledger = Ledger(url, ObjectStore(str(stores / "objects")))
        evidence = Evidence(
            read_trusted_keys(ledger.signing_keys), WriteOnce(str(stores / "mirror"))
        )
        for run, simulator in agents.runs.items():
            wait_for(lambda run=run: verify_run(run, ledger, evidence).grade == "verified")
            assert ledger.run(run).simulator == simulator
            assert ledger.run(run).num_steps >= 3
        (key,) = ledger.signing_keys.all()
        assert key.until is None
        history = [(change.simulator, change.set_by) for change in ledger.aliases.history("stable")]
        assert history == [(worlds[0], "admin"), (worlds[1], "admin")]
        ledger.close()


@pytest.mark.parametrize("component", ["operator", "service", "secrets"])
@pytest.mark.usefixtures("agents")
def test_the_rights_of_an_account_equal_its_requests_in_the_audit_log(release, component):
    """The API server's audit log, compared with the chart's rights."""
    account = f"system:serviceaccount:{NAMESPACE}:{NAME}-{component}"
    audit = release.cluster.control.folder / "audit.log"
    requests = set()
    for line in audit.read_text().splitlines():
        event = json.loads(line)
        if event["user"]["username"] == account and "objectRef" in event:
            requests.add(right_of(event["objectRef"], event["verb"]))
    assert requests | UNLOGGED_RIGHTS[component] == chart_rights(component)


def right_of(resource, verb):
    name = (
        f"{resource['resource']}/{resource['subresource']}"
        if "subresource" in resource
        else resource["resource"]
    )
    return resource.get("apiGroup", ""), name, verb


def chart_rights(component):
    rules = [
        rule
        for item in make.chart.objects(namespace=NAMESPACE)
        if item["kind"] in ("Role", "ClusterRole")
        and item["metadata"]["labels"]["app.kubernetes.io/component"] == component
        for rule in item["rules"]
    ]
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.usefixtures("agents")
def test_an_uninstall_keeps_secrets_and_simulators(release):
    with release.helm() as helm:
        helm.uninstall(NAME, timeout=120, wait="watcher")
    secret_names = {
        secret.metadata.name for secret in release.core.list_namespaced_secret(NAMESPACE).items
    }
    assert {f"{NAME}-{name}" for name in ("keys", "database")} <= secret_names
    assert release.namespace.names("Simulator") == ["one", "two"]


@pytest.mark.usefixtures("agents")
def test_the_namespace_can_be_deleted_with_its_content(release):
    release.core.delete_namespace(NAMESPACE)
    list_namespaces = release.core.list_namespace
    wait_for(
        lambda: NAMESPACE not in [namespace.metadata.name for namespace in list_namespaces().items],
        SECONDS,
    )
