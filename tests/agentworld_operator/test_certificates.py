"""The rounds of the leader over the webhook's certificates, before a cluster in memory."""

import asyncio
import base64
import copy
import threading
from datetime import UTC, datetime, timedelta

import pytest

from agentworld.errors import ClusterError
from agentworld_operator.authority import read_certificates
from agentworld_operator.certificates import CertificateRenewal, CertificateTarget

NOW = datetime(2026, 11, 22, tzinfo=UTC)
SECRET = ("Secret", "agentworld-webhook")
CONFIGURATION = ("ValidatingWebhookConfiguration", "agentworld")


class Objects:
    """Takes a write only over what was read, and remembers what was written."""

    def __init__(self):
        client = {"url": "https://127.0.0.1:9443/admit"}
        webhooks = [{"clientConfig": dict(client)}, {"clientConfig": dict(client)}]
        metadata = {"name": "agentworld", "resourceVersion": "1"}
        empty = {"metadata": {"name": SECRET[1], "resourceVersion": "1"}}
        self.there = {CONFIGURATION: {"metadata": metadata, "webhooks": webhooks}, SECRET: empty}
        self.written = []

    def get(self, kind, name):
        return copy.deepcopy(self.there.get((kind, name)))

    def replace(self, made):
        known = self.there[made["kind"], made["metadata"]["name"]]["metadata"]["resourceVersion"]
        if made["metadata"]["resourceVersion"] != known:
            raise ClusterError("somebody was faster", status=409)
        return self._write(made, str(int(known) + 1))

    def _write(self, made, version):
        named = made["kind"], made["metadata"]["name"]
        self.there[named] = made | {"metadata": made["metadata"] | {"resourceVersion": version}}
        self.written.append(named)

    @property
    def files(self):
        data = self.there[SECRET]["data"]
        return {name: base64.b64decode(content) for name, content in data.items()}

    @property
    def bundles(self):
        webhooks = self.there[CONFIGURATION]["webhooks"]
        return {base64.b64decode(each["clientConfig"]["caBundle"]) for each in webhooks}


class Rounds:
    """At moments that a test says."""

    def __init__(self):
        self.now, self.objects = NOW, Objects()
        told = CertificateTarget(SECRET[1], CONFIGURATION[1], ("127.0.0.1",))
        self.renewal = CertificateRenewal(self.objects, told, lambda: self.now)

    def round(self, after=timedelta()):
        """What was written in the next round."""
        self.now += after
        self.objects.written.clear()
        self.renewal.round()
        return self.objects.written


@pytest.fixture
def rounds():
    return Rounds()


def test_the_first_round_fills_an_empty_secret_and_tells_every_webhook_whom_to_believe(rounds):
    assert rounds.round() == [SECRET, CONFIGURATION]
    assert rounds.objects.bundles == {rounds.objects.files["ca.crt"]}


def test_nothing_is_written_while_nothing_is_due(rounds):
    rounds.round()
    assert rounds.round(timedelta(days=59)) == []


def test_a_serving_certificate_is_renewed_and_the_bundle_stays(rounds):
    rounds.round()
    before = rounds.objects.files
    assert rounds.round(timedelta(days=60)) == [SECRET]
    assert rounds.objects.files["ca.crt"] == before["ca.crt"]
    assert rounds.objects.files["tls.crt"] != before["tls.crt"]


def test_a_new_authority_is_told_a_round_before_it_signs(rounds):
    rounds.round()
    old = rounds.objects.files
    assert rounds.round(timedelta(days=2434)) == [SECRET, CONFIGURATION]
    told = rounds.objects.files
    assert told["tls.crt"] == old["tls.crt"]
    assert told["ca.crt"].endswith(old["ca.crt"])
    assert rounds.objects.bundles == {told["ca.crt"]}
    assert rounds.round() == [SECRET]
    signed = read_certificates(rounds.objects.files)
    assert signed.serving.signed_by == signed.authority.id


def test_a_bundle_that_somebody_took_away_is_told_again(rounds):
    rounds.round()
    for webhook in rounds.objects.there[CONFIGURATION]["webhooks"]:
        del webhook["clientConfig"]["caBundle"]
    assert rounds.round() == [CONFIGURATION]


def test_a_secret_that_is_gone_is_not_made_anew(rounds, caplog):
    del rounds.objects.there[SECRET]
    assert rounds.round() == []
    assert "`helm upgrade` makes it anew" in caplog.text


def test_without_a_configuration_there_is_a_certificate_all_the_same(rounds):
    del rounds.objects.there[CONFIGURATION]
    assert rounds.round() == [SECRET]


def test_a_round_that_was_interrupted_is_gone_on_with(rounds):
    rounds.round()
    bundle = rounds.objects.files["ca.crt"]
    rounds.objects.there[CONFIGURATION] = Objects().there[CONFIGURATION]
    assert rounds.round() == [CONFIGURATION]
    assert rounds.objects.bundles == {bundle}


def test_a_round_under_way_writes_nothing_once_another_one_may_lead(rounds):
    asked, answered = threading.Event(), threading.Event()

    class Slow(Objects):
        def get(self, kind, name):
            asked.set()
            answered.wait()
            return super().get(kind, name)

    rounds.objects = slow = Slow()

    async def run():
        renewal = CertificateRenewal(
            slow, CertificateTarget(SECRET[1], CONFIGURATION[1], ("me",)), lambda: NOW
        )
        running = asyncio.create_task(renewal.run(60))
        await asyncio.to_thread(asked.wait)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        answered.set()

    asyncio.run(run())  # which waits for the thread
    assert slow.written == []
