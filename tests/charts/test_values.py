"""Valid values of the chart, and the errors of invalid ones."""

import json
import re
import subprocess
import sys

import pytest
import yaml
from helm_python.chart import lint
from helm_python.errors import HelmRenderError, HelmValuesError

import make.chart
from agentworld.access.directory import Directory
from make.chart import CHART, EVERYTHING, ROOT, VALUES

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
TEXT = (CHART / "values.yaml").read_text()
REFERENCE = (ROOT / "docs/reference/values.md").read_text()
_INFO = 1


@pytest.mark.waits
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_helm_lint_reports_no_problem(values):
    result = lint(CHART, values, strict=True, namespace="worlds")
    assert result["errors"] == []
    assert {message["error"] for message in result["messages"]} == {"icon is recommended"}
    assert {message["severity"] for message in result["messages"]} == {_INFO}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"operator": {"replica": 3}}, "'/operator': additional properties 'replica'"),
        ({"database": {"enabled": False}}, "'/database': additional properties 'enabled'"),
        ({"postgresql": {}}, "'': additional properties 'postgresql'"),
        ({"operator": {"replicas": 0}}, "'/operator/replicas': minimum: got 0, want 1"),
        ({"service": {"idleSeconds": 0}}, "'/service/idleSeconds': exclusiveMinimum"),
        ({"service": {"replicas": "2"}}, "'/service/replicas': got string, want integer"),
        ({"service": {"type": "Ingress"}}, "'/service/type': value must be one of"),
        ({"images": {"pullPolicy": "Sometimes"}}, "'/images/pullPolicy': value must be one of"),
        ({"images": {"registry": ""}}, "'/images/registry': '' does not match"),
        ({"images": {"control": {"digest": "sha256:12"}}}, "'/images/control/digest'"),
        ({"images": {"postgres": {"tag": 17}}}, "'/images/postgres/tag': got number, want string"),
        ({"stores": {"claim": {"enabled": False}}}, "'/stores/objectsUrl': '/stores/objects'"),
        ({"stores": {"claim": {"size": "a lot"}}}, "'/stores/claim/size': 'a lot' does not match"),
        ({"access": {"tenants": {"a": {"key": {}}}}}, "'/access/tenants/a': additional properties"),
        ({"access": {"tenants": {"Team A": {}}}}, "additional properties 'Team A'"),
        ({"backup": {"schedule": "daily"}}, "'/backup/schedule': 'daily' does not match"),
        ({"backup": {"keep": 0}}, "'/backup/keep': minimum: got 0, want 1"),
        ({"backup": {"url": "backups"}}, "'/backup/url': 'backups' does not match"),
        ({"backup": {"dumpSize": "a lot"}}, "'/backup/dumpSize': 'a lot' does not match"),
        ({"console": {"store": "worlds/demo"}}, "'/console/store': 'worlds/demo' does not"),
        ({"console": {"mlflowUrl": "mlflow"}}, "'/console/mlflowUrl': 'mlflow' does not match"),
        ({"pipelines": {"url": "kubeflow:8888"}}, "'/pipelines/url': 'kubeflow:8888' does not"),
        ({"mlflow": {"resources": {"limit": {}}}}, "'/mlflow/resources': additional properties"),
    ],
    ids=json.dumps,
)
def test_an_invalid_value_is_refused_with_its_name(values, message):
    with pytest.raises(HelmValuesError, match=re.escape(message)):
        make.chart.files(values)


def test_a_service_monitor_without_a_secret_is_refused():
    with pytest.raises(
        HelmRenderError, match=r"monitoring\.existingSecret is empty; name a Secret"
    ):
        make.chart.files({"monitoring": {"serviceMonitor": {"enabled": True}}})


def test_global_values_of_a_parent_chart_are_accepted():
    parent_values = {"global": {"anything": 1}}
    # Without an issuer, Helm's certificate would differ at each rendering.
    assert make.chart.files({**EVERYTHING, **parent_values}) == make.chart.files(EVERYTHING)


def properties(node, path=""):
    """Each value that a schema has, with its constraints."""
    for name, schema in node.get("properties", {}).items():
        yield f"{path}{name}", schema
        yield from properties(schema, f"{path}{name}.")


def values_of(node, path=""):
    for name, value in node.items() if isinstance(node, dict) else ():
        yield f"{path}{name}", value
        yield from values_of(value, f"{path}{name}.")


def test_the_schema_contains_exactly_the_values_of_the_chart():
    constraints = dict(properties(SCHEMA))
    free_paths = [path for path, schema in constraints.items() if "additionalProperties" in schema]
    paths = {path for path, _ in values_of(yaml.safe_load(TEXT))}
    free_values = {
        path for path in paths if any(path.startswith(f"{prefix}.") for prefix in free_paths)
    }
    assert paths - free_values <= constraints.keys()
    missing = {path.rpartition(".")[2] for path in constraints.keys() - paths}
    assert missing == {"global"}


def test_every_value_comment_is_a_schema_description():
    descriptions = [
        schema["description"] for _, schema in properties(SCHEMA) if "description" in schema
    ]
    assert descriptions == re.findall(r"# -- (.*)", TEXT)


def test_the_reference_has_a_row_for_every_value():
    rows = re.findall(r"^\| `(.+?)` \|", REFERENCE, re.M)
    values = values_of(yaml.safe_load(TEXT))
    leaves = [path for path, value in values if not isinstance(value, dict) or not value]
    missing = [path for path in leaves if not any(f"{path}.".startswith(f"{row}.") for row in rows)]
    assert leaves
    assert missing == []


def test_unknown_keys_are_accepted_only_in_free_form_values():
    free = {
        path.rpartition(".")[2]
        for path, schema in properties(SCHEMA)
        if schema["type" if "type" in schema else "allOf"] == "object"
        and schema.get("additionalProperties", True) is not False
    }
    expected = {"labels", "annotations", "podLabels", "podAnnotations", "nodeSelector"}
    assert free == expected | {"global", "limits", "placement", "requests"}


def test_the_service_can_read_the_rendered_access_file():
    config_map = make.chart.only(make.chart.objects(EVERYTHING), "ConfigMap", "agentworld-access")
    tenants = Directory.model_validate(yaml.safe_load(config_map["data"]["access.yaml"])).tenants
    assert tenants["team-a"].limits.open_episodes == 256
    assert tenants["agentworld"].service_accounts == {"worlds/agentworld-operator": {"operator"}}


@pytest.mark.waits
def test_the_schema_file_equals_the_schema_generated_from_the_values():
    generated = subprocess.run(
        [sys.executable, ROOT / "tools/values_schema.py", CHART], capture_output=True, check=True
    ).stdout
    assert generated == (CHART / "values.schema.json").read_bytes()
