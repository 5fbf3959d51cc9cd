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
    """What to send back."""
    asked = dns.message.from_wire(data)
    said = dns.message.make_response(asked, recursion_available=True)
    question = asked.question[0]
    found = _addresses(question.name, core)
    if found is None:
        said.set_rcode(dns.rcode.NXDOMAIN)
    elif found and question.rdtype == dns.rdatatype.A:
        name = question.name
        said.answer.append(dns.rrset.from_text(name, _SECONDS_TO_LIVE, "IN", "A", *found))
    return said.to_wire()


def _addresses(name: dns.name.Name, core: client.CoreV1Api) -> list[str] | None:
    """Of SERVICE.NAMESPACE.svc or HOST.SERVICE.NAMESPACE.svc; None where there is no such name."""
    zone = next((each for each in _ZONES if name.is_subdomain(each)), None)
    labels = [label.decode() for label in name.relativize(zone).labels] if zone else []
    if len(labels) not in (2, 3):
        return None
    *host, service, namespace = labels
    try:
        address = core.read_namespaced_service(service, namespace).spec.cluster_ip
        if address == "None":
            endpoints = core.read_namespaced_endpoints(service, namespace)
            found = [ip for ip, named in _ready(endpoints) if host in ([], [named])]
            return found if found or not host else None
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
