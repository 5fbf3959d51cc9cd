"""Who reaches whom, by the policies; that a network keeps them is its plugin's."""

import pytest

import make.chart
from agentworld.cluster.names import child_labels
from make import records
from make.chart import BARE, EVERYTHING, EXTERNAL

ENGINE_PORT = 8000
CONSOLE = {"console": {"enabled": True}}
_SETS = {"default": {}, "console": CONSOLE, "everything": EVERYTHING, "external": EXTERNAL}


@pytest.fixture(params=_SETS.values(), ids=_SETS)
def found(request):
    return make.chart.objects(request.param)


def of(found, kind):
    return [each for each in found if each["kind"] == kind]


def labels(found):
    """Of the pods of each component, and of an engine's, which the operator makes."""
    own = {name: each["metadata"]["labels"] for name, each in make.chart.pods(found).items()}
    return own | {"engine": child_labels(records.digest("simulator"))}


def selects(selector, told):
    return selector.get("matchLabels", selector).items() <= told.items()


def admits(rules, side, port, other):
    """Whether one of a policy's rules lets through what goes to this port and comes from there."""
    for rule in rules:
        peers, ports = rule.get(side), [each["port"] for each in rule.get("ports", ())]
        of_pods = [each["podSelector"] for each in peers or () if "podSelector" in each]
        of_all = not peers or {"namespaceSelector": {}} in peers
        if port in ports and (of_all or any(selects(each, other) for each in of_pods)):
            return True
    return False


def reaches(found, source, target, port):
    """What all policies together say."""
    told, policies = labels(found), of(found, "NetworkPolicy")
    leaving = [each for each in policies if selects(each["spec"]["podSelector"], told[source])]
    coming = [each for each in policies if selects(each["spec"]["podSelector"], told[target])]
    leaves = any(
        admits(each["spec"].get("egress", ()), "to", port, told[target]) for each in leaving
    )
    return leaves and any(
        admits(each["spec"].get("ingress", ()), "from", port, told[source]) for each in coming
    )


def test_every_pod_is_denied_all_that_nobody_allows(found):
    default = make.chart.only(found, "NetworkPolicy", "agentworld-default")["spec"]
    assert default["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in default
    assert [port["port"] for rule in default["egress"] for port in rule["ports"]] == [53, 53]
    for told in labels(found).values():
        assert selects(default["podSelector"], told)


@pytest.mark.parametrize(
    ("source", "target", "port"),
    [
        ("operator", "service", 8000),
        ("service", "engine", ENGINE_PORT),
        ("service", "database", 5432),
        ("mlflow", "database", 5432),
        ("console", "database", 5432),
        ("console", "mlflow", 5000),
    ],
)
def test_who_has_to_ask_gets_there(source, target, port):
    assert reaches(make.chart.objects(EVERYTHING), source, target, port)


@pytest.mark.parametrize(
    ("source", "target", "port"),
    [
        ("operator", "engine", ENGINE_PORT),
        ("engine", "service", 8000),
        ("engine", "engine", ENGINE_PORT),
        ("engine", "database", 5432),
        ("operator", "database", 5432),
        ("secrets", "database", 5432),
        ("secrets", "service", 8000),
        ("mlflow", "service", 8000),
        ("mlflow", "engine", ENGINE_PORT),
        ("service", "mlflow", 5000),
        ("database", "service", 8000),
        ("console", "service", 8000),
        ("console", "engine", ENGINE_PORT),
        ("engine", "console", 8090),
        ("service", "console", 8090),
    ],
)
@pytest.mark.parametrize("values", [CONSOLE, EVERYTHING], ids=["default", "everything"])
def test_who_has_not_does_not(values, source, target, port):
    assert not reaches(make.chart.objects(values), source, target, port)


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("http://ml-pipeline.kubeflow:8888", 8888),
        ("http://10.0.0.1/pipeline", 80),
        ("https://kubeflow.example", 443),
        ("https://kubeflow.example:8443/pipeline", 8443),
    ],
)
def test_the_operator_gets_to_kubeflow_where_it_is_named(url, port):
    def rules(values):
        found = make.chart.objects(values)
        return make.chart.only(found, "NetworkPolicy", "agentworld-operator")["spec"]["egress"]

    more = {"ports": [{"protocol": "TCP", "port": port}]}
    assert [each for each in rules({"pipelines": {"url": url}}) if each not in rules({})] == [more]


def listening(found):
    """The component and the number of each port that a Service leads to."""
    for service in of(found, "Service"):
        for component, template in make.chart.pods(found).items():
            if selects(service["spec"]["selector"], template["metadata"]["labels"]):
                [container] = template["spec"]["containers"]
                named = {port["name"]: port["containerPort"] for port in container["ports"]}
                yield from ((component, named[p["targetPort"]]) for p in service["spec"]["ports"])


def test_what_a_service_offers_is_let_in_and_nothing_else_is(found):
    offered = {("engine", ENGINE_PORT), *listening(found)}
    let_in = set()
    for policy in of(found, "NetworkPolicy"):
        for component, told in labels(found).items():
            if selects(policy["spec"]["podSelector"], told):
                rules = policy["spec"].get("ingress", ())
                ports = [port["port"] for rule in rules for port in rule["ports"]]
                let_in |= {(component, port) for port in ports}
    assert let_in == offered


def test_every_service_leads_to_the_pods_of_one_component(found):
    for service in of(found, "Service"):
        chosen = [
            name
            for name, told in labels(found).items()
            if selects(service["spec"]["selector"], told)
        ]
        assert len(chosen) == 1


def test_what_rolls_out_owns_the_pods_of_its_own_and_of_no_other_release():
    found, other = make.chart.objects({}), labels(make.chart.objects({}, "other"))
    for each in found:
        if each["kind"] in ("Deployment", "StatefulSet", "PodDisruptionBudget"):
            chosen = each["spec"]["selector"]
            assert len([told for told in labels(found).values() if selects(chosen, told)]) == 1
            assert not [told for told in other.values() if selects(chosen, told)]


def test_without_values_every_namespace_is_let_in_and_an_api_server_is_anywhere():
    anywhere = {"ipBlock": {"cidr": "0.0.0.0/0"}}
    ports = [{"protocol": "TCP", "port": port} for port in (443, 6443)]
    found = make.chart.objects({})
    policies = {each["metadata"]["name"]: each["spec"] for each in of(found, "NetworkPolicy")}
    for name in ("operator", "secrets", "service"):
        assert {"to": [anywhere], "ports": ports} in policies[f"agentworld-{name}"]["egress"]
    for name, peer in (
        ("operator", anywhere),
        ("service", {"namespaceSelector": {}}),
        ("mlflow", {"namespaceSelector": {}}),
    ):
        [rule] = policies[f"agentworld-{name}"]["ingress"]
        assert peer in rule["from"]


def test_without_a_plugin_that_keeps_them_there_are_none():
    assert of(make.chart.objects(BARE), "NetworkPolicy") == []


def test_what_a_team_allows_goes_to_who_keeps_things_there():
    found = make.chart.objects(EVERYTHING)
    allowed = EVERYTHING["networkPolicies"]["egress"][0]
    told = {
        each["metadata"]["name"]
        for each in of(found, "NetworkPolicy")
        if allowed in each["spec"].get("egress", ())
    }
    kept = ("console", "engine", "mlflow", "operator", "service")
    assert told == {f"agentworld-{name}" for name in kept}


def test_nobody_is_let_in_for_a_console_that_is_not_there():
    for each in of(make.chart.objects({}), "NetworkPolicy"):
        assert "console" not in str(each)
