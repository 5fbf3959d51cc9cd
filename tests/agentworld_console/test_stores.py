"""A console over a store in a bucket and an MLflow server, as on a cluster."""

import math
import re
from typing import NamedTuple

import pytest
from fsspec.core import url_to_fs

import make.console
import make.ledger
from agentworld.errors import InputError
from agentworld.ledger import Ledger
from agentworld.lineage.mlflow import MlflowRegistry
from agentworld.storage.objects import ObjectStore
from agentworld_console.library import Records, open_library
from machines import mlflow_server
from make import records
from make.console import ConsoleStore

pytestmark = pytest.mark.waits
LONG = "a long observation " * 1_000


class Deployment(NamedTuple):
    content: ConsoleStore
    long: str
    """An episode whose text is an object."""
    url: str
    server: mlflow_server.MlflowServer


@pytest.fixture(scope="module")
def deployment(bucket, tmp_path_factory):
    """The output of a service and steps; only the ledger is on a disk."""
    folder, store = tmp_path_factory.mktemp("ledger"), tmp_path_factory.mktemp("store")
    server_folder, url = tmp_path_factory.mktemp("mlflow"), f"{bucket}/console"
    with mlflow_server.serving(server_folder) as server, pytest.MonkeyPatch.context() as patch:
        address = f"http://127.0.0.1:{server.port}"
        ledger_url = make.ledger.laid(f"sqlite:///{folder}/ledger.db")
        ledger = Ledger(ledger_url, ObjectStore(f"{url}/objects"))
        history = make.console.library(store, ledger, MlflowRegistry(address))
        run = ledger.open_run(make.console.opening("acme"), history.simulator, tenant="acme").id
        long = make.console.play(ledger, run, history.simulator, LONG)
        make.console.log_signer(store, ledger, history.simulator).seal_all()
        upload(store, url)
        for name, value in (
            ("AGENTWORLD_LEDGER_URL", ledger_url),
            ("AGENTWORLD_SCRATCH", str(folder / "scratch")),
            ("AGENTWORLD_MLFLOW_PATIENCE_SECONDS", "1"),
            ("MLFLOW_TRACKING_URI", address),
        ):
            patch.setenv(name, value)
        yield Deployment(history, long, url, server)


@pytest.fixture(scope="module")
def library(deployment):
    """The library as the console opens it."""
    return open_library(deployment.url)


@pytest.fixture
def auditor(library, tmp_path):
    return make.console.client(make.console.app(library, tmp_path), "office-auditor")


def upload(store, url):
    system, base = url_to_fs(url)
    for path in store.rglob("*"):
        if path.is_file() and "private" not in path.name:
            system.put_file(str(path), f"{base}/{path.relative_to(store)}")


@pytest.mark.parametrize("name", make.console.ConsoleStore(*"x" * 11).pages)
def test_every_page_loads_from_a_bucket_and_an_mlflow_server(auditor, deployment, name):
    answer = auditor.get(deployment.content.pages[name])
    assert answer.status_code == (404 if name == "search" else 200)


def test_pages_show_the_records_in_the_bucket(auditor, deployment):
    history = deployment.content
    assert '<span class="state good">verified</span>' in auditor.get(f"/runs/{history.run}").text
    simulator = auditor.get(f"/simulators/{history.simulator}").text
    for fragment in ("transformers-serve 5.19.0", "free_running.exact_match", ">observed<"):
        assert fragment in simulator
    agent = auditor.get(f"/agents/{history.agent}").text
    assert '<th scope="row">imitated</th>' in agent
    assert records.digest("data") in agent
    assert str(history.agent) in auditor.get("/in-use.csv").text
    assert "world model" in auditor.get(f"/graph?agent={history.agent}").text


def test_a_text_stored_as_an_object_is_read_from_the_bucket(auditor, deployment):
    page = auditor.get(f"/episodes/{deployment.long}").text
    assert "verified" in page
    assert LONG not in page
    assert auditor.get(f"/episodes/{deployment.long}/1/observation.txt").text == LONG


def test_a_simulator_added_to_the_bucket_appears_once_the_cache_is_stale(
    deployment, library, tmp_path
):
    domains = records.pinned_domains(system_prompt=f"put there from {tmp_path}")
    simulator = records.pinned(tmp_path, domains=domains)
    fresh, stale = (Records(deployment.url, stale_seconds) for stale_seconds in (math.inf, 0))
    upload(tmp_path / "simulators", f"{deployment.url}/simulators")

    def page(cache):
        app = make.console.app(library._replace(records=cache), tmp_path)
        auditor = make.console.client(app, "office-auditor")
        return auditor.get(f"/simulators/{simulator.digest}")

    assert page(fresh).status_code == 404
    assert str(tmp_path) in page(stale).text


def test_an_unreachable_registry_times_out_and_leaves_runs_readable(auditor, deployment):
    with deployment.server.away():
        failed = auditor.get("/agents")
        assert failed.status_code == 503
        assert re.search(r"did not respond for \d s", failed.text)
        assert auditor.get(f"/runs/{deployment.content.open_run}").status_code == 200
        assert auditor.get(f"/episodes/{deployment.content.episode}").status_code == 200
    deployment.server.wait()
    assert auditor.get("/agents").status_code == 200


@pytest.mark.parametrize("name", ["AGENTWORLD_LEDGER_URL", "MLFLOW_TRACKING_URI"])
def test_a_bucket_store_without_a_database_address_is_refused(deployment, monkeypatch, name):
    monkeypatch.delenv(name)
    with pytest.raises(InputError, match=f"is a bucket, which cannot hold a .*; set {name}"):
        open_library(deployment.url)
