"""The chart as Helm renders it, with values as teams set them.

`python -m make.chart` rewrites the rendered files of the golden test.
"""

import json
import sys
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]
Values = dict[str, Any]

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts/agentworld"
GOLDEN = ROOT / "tests/data/charts/everything.yaml"

# Resources that an uninstall keeps: data that cannot be created again, and the isolation of engines
# that keep running.
KEPT = {
    ("PersistentVolumeClaim", "agentworld-stores"),
    ("PersistentVolumeClaim", "agentworld-mlflow"),
    ("NetworkPolicy", "agentworld-default"),
    ("NetworkPolicy", "agentworld-engine"),
}

_DIGEST = "sha256:" + "1" * 64
PODS: Values = {
    "podLabels": {"azure.workload.identity/use": "true", "app.kubernetes.io/name": "somebody"},
    "podAnnotations": {"sidecar.istio.io/inject": "false"},
    "priorityClassName": "high",
}
_PLACED: Values = {
    "nodeSelector": {"pool": "worlds"},
    "tolerations": [{"key": "worlds", "operator": "Exists"}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    ],
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy.example:3128"}],
    **PODS,
}


def account(role: str) -> Values:
    """A ServiceAccount with an identity in a cloud."""
    role_arn = f"arn:aws:iam::111122223333:role/{role}"
    return {"serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": role_arn}}}


_PROMETHEUS = {"podSelector": {"matchLabels": {"app": "prometheus"}}}
_TENANT = {
    "keys": {"trainer": {"sha256": "0" * 64, "roles": ["agent"]}},
    "service_accounts": {"team-a/trainer": ["agent"]},
    "limits": {"open_episodes": 256},
}

EVERYTHING: Values = {
    "images": {
        "registry": "mirror.example/agentworld",
        "pullSecrets": [{"name": "mirror"}],
        "control": {"digest": _DIGEST},
        "train": {"tag": "0.0.1"},
        "postgres": {"digest": _DIGEST},
    },
    "operator": {
        **_PLACED,
        **account("operator"),
        "webhook": {"issuer": {"name": "internal", "kind": "ClusterIssuer"}},
    },
    "engines": {
        **PODS,
        "serviceAccount": {"create": True, **account("engine")["serviceAccount"]},
    },
    "service": {
        **_PLACED,
        **account("service"),
        "type": "LoadBalancer",
        "engineKeySecret": "engine-key",
        "stepKeysConfigMap": "step-keys",
        "tracesEndpoint": "http://collector:4318",
    },
    "definitions": {"upgrade": True},
    "access": {"tenants": {"team-a": _TENANT}},
    "stores": {"existingSecret": "cloud", "claim": {"accessMode": "ReadWriteMany"}},
    "database": {**_PLACED, **account("database"), "storageClass": "fast"},
    "mlflow": {**_PLACED, **account("mlflow")},
    "console": {
        **_PLACED,
        **account("console"),
        "enabled": True,
        "replicas": 2,
        "store": "/stores/demo",
        "proxySecret": "proxy",
        "databaseSecret": "reader",
        "storesSecret": "cloud-reader",
        "serviceKeysConfigMap": "service-keys",
    },
    "backup": {
        **_PLACED,
        **account("backup"),
        "enabled": True,
        "schedule": "30 1 * * *",
        "keep": 7,
        "databaseSecret": "reader",
        "storesSecret": "cloud-backup",
        "claim": {"storageClass": "slow"},
    },
    "pipelines": {
        "url": "http://ml-pipeline.kubeflow:8888",
        "namespace": "team-a",
        "account": {"name": "pipeline-runner", "jobs": True},
        "placement": {"default": {"volumes": {"agentworld-stores": "/stores"}, "queue": "cpu"}},
    },
    "ingress": {
        "serviceHost": "worlds.example.com",
        "consoleHost": "console.example.com",
        "className": "nginx",
        "annotations": {"nginx.ingress.kubernetes.io/proxy-read-timeout": "3600"},
        "issuer": {"name": "letsencrypt"},
    },
    "networkPolicies": {
        "clients": [{"namespaceSelector": {"matchLabels": {"team": "a"}}}],
        "apiServer": {"cidr": "192.0.2.1/32", "ports": [6443]},
        "webhookClients": [{"namespaceSelector": {"matchLabels": {"proxy": "yes"}}}],
        "scrapers": [_PROMETHEUS],
        "engineScrapers": [_PROMETHEUS],
        "egress": [{"to": [{"ipBlock": {"cidr": "198.51.100.0/24"}}], "ports": [{"port": 443}]}],
    },
    "monitoring": {
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "podMonitor": {"enabled": True, "engines": True, "labels": {"release": "prometheus"}},
        "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
        "existingSecret": "metrics",
        "dashboard": {"enabled": True},
    },
}
"""Every option, with placement."""

EXTERNAL: Values = {
    "access": {"existingConfigMap": "who-may-come"},
    "keys": {"existingSecret": "kept-keys"},
    "database": {"existingSecret": "postgres"},
    "stores": {
        "objectsUrl": "s3://worlds/objects",
        "mirrorUrl": "s3://apart/mirror",
        "existingSecret": "cloud",
        "claim": {"enabled": False},
    },
    "mlflow": {"artifactsUrl": "s3://worlds/artifacts"},
    "console": {"enabled": True, "mlflowUrl": "https://mlflow.example"},
    "backup": {"enabled": True, "url": "s3://backups/agentworld"},
}
"""All state is external: database, buckets, keys and access file."""

BARE: Values = {"mlflow": {"enabled": False}, "networkPolicies": {"enabled": False}}

AIRGAP: Values = yaml.safe_load((CHART / "values-airgap.yaml").read_text())

VALUES: dict[str, Values] = {
    "default": {},
    "everything": EVERYTHING,
    "external": EXTERNAL,
    "bare": BARE,
    "airgap": AIRGAP,
}


def with_tags(values: Values) -> Values:
    """Adds permission to use image tags, unless the values set it: this checkout's chart has no
    digests.
    """
    return {**values, "images": {"allowTags": True, **values.get("images", {})}}


def files(
    values: Values, name: str = "agentworld", namespace: str = "worlds", chart: Path = CHART
) -> dict[str, str]:
    """The rendered text of each template of the chart; images may run by tag."""
    from helm_python.chart import Chart  # 80 MB, which the operator under test must not load

    with Chart.load(chart) as helm_chart:
        return helm_chart.render(with_tags(values), name=name, namespace=namespace)


def objects(
    values: Values | None = None,
    name: str = "agentworld",
    namespace: str = "worlds",
    chart: Path = CHART,
) -> list[Object]:
    """All objects of a release of this name in this namespace."""
    return deepcopy(_objects(json.dumps(values or {}), name, namespace, chart))


@cache
def _objects(values: str, name: str, namespace: str, chart: Path) -> list[Object]:
    text_by_path = files(json.loads(values), name, namespace, chart)
    texts = [text for path, text in text_by_path.items() if path.endswith(".yaml")]
    return [item for text in texts for item in yaml.load_all(text, _LOADER) if item]


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    return [item for item in objects if item["kind"] == kind]


def only(manifests: list[Object], kind: str, name: str | None = None) -> Object:
    """The only object of this kind, or of this kind and name."""
    [manifest] = [
        item
        for item in manifests
        if item["kind"] == kind and name in (None, item["metadata"]["name"])
    ]
    return manifest


def pods(manifests: list[Object]) -> dict[str, Object]:
    """The pod template of each component."""
    specs = [item.get("spec", {}) for item in manifests]
    specs = [spec.get("jobTemplate", {}).get("spec", spec) for spec in specs]
    templates = [spec["template"] for spec in specs if "template" in spec]
    return {
        template["metadata"]["labels"]["app.kubernetes.io/component"]: template
        for template in templates
    }


def containers(manifests: list[Object]) -> Iterator[Object]:
    """The containers of all pods."""
    for template in pods(manifests).values():
        yield from template["spec"]["containers"]
        yield from template["spec"].get("initContainers", ())


def images(manifests: list[Object]) -> Iterator[str]:
    """The images of the pods, and the one that the operator uses for its pods."""
    for container in containers(manifests):
        yield container["image"]
        for variable in container.get("env", ()):
            if variable["name"].endswith("_IMAGE"):
                yield variable["value"]


def golden() -> str:
    """All objects in an order that does not depend on the templates, and the chart's files by
    name.
    """
    file_names = {path.read_text(): path.name for path in (CHART / "dashboards").iterdir()}
    manifests = sorted(
        objects(EVERYTHING), key=lambda manifest: (manifest["kind"], manifest["metadata"]["name"])
    )
    for manifest in manifests:
        for name, text in manifest.get("data", {}).items():
            if text in file_names:
                manifest["data"][name] = f"(dashboards/{file_names[text]})"
    return yaml.dump_all(manifests, Dumper=_Dumper, default_flow_style=None, width=100)


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Dumper(yaml.SafeDumper):
    """Writes multi-line text as blocks."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def main() -> int:
    """Writes the golden files."""
    GOLDEN.write_text(golden(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
