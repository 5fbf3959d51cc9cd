"""Access from outside of the cluster to the service and the console."""

import re

import pytest
from helm_python.errors import HelmRenderError, HelmValuesError

import make.chart
from make.chart import of_kind

SERVICE_HOST, CONSOLE_HOST = "worlds.example.com", "console.example.com"
HOSTS = {"serviceHost": SERVICE_HOST, "consoleHost": CONSOLE_HOST}
ISSUER = {"issuer": {"name": "letsencrypt"}}
GATEWAYS = {"gateways": [{"name": "public", "namespace": "gateways", "sectionName": "https"}]}


def render(**ingress):
    values = {"console": {"enabled": True}, "ingress": ingress}
    return make.chart.objects(values, "worlds")


def ports_by_service(objects):
    """Each port of a Service by its name and by its number."""
    return {
        service["metadata"]["name"]: {
            key for port in service["spec"]["ports"] for key in (port["name"], port["port"])
        }
        for service in of_kind(objects, "Service")
    }


def test_the_ingress_routes_each_host_to_its_service_and_has_tls_for_both():
    objects = render(**HOSTS, **ISSUER, className="nginx")
    spec = make.chart.only(objects, "Ingress")["spec"]
    assert spec["ingressClassName"] == "nginx"
    backends = {
        rule["host"]: path["backend"]["service"]
        for rule in spec["rules"]
        for path in rule["http"]["paths"]
    }
    assert {host: backend["name"] for host, backend in backends.items()} == {
        SERVICE_HOST: "worlds-agentworld-service",
        CONSOLE_HOST: "worlds-agentworld-console",
    }
    for backend in backends.values():
        assert backend["port"]["name"] in ports_by_service(objects)[backend["name"]]
    [tls] = spec["tls"]
    assert set(tls["hosts"]) == backends.keys()


def test_the_issuer_writes_the_certificate_that_the_ingress_uses():
    objects = render(**HOSTS, **ISSUER)
    [tls] = make.chart.only(objects, "Ingress")["spec"]["tls"]
    certificate = make.chart.only(objects, "Certificate")["spec"]
    assert certificate["secretName"] == tls["secretName"] == "worlds-agentworld-tls"
    assert certificate["dnsNames"] == tls["hosts"]
    assert certificate["issuerRef"] == {
        "name": "letsencrypt",
        "kind": "ClusterIssuer",
        "group": "cert-manager.io",
    }


@pytest.mark.parametrize(
    ("values", "secret"),
    [({"tlsSecret": "wildcard"}, {"secretName": "wildcard"}), ({}, {})],
    ids=["a Secret", "the controller's"],
)
def test_without_an_issuer_the_ingress_uses_a_secret_or_the_controllers_certificate(values, secret):
    objects = render(serviceHost=SERVICE_HOST, **values)
    ingress = make.chart.only(objects, "Ingress")
    assert ingress["spec"]["tls"] == [{"hosts": [SERVICE_HOST], **secret}]
    assert of_kind(objects, "Certificate") == []


def test_the_notes_name_each_host():
    values = {"console": {"enabled": True}, "ingress": HOSTS}
    [notes] = [text for path, text in make.chart.files(values).items() if "NOTES" in path]
    assert f"https://{SERVICE_HOST}\n" in notes
    assert f"https://{CONSOLE_HOST}\n" in notes


def test_with_gateways_the_chart_makes_routes_without_a_time_limit_and_no_ingress():
    objects = render(**HOSTS, **GATEWAYS, annotations={"team": "worlds"})
    assert of_kind(objects, "Ingress") == of_kind(objects, "Certificate") == []
    routes = of_kind(objects, "HTTPRoute")
    assert [route["spec"]["hostnames"] for route in routes] == [[CONSOLE_HOST], [SERVICE_HOST]]
    for route in routes:
        assert route["metadata"]["annotations"] == {"team": "worlds"}
        assert route["spec"]["parentRefs"] == GATEWAYS["gateways"]
        [rule] = route["spec"]["rules"]
        [backend] = rule["backendRefs"]
        assert backend["port"] in ports_by_service(objects)[backend["name"]]
        assert rule["timeouts"] == {"request": "0s"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"ingress": {"consoleHost": CONSOLE_HOST}},
            "ingress.consoleHost is console.example.com and console.enabled is false",
        ),
        (
            {
                "console": {"enabled": True},
                "ingress": {"serviceHost": SERVICE_HOST, "consoleHost": SERVICE_HOST},
            },
            "ingress.serviceHost and ingress.consoleHost are both worlds.example.com",
        ),
        ({"ingress": {**GATEWAYS, **ISSUER}}, "a Gateway has its own certificate"),
        ({"ingress": {**GATEWAYS, "tlsSecret": "own"}}, "a Gateway has its own certificate"),
    ],
)
def test_values_that_contradict_each_other_are_refused(values, message):
    with pytest.raises(HelmRenderError, match=re.escape(message)):
        make.chart.files(values)


@pytest.mark.parametrize(
    ("ingress", "message"),
    [
        ({"serviceHost": "https://worlds.example.com"}, "'/ingress/serviceHost'"),
        ({"gateways": [{"name": "public"}]}, "'/ingress/gateways/0'"),
    ],
)
def test_a_url_as_host_and_a_gateway_without_a_listener_are_refused(ingress, message):
    with pytest.raises(HelmValuesError, match=re.escape(message)):
        make.chart.files({"ingress": ingress})
