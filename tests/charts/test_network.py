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
def objects(request):
    return make.chart.objects(request.param)


def labels(objects):
    """The labels of each component's pods, and of an engine's, which the operator creates."""
    own_labels = {
        name: template["metadata"]["labels"] for name, template in make.chart.pods(objects).items()
    }
    return own_labels | {"engine": child_labels(records.digest("simulator"))}


def selects(selector, pod_labels):
    return selector.get("matchLabels", selector).items() <= pod_labels.items() and all(
        pod_labels.get(choice["key"]) in choice["values"]
        for choice in selector.get("matchExpressions", ())
    )


def admits(rules, side, port, peer_labels):
    """Whether one of a policy's rules admits traffic of this peer to this port."""
    for rule in rules:
        peers, ports = rule.get(side), [entry["port"] for entry in rule.get("ports", ())]
        selectors = [peer["podSelector"] for peer in peers or () if "podSelector" in peer]
        is_open = not peers or {"namespaceSelector": {}} in peers
        if port in ports and (
            is_open or any(selects(selector, peer_labels) for selector in selectors)
        ):
            return True
    return False


def reaches(objects, source, target, port):
    """Whether all policies together allow the connection."""
    all_labels, network_policies = labels(objects), of_kind(objects, "NetworkPolicy")
    egress_policies = [
        policy
        for policy in network_policies
        if selects(policy["spec"]["podSelector"], all_labels[source])
    ]
    ingress_policies = [
        policy
        for policy in network_policies
        if selects(policy["spec"]["podSelector"], all_labels[target])
    ]
    is_egress_allowed = any(
        admits(policy["spec"].get("egress", ()), "to", port, all_labels[target])
        for policy in egress_policies
    )
    return is_egress_allowed and any(
        admits(policy["spec"].get("ingress", ()), "from", port, all_labels[source])
        for policy in ingress_policies
    )


def test_the_default_policy_denies_every_pod_all_traffic_except_dns(objects):
    default = make.chart.only(objects, "NetworkPolicy", "agentworld-default")["spec"]
    assert default["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in default
    assert [port["port"] for rule in default["egress"] for port in rule["ports"]] == [53, 53]
    for pod_labels in labels(objects).values():
        assert selects(default["podSelector"], pod_labels)


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
    objects = make.chart.objects(EVERYTHING)
    assert not reaches(objects, component, other, port)
    policy = make.chart.only(objects, "NetworkPolicy", f"agentworld-{component}")["spec"]
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
        objects = make.chart.objects(values)
        return make.chart.only(objects, "NetworkPolicy", "agentworld-operator")["spec"]["egress"]

    added_rule = {"ports": [{"protocol": "TCP", "port": port}]}
    assert [rule for rule in rules({"pipelines": {"url": url}}) if rule not in rules({})] == [
        added_rule
    ]


def service_ports(objects):
    """The component and the number of each port that a Service leads to."""
    for service in of_kind(objects, "Service"):
        for component, template in make.chart.pods(objects).items():
            if selects(service["spec"]["selector"], template["metadata"]["labels"]):
                [container] = template["spec"]["containers"]
                port_numbers = {port["name"]: port["containerPort"] for port in container["ports"]}
                yield from (
                    (component, port_numbers[p["targetPort"]]) for p in service["spec"]["ports"]
                )


def test_policies_admit_traffic_only_to_service_and_scraped_ports(objects):
    metrics_ports = {("operator", 9090)} if of_kind(objects, "PodMonitor") else set()
    expected = {("engine", ENGINE_PORT), *service_ports(objects), *metrics_ports}
    admitted = set()
    for policy in of_kind(objects, "NetworkPolicy"):
        for component, pod_labels in labels(objects).items():
            if selects(policy["spec"]["podSelector"], pod_labels):
                rules = policy["spec"].get("ingress", ())
                ports = [port["port"] for rule in rules for port in rule["ports"]]
                admitted |= {(component, port) for port in ports}
    assert admitted == expected


def test_every_service_selects_the_pods_of_one_component(objects):
    for service in of_kind(objects, "Service"):
        components = [
            name
            for name, pod_labels in labels(objects).items()
            if selects(service["spec"]["selector"], pod_labels)
        ]
        assert len(components) == 1


def test_a_workload_selects_pods_of_one_component_of_its_own_release():
    objects, other_labels = make.chart.objects({}), labels(make.chart.objects({}, "other"))
    for workload in objects:
        if workload["kind"] in ("Deployment", "StatefulSet", "PodDisruptionBudget"):
            selector = workload["spec"]["selector"]
            assert (
                len(
                    [
                        pod_labels
                        for pod_labels in labels(objects).values()
                        if selects(selector, pod_labels)
                    ]
                )
                == 1
            )
            assert not [
                pod_labels for pod_labels in other_labels.values() if selects(selector, pod_labels)
            ]


def policies(values):
    objects = of_kind(make.chart.objects(values), "NetworkPolicy")
    return {
        policy["metadata"]["name"].removeprefix("agentworld-"): policy["spec"] for policy in objects
    }


def tcp(*ports):
    return [{"protocol": "TCP", "port": port} for port in ports]


API_CLIENTS = ("console", "definitions", "operator", "secrets", "service")


def test_default_policies_admit_all_namespaces_and_reach_the_api_server_ports():
    """No rule uses an ipBlock for all addresses: Cilium would exclude nodes and pods from it."""
    specs = policies(JOBS)
    assert "ipBlock" not in str(specs)
    for name in API_CLIENTS:
        assert {"ports": tcp(443, 6443)} in specs[name]["egress"]
    assert specs["operator"]["ingress"] == [{"ports": tcp(9443)}]
    for name in ("service", "mlflow"):
        [rule] = specs[name]["ingress"]
        assert {"namespaceSelector": {}} in rule["from"]


def test_webhook_clients_are_configured_apart_from_the_api_server_address():
    """A managed control plane connects through a proxy, whose pods have other addresses."""
    proxy = {"podSelector": {"matchLabels": {"k8s-app": "konnectivity-agent"}}}
    specs = policies(
        {
            "networkPolicies": {
                "apiServer": {"cidr": "192.0.2.0/28", "ports": [443]},
                "webhookClients": [proxy],
            }
        }
    )
    expected_rule = {"to": [{"ipBlock": {"cidr": "192.0.2.0/28"}}], "ports": tcp(443)}
    for name in ("operator", "secrets", "service"):
        assert specs[name]["egress"].count(expected_rule) == 1
    assert specs["operator"]["ingress"] == [{"from": [proxy], "ports": tcp(9443)}]


def test_with_cilium_policies_name_the_api_server_as_an_entity():
    objects = make.chart.objects(CILIUM)
    *egress, webhook = (policy["spec"] for policy in of_kind(objects, "CiliumNetworkPolicy"))
    for policy in egress:
        rule = policy["egress"][-1]
        assert rule["toEntities"] == ["kube-apiserver"]
        [ports] = rule["toPorts"]
        assert [port["port"] for port in ports["ports"]] == ["443", "6443"]

    def components(policy):
        selector = policy["endpointSelector"]
        return [
            name for name, pod_labels in labels(objects).items() if selects(selector, pod_labels)
        ]

    assert sorted(name for policy in egress for name in components(policy)) == [*API_CLIENTS]
    assert components(webhook) == ["operator"]
    [rule] = webhook["ingress"]
    assert rule == {
        "fromEntities": ["kube-apiserver"],
        "toPorts": [{"ports": [{"port": "9443", "protocol": "TCP"}]}],
    }
    specs = policies(CILIUM)
    assert "secrets" not in specs
    assert "ingress" not in specs["operator"]
    assert "443" not in str([spec.get("egress") for spec in specs.values()])


def hook_weight(item):
    """Helm creates hooks in the order of their weights, before the release."""
    annotations = item["metadata"]["annotations"]
    assert annotations["helm.sh/hook"] == "pre-install,pre-upgrade"
    return int(annotations.get("helm.sh/hook-weight", 0))


def egress_ports(policy):
    for rule in policy["spec"]["egress"]:
        ports = rule["ports"] if "ports" in rule else rule["toPorts"][0]["ports"]
        yield from (int(port["port"]) for port in ports)


@pytest.mark.parametrize("values", [JOBS, CILIUM], ids=["default", "cilium"])
def test_hook_jobs_reach_the_api_server_before_other_policies_exist(values):
    """An uninstall keeps the default policy, which would deny it to the Jobs of a new install."""
    objects = make.chart.objects(values)
    jobs = of_kind(objects, "Job")
    assert len(jobs) == 2
    for job in jobs:
        pod_labels = job["spec"]["template"]["metadata"]["labels"]
        [policy] = [
            item
            for item in objects
            if item["kind"].endswith("NetworkPolicy")
            if item["metadata"]["name"] != "agentworld-default"
            if selects(
                item["spec"].get("podSelector") or item["spec"]["endpointSelector"], pod_labels
            )
        ]
        assert hook_weight(policy) < hook_weight(job)
        assert {*egress_ports(policy)} == {53, 443, 6443}


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
    objects = make.chart.objects(EVERYTHING)
    egress_rule = EVERYTHING["networkPolicies"]["egress"][0]
    names = {
        policy["metadata"]["name"]
        for policy in of_kind(objects, "NetworkPolicy")
        if egress_rule in policy["spec"].get("egress", ())
    }
    components = ("backup", "console", "engine", "mlflow", "operator", "restore", "service")
    assert names == {f"agentworld-{name}" for name in components}


def test_a_disabled_console_appears_in_no_policy():
    for policy in of_kind(make.chart.objects({}), "NetworkPolicy"):
        assert "console" not in str(policy)


def test_only_configured_clients_reach_operator_and_engine_metrics():
    prometheus = {"podSelector": {"matchLabels": {"app": "prometheus"}}}
    specs = policies(EVERYTHING)
    assert {"from": [prometheus], "ports": tcp(9090)} in specs["operator"]["ingress"]
    [rule] = specs["engine"]["ingress"]
    assert rule["from"][1:] == [prometheus]
    default_specs = policies({})
    assert tcp(9090) not in [
        ingress_rule["ports"] for ingress_rule in default_specs["operator"]["ingress"]
    ]
    [rule] = default_specs["engine"]["ingress"]
    assert len(rule["from"]) == 1


@pytest.mark.parametrize("console", [True, False])
def test_an_empty_list_of_clients_admits_only_own_components(console):
    closed = {"console": {"enabled": console}, "networkPolicies": {"clients": []}}
    specs = policies(closed)
    own_clients = {"service": {"operator"}, "mlflow": {"console"} if console else set()}
    own_clients |= {"console": set()} if console else {}
    for name, components in own_clients.items():
        rules = specs[name].get("ingress", [])
        assert all(rule["from"] for rule in rules)
        peers = [peer for rule in rules for peer in rule["from"]]
        assert {
            peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for peer in peers
        } == components


def test_a_pod_monitor_finds_the_port_of_the_pods_that_it_selects():
    objects = make.chart.objects(EVERYTHING)
    for monitor in of_kind(objects, "PodMonitor"):
        components = [
            name
            for name, pod_labels in labels(objects).items()
            if selects(monitor["spec"]["selector"], pod_labels)
        ]
        assert [f"agentworld-{name}" for name in components] == [monitor["metadata"]["name"]]
    spec = make.chart.only(objects, "PodMonitor", "agentworld-operator")["spec"]
    [container] = make.chart.pods(objects)["operator"]["spec"]["containers"]
    assert spec["podMetricsEndpoints"][0]["port"] in [port["name"] for port in container["ports"]]
    default_objects = make.chart.objects({"monitoring": {"podMonitor": {"enabled": True}}})
    assert [item["metadata"]["name"] for item in of_kind(default_objects, "PodMonitor")] == [
        "agentworld-operator"
    ]
