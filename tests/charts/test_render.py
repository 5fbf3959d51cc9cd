"""The whole rendered chart: unchanged, and valid for Kubernetes."""

import subprocess
from base64 import b64decode

import pytest
import yaml
from cryptography import x509
from helm_python.errors import HelmRenderError

import make.chart
from agentworld.operations.registry import RegistrySettings
from agentworld.serving.main import ServiceSettings
from agentworld.storage.stores import Stores
from agentworld_console.settings import ConsoleSettings
from agentworld_operator.first_secrets import SecretSettings
from agentworld_operator.settings import OperatorSettings, WebhookSettings
from agentworld_pipelines.settings import ServerSettings
from machines import prometheus
from machines.kubernetes_types import check_schema
from make.chart import EVERYTHING, EXTERNAL, GOLDEN, VALUES

CONSOLE = {"console": {"enabled": True}}
_CONSOLE_NAMES = {"agentworld-console", "agentworld-worlds-console"}
_BACKUP_NAMES = {"agentworld-backup", "agentworld-restore"}


@pytest.mark.waits
def test_the_chart_with_everything_enabled_renders_as_the_golden_file():
    """`make golden` rewrites the file; read the diff."""
    assert make.chart.golden() == GOLDEN.read_text()


def test_default_values_render_a_one_node_trial_without_optional_objects():
    default_objects = make.chart.objects()
    default_names, all_names = (
        {(item["kind"], item["metadata"]["name"]) for item in objects}
        for objects in (default_objects, make.chart.objects(EVERYTHING))
    )
    # Where no issuer is named, Helm makes the webhook's certificate itself.
    default_names.remove(("Secret", "agentworld-webhook"))
    assert default_names < all_names
    optional_names = (
        all_names
        - default_names
        - {(kind, name) for kind, name in all_names if "definitions" in name}
    )
    assert {name for name in optional_names if name[1] not in _CONSOLE_NAMES | _BACKUP_NAMES} == {
        ("Certificate", "agentworld-tls"),
        ("Certificate", "agentworld-webhook"),
        ("ConfigMap", "agentworld-dashboard"),
        ("ConfigMap", "agentworld-placement"),
        ("Ingress", "agentworld"),
        ("ServiceAccount", "agentworld-engine"),
        ("PodDisruptionBudget", "agentworld-service"),
        ("PodMonitor", "agentworld-engine"),
        ("PodMonitor", "agentworld-operator"),
        ("PrometheusRule", "agentworld"),
        ("Role", "agentworld-runs"),
        ("RoleBinding", "agentworld-runs"),
        ("ServiceMonitor", "agentworld-service"),
    }
    assert not [name for _, name in default_names if name in _CONSOLE_NAMES | _BACKUP_NAMES]
    assert (
        make.chart.only(default_objects, "Service", "agentworld-service")["spec"]["type"]
        == "ClusterIP"
    )
    claim = make.chart.only(default_objects, "PersistentVolumeClaim", "agentworld-stores")
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    service = make.chart.pods(default_objects)["service"]
    [rule] = service["spec"]["affinity"]["podAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    assert rule["topologyKey"] == "kubernetes.io/hostname"
    assert rule["labelSelector"]["matchLabels"].items() <= service["metadata"]["labels"].items()


@pytest.mark.waits
@pytest.mark.parametrize("name", ["default", "everything"])
def test_every_object_is_valid_in_every_supported_kubernetes(name):
    for item in make.chart.objects(VALUES[name]):
        if not item["apiVersion"].startswith(("monitoring.coreos.com/", "cert-manager.io/")):
            check_schema(item)


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("release", ["agentworld", "worlds", "x" * 53])
def test_object_names_are_unique_and_short_enough(release, values):
    names = [
        (item["kind"], item["metadata"]["name"]) for item in make.chart.objects(values, release)
    ]
    assert len(set(names)) == len(names)
    cluster_wide = ("ClusterRole", "ClusterRoleBinding", "ValidatingWebhookConfiguration")
    assert all(len(name) <= 63 for kind, name in names if kind not in cluster_wide)


def test_cluster_wide_objects_are_named_after_release_and_namespace():
    for release, namespace in (("agentworld", "a"), ("agentworld", "b"), ("other", "a")):
        objects = make.chart.objects({}, release, namespace)
        for item in objects:
            if item["kind"] in ("ClusterRole", "ClusterRoleBinding"):
                name = release if release == "agentworld" else f"{release}-agentworld"
                assert item["metadata"]["name"].startswith(f"{name}-{namespace}-")


def environment(values, component):
    """The environment of a component's pod."""
    [container] = make.chart.pods(make.chart.objects(values))[component]["spec"]["containers"]
    return {
        variable["name"]: variable.get("value", "from elsewhere") for variable in container["env"]
    }


_SETTINGS = {
    "operator": (OperatorSettings, WebhookSettings, ServerSettings),
    "service": (ServiceSettings,),
    "secrets": (SecretSettings,),
    "console": (ConsoleSettings, Stores, RegistrySettings),
}


@pytest.mark.parametrize(
    ("values", "component"),
    [
        pytest.param(values, component, id=f"{component}-{name}")
        for name, values in {"default": {}, "all": EVERYTHING, "external": EXTERNAL}.items()
        for component in _SETTINGS
        if (component, name) != ("secrets", "external")  # no such pod
    ],
)
def test_each_process_gets_only_environment_variables_that_it_reads(values, component, monkeypatch):
    variables = environment({**CONSOLE, **values}, component)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    read_names = set()
    for kind in _SETTINGS[component]:
        settings, prefix = kind(), kind.model_config["env_prefix"]
        assert settings.model_fields_set or kind is ServerSettings  # a server is optional
        read_names |= {f"{prefix}{field}".upper() for field in kind.model_fields}
    other_names = {"AGENTWORLD_ENGINE_API_KEY", "OTEL_EXPORTER_OTLP_ENDPOINT", "HTTPS_PROXY"}
    assert variables.keys() - read_names - other_names == set()


def test_probes_use_declared_ports_and_the_operator_listens_on_its_declared_ports():
    objects = make.chart.objects(EVERYTHING)
    for template in make.chart.pods(objects).values():
        for container in template["spec"]["containers"]:
            port_names = {port["name"] for port in container.get("ports", ())}
            probes = [probe for key, probe in container.items() if key.endswith("Probe")]
            actions = [
                action for probe in probes for action in probe.values() if isinstance(action, dict)
            ]
            assert {action["port"] for action in actions if "port" in action} <= port_names
    variables = environment(EVERYTHING, "operator")
    ports = make.chart.pods(objects)["operator"]["spec"]["containers"][0]["ports"]
    assert ports == [
        {"name": name, "containerPort": int(variables[f"AGENTWORLD_{name.upper()}_PORT"])}
        for name in ("webhook", "metrics")
    ]


def test_the_console_mounts_stores_read_only_and_mounts_no_secret():
    for values in ({**EVERYTHING, "console": {"enabled": True}}, EVERYTHING):
        spec = make.chart.pods(make.chart.objects(values))["console"]["spec"]
        writable = [
            mount for mount in spec["containers"][0]["volumeMounts"] if "readOnly" not in mount
        ]
        assert [mount["name"] for mount in writable] == ["tmp"]
        assert not [volume for volume in spec["volumes"] if "secret" in volume]
    container = make.chart.pods(make.chart.objects(EVERYTHING))["console"]["spec"]["containers"][0]
    secret_references = {
        variable["name"]: variable["valueFrom"]["secretKeyRef"]
        for variable in container["env"]
        if "valueFrom" in variable
    }
    assert secret_references == {
        "AGENTWORLD_CONSOLE_PROXY_SECRET": {"name": "proxy", "key": "proxy-secret"},
        "AGENTWORLD_LEDGER_URL": {"name": "reader", "key": "agentworld-url"},
    }
    assert container["envFrom"] == [{"secretRef": {"name": "cloud-reader"}}]


def test_the_console_uses_the_configured_or_bundled_mlflow_and_requires_one():
    def mlflow_url(**values):
        return environment({**CONSOLE, **values}, "console")["MLFLOW_TRACKING_URI"]

    assert mlflow_url() == "http://agentworld-mlflow.worlds.svc:5000"
    assert environment(EXTERNAL, "console")["MLFLOW_TRACKING_URI"] == "https://mlflow.example"
    with pytest.raises(
        HelmRenderError, match=r"console\.mlflowUrl is empty and mlflow\.enabled is"
    ):
        mlflow_url(mlflow={"enabled": False})


def test_the_console_is_placed_beside_the_claim_and_rejects_a_one_pod_claim():
    def affinity(values, component):
        return make.chart.pods(make.chart.objects(values))[component]["spec"].get("affinity")

    pod_affinity = affinity(CONSOLE, "service")["podAffinity"]
    assert affinity(CONSOLE, "console") == {"podAffinity": pod_affinity}
    [rule] = pod_affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    labels = rule["labelSelector"]["matchLabels"]
    assert labels["app.kubernetes.io/component"] == "service"
    assert affinity(EVERYTHING, "console") is None
    one_pod = {"stores": {"claim": {"accessMode": "ReadWriteOncePod"}}}
    with pytest.raises(HelmRenderError, match=r"accessMode is ReadWriteOncePod, .* no console"):
        make.chart.files({**CONSOLE, **one_pod})
    assert make.chart.files(one_pod)


def test_external_databases_stores_and_secrets_are_not_created():
    objects = make.chart.objects(EXTERNAL)
    kinds = {item["kind"] for item in objects}
    assert kinds & {"StatefulSet", "PersistentVolumeClaim"} == set()
    assert "secrets" not in make.chart.pods(objects)


def test_without_an_issuer_helm_creates_the_certificate_of_the_webhook():
    objects = make.chart.objects()
    secret = make.chart.only(objects, "Secret", "agentworld-webhook")
    files = secret["data"]
    assert (secret["type"], files.keys()) == ("kubernetes.io/tls", {"ca.crt", "tls.crt", "tls.key"})
    authority, serving = (
        x509.load_pem_x509_certificate(b64decode(files[name])) for name in ("ca.crt", "tls.crt")
    )
    serving.verify_directly_issued_by(authority)
    names = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["agentworld-webhook.worlds.svc"]
    for webhook in make.chart.only(objects, "ValidatingWebhookConfiguration")["webhooks"]:
        assert webhook["clientConfig"]["caBundle"] == files["ca.crt"]


@pytest.mark.waits
def test_the_notes_show_the_addresses_and_the_missing_settings():
    notes = make.chart.files({}, "agentworld", "worlds")["agentworld/templates/NOTES.txt"]
    assert "http://agentworld-service.worlds.svc:8000" in notes
    assert "http://agentworld-mlflow.worlds.svc:5000" in notes
    assert "console" not in notes
    for text in ("No caller may open a run yet", "for a trial", "share a claim"):
        assert text in notes
    files = make.chart.files({**EXTERNAL, "mlflow": {"enabled": False}})
    external_notes = files["agentworld/templates/NOTES.txt"]
    assert "agentworld-service" in external_notes
    assert "http://agentworld-console.worlds.svc:8090" in external_notes
    for text in ("mlflow", "Nobody", "for a trial", "share a claim"):
        assert text not in external_notes
    upgrade_notes = make.chart.files({"definitions": {"upgrade": True}})[
        "agentworld/templates/NOTES.txt"
    ]
    assert "helm show crds" in external_notes
    assert "helm show crds" not in upgrade_notes


def test_objects_kept_after_an_uninstall_have_the_keep_annotation():
    objects = make.chart.objects(EVERYTHING)
    kept_objects = [item for item in objects if "annotations" in item["metadata"]]
    kept_objects = [
        item
        for item in kept_objects
        if "helm.sh/resource-policy" in item["metadata"]["annotations"]
    ]
    assert {(item["kind"], item["metadata"]["name"]) for item in kept_objects} == {
        *make.chart.KEPT,
        ("PersistentVolumeClaim", "agentworld-backup"),
        ("ServiceAccount", "agentworld-engine"),
    }
    assert not [item for item in objects if item["kind"] == "Secret"]


@pytest.mark.waits
def test_prometheus_accepts_the_alert_rules(tmp_path):
    rule_object = make.chart.only(make.chart.objects(EVERYTHING), "PrometheusRule")
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rule_object["spec"]))
    command = [prometheus.program("promtool"), "check", "rules", tmp_path / "rules.yaml"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "9 rules found" in result.stdout, result.stderr


def leader_case(values, *, fires):
    """A test for promtool: whether the alert fires after ten minutes of this series, if any."""
    series = [{"series": "agentworld_operator_leader", "values": values}] if values else []
    alert = {
        "exp_labels": {"severity": "critical"},
        "exp_annotations": {
            "summary": "No replica of the operator leads, or none is scraped",
            "description": "Engines are not scaled, and no change of a resource takes effect.",
        },
    }
    expected = [alert] if fires else []
    return {
        "interval": "1m",
        "input_series": series,
        "alert_rule_test": [
            {"alertname": "AgentworldNobodyLeads", "eval_time": "10m", "exp_alerts": expected}
        ],
    }


@pytest.mark.waits
def test_an_alert_fires_where_no_operator_leads_or_exists(tmp_path):
    cases = [
        leader_case("1x20", fires=False),
        leader_case("0x20", fires=True),
        leader_case("", fires=True),
    ]
    rules = {"rule_files": [str(make.chart.CHART / "alerts.yaml")], "evaluation_interval": "1m"}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump({**rules, "tests": cases}))
    command = [prometheus.program("promtool"), "test", "rules", tmp_path / "test.yaml"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
