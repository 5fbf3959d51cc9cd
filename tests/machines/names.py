"""Resolves names of Services, as a cluster's DNS does: each query is a request to the API server.

Arguments: KUBECONFIG ADDRESS
"""

import socketserver
import sys
from collections.abc import Iterator

import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

_PORT = 53
_SECONDS_TO_LIVE = 1
_ZONES = (dns.name.from_text("svc.cluster.local"), dns.name.from_text("svc"))


def serve(address: str, core: client.CoreV1Api) -> None:
    """Serves until it is terminated."""

    class Question(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            data, socket = self.request
            socket.sendto(answer(data, core), self.client_address)

    with socketserver.ThreadingUDPServer((address, _PORT), Question) as server:
        server.serve_forever()


def answer(data: bytes, core: client.CoreV1Api) -> bytes:
    """The response packet."""
    query = dns.message.from_wire(data)
    response = dns.message.make_response(query, recursion_available=True)
    question = query.question[0]
    addresses = _addresses(question.name, core)
    if addresses is None:
        response.set_rcode(dns.rcode.NXDOMAIN)
    elif addresses and question.rdtype == dns.rdatatype.A:
        name = question.name
        response.answer.append(dns.rrset.from_text(name, _SECONDS_TO_LIVE, "IN", "A", *addresses))
    return response.to_wire()


def _addresses(name: dns.name.Name, core: client.CoreV1Api) -> list[str] | None:
    """The addresses of SERVICE.NAMESPACE.svc or HOST.SERVICE.NAMESPACE.svc; None for an unknown
    name.
    """
    zone = next((item for item in _ZONES if name.is_subdomain(item)), None)
    labels = [label.decode() for label in name.relativize(zone).labels] if zone else []
    if len(labels) not in (2, 3):
        return None
    *host, service, namespace = labels
    try:
        address = core.read_namespaced_service(service, namespace).spec.cluster_ip
        if address == "None":
            endpoints = core.read_namespaced_endpoints(service, namespace)
            addresses = [ip for ip, hostname in _ready(endpoints) if host in ([], [hostname])]
            return addresses if addresses or not host else None
    except ApiException:
        return None
    return None if host else [address]


def _ready(endpoints: client.V1Endpoints) -> Iterator[tuple[str, str | None]]:
    for subset in endpoints.subsets or []:
        for address in subset.addresses or []:
            yield address.ip, address.hostname


if __name__ == "__main__":
    config.load_kube_config(sys.argv[1])
    serve(sys.argv[2], client.CoreV1Api())
