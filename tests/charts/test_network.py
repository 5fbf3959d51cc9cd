"""Connections that the network policies allow; a network plugin enforces them."""

import pytest

import make.chart
from agentworld.cluster.names import child_labels
from make import records
from make.chart import BARE, EVERYTHING, EXTERNAL, of_kind

ENGINE_PORT = 8000
CONSOLE = {"console": {"enabled": True}}
JOBS = {**CONSOLE, "definitions": {"upgrade": True}}
CILIUM = {**JOBS, "networkPolicies": {"cilium": {"enabled": True}}}
_SETS = {"default": {}, "console": CONSOLE, "everything": EVERYTHING, "external": EXTERNAL}


@pytest.fixture(params=_SETS.values(), ids=_SETS)
def found(request):
    return make.chart.objects(request.param)


def labels(found):
    """The labels of each component's pods, and of an engine's, which the operator creates."""
    own = {name: each["metadata"]["labels"] for name, each in make.chart.pods(found).items()}
    return own | {"engine": child_labels(records.digest("simulator"))}


def selects(selector, told):
    return selector.get("matchLabels", selector).items() <= told.items()


def admits(rules, side, port, other):
    """Whether one of a policy's rules admits traffic to this port from there."""
    for rule in rules:
        peers, ports = rule.get(side), [each["port"] for each in rule.get("ports", ())]
        of_pods = [each["podSelector"] for each in peers or () if "podSelector" in each]
        of_all = not peers or {"namespaceSelector": {}} in peers
        if port in ports and (of_all or any(selects(each, other) for each in of_pods)):
            return True
    return False


def reaches(found, source, target, port):
    """The result of all policies together."""
    told, policies = labels(found), of_kind(found, "NetworkPolicy")
    leaving = [each for each in policies if selects(each["spec"]["podSelector"], told[source])]
    coming = [each for each in policies if selects(each["spec"]["podSelector"], told[target])]
    leaves = any(
        admits(each["spec"].get("egress", ()), "to", port, told[target]) for each in leaving
    )
    return leaves and any(
        admits(each["spec"].get("ingress", ()), "from", port, told[source]) for each in coming
    )


def test_the_default_policy_denies_every_pod_all_traffic_except_dns(found):
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
        ("backup", "database", 5432),
        ("restore", "database", 5432),
    ],
)
def test_policies_allow_every_needed_connection(source, target, port):
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
def test_policies_deny_unneeded_connections(values, source, target, port):
    assert not reaches(make.chart.objects(values), source, target, port)


@pytest.mark.parametrize("component", ["backup", "restore"])
@pytest.mark.parametrize(
    ("other", "port"), [("service", 8000), ("mlflow", 5000), ("console", 8090)]
)
def test_backup_pods_reach_only_the_database_and_the_allowed_egress(component, other, port):
    found = make.chart.objects(EVERYTHING)
    assert not reaches(found, component, other, port)
    policy = make.chart.only(found, "NetworkPolicy", f"agentworld-{component}")["spec"]
    assert policy["policyTypes"] == ["Egress"]
    assert policy["egress"][1:] == EVERYTHING["networkPolicies"]["egress"]


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("http://ml-pipeline.kubeflow:8888", 8888),
        ("http://10.0.0.1/pipeline", 80),
        ("https://kubeflow.example", 443),
        ("https://kubeflow.example:8443/pipeline", 8443),
    ],
)
def test_the_operator_reaches_kubeflow_where_its_url_is_set(url, port):
    def rules(values):
        found = make.chart.objects(values)
        return make.chart.only(found, "NetworkPolicy", "agentworld-operator")["spec"]["egress"]

    more = {"ports": [{"protocol": "TCP", "port": port}]}
    assert [each for each in rules({"pipelines": {"url": url}}) if each not in rules({})] == [more]


def listening(found):
    """The component and the number of each port that a Service leads to."""
    for service in of_kind(found, "Service"):
        for component, template in make.chart.pods(found).items():
            if selects(service["spec"]["selector"], template["metadata"]["labels"]):
                [container] = template["spec"]["containers"]
                named = {port["name"]: port["containerPort"] for port in container["ports"]}
                yield from ((component, named[p["targetPort"]]) for p in service["spec"]["ports"])


def test_policies_admit_traffic_only_to_service_and_scraped_ports(found):
    scraped = {("operator", 9090)} if of_kind(found, "PodMonitor") else set()
    offered = {("engine", ENGINE_PORT), *listening(found), *scraped}
    let_in = set()
    for policy in of_kind(found, "NetworkPolicy"):
        for component, told in labels(found).items():
            if selects(policy["spec"]["podSelector"], told):
                rules = policy["spec"].get("ingress", ())
                ports = [port["port"] for rule in rules for port in rule["ports"]]
                let_in |= {(component, port) for port in ports}
    assert let_in == offered


def test_every_service_selects_the_pods_of_one_component(found):
    for service in of_kind(found, "Service"):
        chosen = [
            name
            for name, told in labels(found).items()
            if selects(service["spec"]["selector"], told)
        ]
        assert len(chosen) == 1


def test_a_workload_selects_pods_of_one_component_of_its_own_release():
    found, other = make.chart.objects({}), labels(make.chart.objects({}, "other"))
    for each in found:
        if each["kind"] in ("Deployment", "StatefulSet", "PodDisruptionBudget"):
            chosen = each["spec"]["selector"]
            assert len([told for told in labels(found).values() if selects(chosen, told)]) == 1
            assert not [told for told in other.values() if selects(chosen, told)]


def policies(values):
    found = of_kind(make.chart.objects(values), "NetworkPolicy")
    return {each["metadata"]["name"].removeprefix("agentworld-"): each["spec"] for each in found}


def tcp(*ports):
    return [{"protocol": "TCP", "port": port} for port in ports]


ASK_THE_API_SERVER = ("console", "definitions", "operator", "secrets", "service")


def test_default_policies_admit_all_namespaces_and_reach_the_api_server_ports():
    """No ipBlock stands for any address: Cilium would leave nodes and pods out of it."""
    found = policies(JOBS)
    assert "ipBlock" not in str(found)
    for name in ASK_THE_API_SERVER:
        assert {"ports": tcp(443, 6443)} in found[name]["egress"]
    assert found["operator"]["ingress"] == [{"ports": tcp(9443)}]
    for name in ("service", "mlflow"):
        [rule] = found[name]["ingress"]
        assert {"namespaceSelector": {}} in rule["from"]


def test_webhook_clients_are_configured_apart_from_the_api_server_address():
    """A managed control plane connects through a proxy, whose pods have other addresses."""
    proxy = {"podSelector": {"matchLabels": {"k8s-app": "konnectivity-agent"}}}
    found = policies(
        {
            "networkPolicies": {
                "apiServer": {"cidr": "192.0.2.0/28", "ports": [443]},
                "webhookClients": [proxy],
            }
        }
    )
    to = {"to": [{"ipBlock": {"cidr": "192.0.2.0/28"}}], "ports": tcp(443)}
    for name in ("operator", "secrets", "service"):
        assert found[name]["egress"].count(to) == 1
    assert found["operator"]["ingress"] == [{"from": [proxy], "ports": tcp(9443)}]


def test_with_cilium_policies_name_the_api_server_as_an_entity():
    found = make.chart.objects(CILIUM)
    to, webhook = (each["spec"] for each in of_kind(found, "CiliumNetworkPolicy"))
    [rule] = to["egress"]
    assert rule["toEntities"] == ["kube-apiserver"]
    [ports] = rule["toPorts"]
    assert [port["port"] for port in ports["ports"]] == ["443", "6443"]
    [choice] = to["endpointSelector"]["matchExpressions"]
    chosen = {
        name
        for name, told in labels(found).items()
        if selects(to["endpointSelector"], told) and told[choice["key"]] in choice["values"]
    }
    assert chosen == {*ASK_THE_API_SERVER}
    told = labels(found)
    assert [name for name in told if selects(webhook["endpointSelector"], told[name])] == [
        "operator"
    ]
    [rule] = webhook["ingress"]
    assert rule == {
        "fromEntities": ["kube-apiserver"],
        "toPorts": [{"ports": [{"port": "9443", "protocol": "TCP"}]}],
    }
    plain = policies(CILIUM)
    assert "secrets" not in plain
    assert "ingress" not in plain["operator"]
    assert "443" not in str([each.get("egress") for each in plain.values()])


@pytest.mark.parametrize(
    ("values", "address", "webhook"),
    [
        ({"apiServer": {"cidr": "192.0.2.0/28"}}, False, True),
        ({"webhookClients": [{"namespaceSelector": {}}]}, True, False),
        ({"cilium": {"enabled": True}}, False, False),
    ],
)
def test_the_notes_warn_of_open_access_until_restricted(values, address, webhook):
    notes = make.chart.files({"networkPolicies": values})["agentworld/templates/NOTES.txt"]
    assert ("reach every address" in notes) == address
    assert ("Everybody in the cluster reaches" in notes) == webhook


def test_disabled_network_policies_are_not_rendered():
    assert of_kind(make.chart.objects(BARE), "NetworkPolicy") == []


def test_allowed_egress_applies_to_every_component_that_uses_external_stores():
    found = make.chart.objects(EVERYTHING)
    allowed = EVERYTHING["networkPolicies"]["egress"][0]
    told = {
        each["metadata"]["name"]
        for each in of_kind(found, "NetworkPolicy")
        if allowed in each["spec"].get("egress", ())
    }
    kept = ("backup", "console", "engine", "mlflow", "operator", "restore", "service")
    assert told == {f"agentworld-{name}" for name in kept}


def test_a_disabled_console_appears_in_no_policy():
    for each in of_kind(make.chart.objects({}), "NetworkPolicy"):
        assert "console" not in str(each)


def test_only_configured_clients_reach_operator_and_engine_metrics():
    prometheus = {"podSelector": {"matchLabels": {"app": "prometheus"}}}
    named = policies(EVERYTHING)
    assert {"from": [prometheus], "ports": tcp(9090)} in named["operator"]["ingress"]
    [rule] = named["engine"]["ingress"]
    assert rule["from"][1:] == [prometheus]
    unnamed = policies({})
    assert tcp(9090) not in [each["ports"] for each in unnamed["operator"]["ingress"]]
    [rule] = unnamed["engine"]["ingress"]
    assert len(rule["from"]) == 1


def test_a_pod_monitor_finds_the_port_of_the_pods_that_it_selects():
    found = make.chart.objects(EVERYTHING)
    for monitor in of_kind(found, "PodMonitor"):
        chosen = [
            name
            for name, told in labels(found).items()
            if selects(monitor["spec"]["selector"], told)
        ]
        assert [f"agentworld-{name}" for name in chosen] == [monitor["metadata"]["name"]]
    spec = make.chart.only(found, "PodMonitor", "agentworld-operator")["spec"]
    [container] = make.chart.pods(found)["operator"]["spec"]["containers"]
    assert spec["podMetricsEndpoints"][0]["port"] in [port["name"] for port in container["ports"]]
    only = make.chart.objects({"monitoring": {"podMonitor": {"enabled": True}}})
    assert [each["metadata"]["name"] for each in of_kind(only, "PodMonitor")] == [
        "agentworld-operator"
    ]
