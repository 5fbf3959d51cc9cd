"""A namespace whose Simulators and aliases an operator guards, in front of a real service."""

import base64
import ssl

import httpx
import trustme

import make.chart
from agentworld.cluster.api_resources import API_RESOURCES
from agentworld.engine.process import free_port
from agentworld.errors import ClusterError
from make.certificates import mount, new_files
from make.simulator import alias, simulator
from waiting import wait_for


class Guarded:
    """A namespace whose simulators and aliases an operator guards."""

    def __init__(self, namespace, start, folder, service_url):
        self.namespace, self.start, self.url = namespace, start, service_url
        self.folder, self.port = folder / "mounted", free_port()
        self.folder.mkdir()
        self.name = namespace.namespace
        self.operators = {}
        self.authority = trustme.CA()
        self.renew_certificate()

    def run(self, name="first", port=None, **settings):
        """An operator's replica."""
        environment = {
            "service_url": self.url,
            "webhook_port": port or self.port,
            "webhook_host": "127.0.0.1",
            "webhook_folder": self.folder,
            "webhook_reload_seconds": 0.2,
        }
        self.operators[name] = self.start(name, **environment | settings)
        return self.operators[name]

    def guard(self):
        """Registers the webhook at the API server, and waits until it is called."""
        self.namespace.patch(
            "Namespace", self.name, {"metadata": {"labels": {"guarded": self.name}}}
        )
        self.namespace.create(self.configuration)
        wait_for(lambda: "there is no Simulator nobody" in self.refused(alias("nobody")))

    def renew_certificate(self):
        """Mounts a new certificate."""
        mount(new_files(self.authority), self.folder)

    @property
    def configuration(self):
        """The chart's own webhook configuration, with another address, authority and namespace."""
        objects = make.chart.objects(namespace=self.name)
        configuration = make.chart.only(objects, "ValidatingWebhookConfiguration")
        bundle = base64.b64encode(self.authority.cert_pem.bytes()).decode()
        for webhook in configuration["webhooks"]:
            url = f"https://127.0.0.1:{self.port}/admit"
            webhook["clientConfig"] = {"url": url, "caBundle": bundle}
            webhook["namespaceSelector"] = {"matchLabels": {"guarded": self.name}}
        return configuration

    def refused(self, manifest):
        """The error for a request to create this object."""
        path = API_RESOURCES[manifest["kind"]].path(self.name)
        try:
            self.namespace.call("POST", path, manifest, query=[("dryRun", "All")])
        except ClusterError as error:
            return str(error)
        return ""

    def use(self, *names):
        """Creates Simulators, and waits for their digests."""
        for name in names:
            self.namespace.create(simulator(name))
        for name in names:
            wait_for(
                lambda name=name: (
                    self.namespace.get("Simulator", name).get("status", {}).get("digest")
                )
            )

    def history(self, name="stable"):
        return httpx.get(f"{self.url}/aliases/{name}", trust_env=False).json()

    def ask(self, port=None):
        """The served certificate, after a successful request; empty if there is no response."""
        context = ssl.create_default_context(cadata=self.authority.cert_pem.bytes().decode())
        url = f"https://127.0.0.1:{port or self.port}/admit"
        try:
            with (
                httpx.Client(verify=context, trust_env=False) as client,
                client.stream("POST", url, content=b"nonsense") as answer,
            ):
                assert answer.status_code == 400
                ssl_object = answer.extensions["network_stream"].get_extra_info("ssl_object")
                return ssl_object.getpeercert(True)
        except httpx.TransportError:
            return b""
