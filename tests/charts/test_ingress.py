"""How clients outside of the cluster reach the service and the console."""

import re

import pytest
from helm_python.errors import HelmRenderError, HelmValuesError

import make.chart

HOSTS = {"serviceHost": "worlds.example.com", "consoleHost": "console.example.com"}
ISSUER = {"issuer": {"name": "letsencrypt"}}
GATEWAYS = {"gateways": [{"name": "public", "namespace": "gateways", "sectionName": "https"}]}


def rendered(**ingress):
    values = {"console": {"enabled": True}, "ingress": ingress}
    return make.chart.objects(values, "worlds")


def of(found, kind):
    return [each for each in found if each["kind"] == kind]


def ports(found):
    """Of each Service: its ports by name and by number."""
    return {
        each["metadata"]["name"]: {
            key for port in each["spec"]["ports"] for key in (port["name"], port["port"])
        }
        for each in of(found, "Service")
    }


def test_an_ingress_leads_each_host_to_its_service_and_all_by_tls():
    found = rendered(**HOSTS, **ISSUER, className="nginx")
    [ingress] = of(found, "Ingress")
    spec = ingress["spec"]
    assert spec["ingressClassName"] == "nginx"
    led = {
        rule["host"]: path["backend"]["service"]
        for rule in spec["rules"]
        for path in rule["http"]["paths"]
    }
    assert {host: each["name"] for host, each in led.items()} == {
        "worlds.example.com": "worlds-agentworld-service",
        "console.example.com": "worlds-agentworld-console",
    }
    for service in led.values():
        assert service["port"]["name"] in ports(found)[service["name"]]
    [tls] = spec["tls"]
    assert sorted(tls["hosts"]) == sorted(led)


def test_an_issuer_makes_the_certificate_that_the_ingress_shows():
    found = rendered(**HOSTS, **ISSUER)
    [ingress] = of(found, "Ingress")
    [tls] = ingress["spec"]["tls"]
    certificate = make.chart.only(found, "Certificate")
    assert certificate["spec"]["secretName"] == tls["secretName"] == "worlds-agentworld-tls"
    assert certificate["spec"]["dnsNames"] == tls["hosts"]
    assert certificate["spec"]["issuerRef"] == {
        "name": "letsencrypt",
        "kind": "ClusterIssuer",
        "group": "cert-manager.io",
    }


def test_the_notes_name_each_host():
    values = {"console": {"enabled": True}, "ingress": HOSTS}
    [notes] = [text for path, text in make.chart.files(values).items() if "NOTES" in path]
    assert "https://worlds.example.com\n" in notes
    assert "https://console.example.com\n" in notes


@pytest.mark.parametrize(
    ("certificate", "told"),
    [({"tlsSecret": "wildcard"}, {"secretName": "wildcard"}), ({}, {})],
    ids=["a Secret", "the controller's"],
)
def test_without_an_issuer_the_certificate_is_a_teams_or_the_controllers(certificate, told):
    found = rendered(serviceHost="worlds.example.com", **certificate)
    [ingress] = of(found, "Ingress")
    assert ingress["spec"]["tls"] == [{"hosts": ["worlds.example.com"], **told}]
    assert of(found, "Certificate") == []


def test_with_gateways_there_are_routes_that_cut_no_answer_and_no_ingress():
    found = rendered(**HOSTS, **GATEWAYS, annotations={"team": "worlds"})
    assert of(found, "Ingress") == of(found, "Certificate") == []
    routes = of(found, "HTTPRoute")
    assert [each["spec"]["hostnames"] for each in routes] == [
        ["console.example.com"],
        ["worlds.example.com"],
    ]
    for route in routes:
        assert route["metadata"]["annotations"] == {"team": "worlds"}
        assert route["spec"]["parentRefs"] == GATEWAYS["gateways"]
        [rule] = route["spec"]["rules"]
        [backend] = rule["backendRefs"]
        assert backend["port"] in ports(found)[backend["name"]]
        assert rule["timeouts"] == {"request": "0s"}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"ingress": {"consoleHost": "console.example.com"}},
            "ingress.consoleHost is console.example.com and console.enabled is false",
        ),
        ({"ingress": {**GATEWAYS, **ISSUER}}, "a Gateway has its own certificate"),
        ({"ingress": {**GATEWAYS, "tlsSecret": "own"}}, "a Gateway has its own certificate"),
    ],
)
def test_values_that_do_not_go_together_are_refused(values, said):
    with pytest.raises(HelmRenderError, match=re.escape(said)):
        make.chart.files(values)


@pytest.mark.parametrize(
    ("ingress", "said"),
    [
        ({"serviceHost": "https://worlds.example.com"}, "'/ingress/serviceHost'"),
        ({"gateways": [{"namespace": "gateways"}]}, "'/ingress/gateways/0'"),
    ],
)
def test_what_is_no_host_and_no_gateway_is_refused(ingress, said):
    with pytest.raises(HelmValuesError, match=re.escape(said)):
        make.chart.files({"ingress": ingress})
