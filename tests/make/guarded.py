"""A namespace whose Simulators and aliases an operator guards, before a real service."""

import base64
import ssl

import httpx

import make.chart
from agentworld.cluster.api_resources import API_RESOURCES
from agentworld.engine.process import free_port
from agentworld.errors import ClusterError
from make.simulator import alias, simulator
from waiting import wait_for


class Guarded:
    """A namespace whose simulators and aliases an operator guards."""

    def __init__(self, namespace, start, folder, service_url):
        self.namespace, self.start, self.url = namespace, start, service_url
        self.folder, self.port = folder / "mounted", free_port()
        self.folder.mkdir()
        self.name = namespace.namespace
        self.configuration = f"agentworld-{self.name}"
        self.operators = {}

    def run(self, name="first", port=None, **settings):
        """An operator's replica."""
        told = {
            "service_url": self.url,
            "webhook_port": port or self.port,
            "webhook_host": "127.0.0.1",
            "webhook_folder": self.folder,
            "webhook_configuration": self.configuration,
            "webhook_names": '["127.0.0.1"]',
            "webhook_certify_seconds": 0.3,
            "webhook_settle_seconds": 1,
        }
        self.operators[name] = self.start(name, **told | settings)
        return self.operators[name]

    def guard(self):
        """Has the API server ask the webhook, and waits until it does."""
        self.namespace.patch(
            "Namespace", self.name, {"metadata": {"labels": {"guarded": self.name}}}
        )
        self.namespace.create(configuration(self.name, self.port))
        wait_for(self.mount)
        wait_for(lambda: "there is no Simulator nobody" in self.refused(alias("nobody")))

    def mount(self):
        """As a kubelet does; tells whether there was something to mount."""
        found = self.namespace.get("Secret", "agentworld-webhook").get("data")
        for name in ("tls.crt", "tls.key") if found else ():
            content = base64.b64decode(found[name])
            (self.folder / "draft").write_bytes(content)
            (self.folder / "draft").rename(self.folder / name)
        return found

    def refused(self, manifest):
        """What is said to who would create this."""
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
        """The certificate that is served, after a request that it answered."""
        secret = self.namespace.get("Secret", "agentworld-webhook")["data"]
        bundle = base64.b64decode(secret["ca.crt"]).decode()
        context = ssl.create_default_context(cadata=bundle)
        url = f"https://127.0.0.1:{port or self.port}"
        with httpx.Client(verify=context, trust_env=False) as client:
            assert client.get(f"{url}/ready").status_code == 200
            with client.stream("POST", f"{url}/admit", content=b"nonsense") as answer:
                assert answer.status_code == 400
                told = answer.extensions["network_stream"].get_extra_info("ssl_object")
                return told.getpeercert(True)


def configuration(namespace, port):
    """The chart's own, but for where it asks and whom it guards."""
    found = make.chart.objects(namespace=namespace)
    made = make.chart.only(found, "ValidatingWebhookConfiguration")
    for webhook in made["webhooks"]:
        webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}/admit"}
        webhook["namespaceSelector"] = {"matchLabels": {"guarded": namespace}}
    return made
