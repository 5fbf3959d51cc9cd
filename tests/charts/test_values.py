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
    told = lint(CHART, values, strict=True, namespace="worlds")
    assert told["errors"] == []
    assert {each["error"] for each in told["messages"]} == {"icon is recommended"}
    assert {each["severity"] for each in told["messages"]} == {_INFO}


@pytest.mark.parametrize(
    ("values", "said"),
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
def test_an_invalid_value_is_refused_with_its_name(values, said):
    with pytest.raises(HelmValuesError, match=re.escape(said)):
        make.chart.files(values)


def test_a_service_monitor_without_a_secret_is_refused():
    with pytest.raises(
        HelmRenderError, match=r"monitoring\.existingSecret is empty; name a Secret"
    ):
        make.chart.files({"monitoring": {"serviceMonitor": {"enabled": True}}})


def test_global_values_of_a_parent_chart_are_accepted():
    handed = {"global": {"anything": 1}}
    # What Helm certifies is another one at each rendering.
    assert make.chart.files({**EVERYTHING, **handed}) == make.chart.files(EVERYTHING)


def properties(node, path=""):
    """Each value that a schema has, with its constraints."""
    for name, each in node.get("properties", {}).items():
        yield f"{path}{name}", each
        yield from properties(each, f"{path}{name}.")


def values_of(node, path=""):
    for name, each in node.items() if isinstance(node, dict) else ():
        yield f"{path}{name}", each
        yield from values_of(each, f"{path}{name}.")


def test_the_schema_contains_exactly_the_values_of_the_chart():
    known = dict(properties(SCHEMA))
    free = [path for path, each in known.items() if "additionalProperties" in each]
    there = {path for path, _ in values_of(yaml.safe_load(TEXT))}
    inside = {path for path in there if any(path.startswith(f"{each}.") for each in free)}
    assert there - inside <= known.keys()
    more = {path.rpartition(".")[2] for path in known.keys() - there}
    assert more == {"global"}


def test_every_value_comment_is_a_schema_description():
    told = [each["description"] for _, each in properties(SCHEMA) if "description" in each]
    assert told == re.findall(r"# -- (.*)", TEXT)


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
        for path, each in properties(SCHEMA)
        if each["type" if "type" in each else "allOf"] == "object"
        and each.get("additionalProperties", True) is not False
    }
    named = {"labels", "annotations", "podLabels", "podAnnotations", "nodeSelector"}
    assert free == named | {"global", "limits", "placement", "requests"}


def test_the_service_can_read_the_rendered_access_file():
    told = make.chart.only(make.chart.objects(EVERYTHING), "ConfigMap", "agentworld-access")
    tenants = Directory.model_validate(yaml.safe_load(told["data"]["access.yaml"])).tenants
    assert tenants["team-a"].limits.open_episodes == 256
    assert tenants["agentworld"].service_accounts == {"worlds/agentworld-operator": {"operator"}}


@pytest.mark.waits
def test_the_schema_file_equals_the_schema_generated_from_the_values():
    written = subprocess.run(
        [sys.executable, ROOT / "tools/values_schema.py", CHART], capture_output=True, check=True
    ).stdout
    assert written == (CHART / "values.schema.json").read_bytes()
