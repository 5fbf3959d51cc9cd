"""The console as the chart starts it: a pod with a read-only file system, and a database user who
only reads.
"""

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml
from sqlalchemy import create_engine, make_url

import make.access
import make.chart
import make.console
from agentworld.engine.process import LOOPBACK, free_port
from agentworld.ledger import Ledger
from agentworld.signing.keys import SIMULATOR_KEYS, TRUSTED, load_signer, public_pem
from fakes.api_server import kubeconfig
from waiting import wait_for

pytestmark = pytest.mark.waits

TMP = "/of-the-pod"  # this machine's own may contain the repository
GUIDE = (make.chart.ROOT / "docs/guides/console.md").read_text()
(READER,) = re.findall(r"^```sql\n(.*?)^```", GUIDE, re.M | re.S)
(PASSWORD,) = re.findall(r"PASSWORD '(.*)'", READER)


@pytest.fixture(scope="module")
def library_and_reader(tmp_path_factory, postgres_server):
    """A library whose ledger is a PostgreSQL with a service's keys, and its reader's URL."""
    store = tmp_path_factory.mktemp("stores")
    with postgres_server.database() as url:
        ledger = Ledger(url)
        history = make.console.library(store, ledger)
        key = load_signer(store / "keys" / SIMULATOR_KEYS).public_key
        ledger.signing_keys.use(key.keyid, public_pem(key).decode("ascii"))
        reader = make_url(url).set(username="console", password=PASSWORD)
        with create_engine(url).begin() as connection:
            connection.exec_driver_sql(READER)
        yield history, reader.render_as_string(hide_password=False)
        ledger.close()
        with create_engine(url).begin() as connection:
            connection.exec_driver_sql("DROP OWNED BY console; DROP ROLE console")


@pytest.fixture(scope="module", params=["", "service-keys"], ids=["keys-told", "keys-held"])
def console(request, library_and_reader, tmp_path_factory):
    """The console's address, once it responds."""
    library, reader = library_and_reader
    folder, port = tmp_path_factory.mktemp("pod"), free_port()
    access = yaml.safe_load(make.access.access_file(folder).read_text())
    values = {"enabled": True, "proxySecret": "proxy", "serviceKeysConfigMap": request.param}
    objects = make.chart.objects({"console": values, "access": access})
    (folder / "kubeconfig").write_text(yaml.safe_dump(kubeconfig("http://127.0.0.1:9")))
    variables = {
        "AGENTWORLD_LEDGER_URL": reader,
        "AGENTWORLD_CONSOLE_PROXY_SECRET": "p" * 32,
        "AGENTWORLD_CONSOLE_PORT": str(port),
        "MLFLOW_TRACKING_URI": f"sqlite:///{TMP}/mlflow.db",  # an empty registry
        "KUBECONFIG": "/access/kubeconfig",  # in place of a pod's account
    }
    url = f"http://{LOOPBACK}:{port}"
    with run_console(objects, folder, library.library.store, variables):
        wait_for(lambda: is_healthy(url))
        yield url


@contextmanager
def run_console(objects, folder: Path, stores: Path, variables: dict[str, str]):
    """The container's process on a root that is read-only, with the mounts of its pod."""
    access = make.chart.only(objects, "ConfigMap", "agentworld-access")["data"]["access.yaml"]
    (folder / "access.yaml").write_text(access)
    (container,) = make.chart.pods(objects)["console"]["spec"]["containers"]
    environment = {
        variable["name"]: variable.get("value", "") for variable in container["env"]
    } | variables
    command = [sys.executable, *container["command"][1:]]
    trusted_keys = stores / "keys" / SIMULATOR_KEYS / TRUSTED
    folders = {"access": folder, "stores": stores, "service-keys": trusted_keys}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*pod(container["volumeMounts"], folders), *command],
            env=environment | {"TMPDIR": TMP, "HOME": TMP, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=log,
            stderr=log,
        )
    try:
        yield
        assert process.poll() is None, (folder / "log").read_text()
    finally:
        process.kill()
        process.wait()


def pod(mounts, folders: dict[str, Path]) -> list[str]:
    """A sandbox with this machine's files, read-only, and a pod's mounts."""
    command = ["bwrap", "--die-with-parent", "--unshare-user", "--uid", "65532", "--gid", "65532"]
    command += ["--tmpfs", "/"]
    for path in map(str, Path("/").iterdir()):
        command += ["--ro-bind-try", path, path] if path not in ("/dev", "/proc") else []
    command += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", TMP]
    for mount in mounts:
        if folder := folders.get(mount["name"]):
            command += ["--ro-bind" if mount.get("readOnly") else "--bind", str(folder)]
            command.append(mount["mountPath"])
    return [*command, "--remount-ro", "/"]


def is_healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz", trust_env=False).is_success
    except httpx.TransportError:
        return False


def get(url: str, **headers: str) -> httpx.Response:
    return httpx.get(url, headers=headers, trust_env=False)


def test_anonymous_callers_and_other_tenants_cannot_read_a_run(console, library_and_reader):
    run = f"{console}/runs/{library_and_reader[0].run}"
    assert get(run).status_code == 401
    assert get(run, authorization=make.access.bearer("rival-agent")).status_code == 404


def test_a_tenant_sees_its_run_as_verified(console, library_and_reader):
    answer = get(
        f"{console}/runs/{library_and_reader[0].run}",
        authorization=make.access.bearer("acme-agent"),
    )
    assert answer.status_code == 200
    assert ">verified<" in answer.text


def test_every_list_works_with_a_read_only_database_user(console):
    for page in ("", "runs", "agents", "simulators", "runs.csv"):
        answer = get(f"{console}/{page}", authorization=make.access.bearer("office-auditor"))
        assert answer.status_code == 200, page


def test_proxy_headers_identify_the_caller_only_with_the_right_secret(console, library_and_reader):
    names = {"tenant": "acme", "user": "jo", "roles": "agent", "proxy-secret": "p" * 32}
    headers = {f"x-agentworld-{name}": value for name, value in names.items()}
    run = f"{console}/runs/{library_and_reader[0].run}"
    assert get(run, **headers).status_code == 200
    assert get(run, **{**headers, "x-agentworld-proxy-secret": "q" * 32}).status_code == 401


def test_the_chart_accepts_the_values_of_the_guide():
    (values,) = re.findall(r"^```yaml\n(.*?)^```", GUIDE, re.M | re.S)
    assert "console" in make.chart.pods(make.chart.objects(yaml.safe_load(values)))


def test_every_value_named_in_the_guide_exists():
    values = yaml.safe_load((make.chart.CHART / "values.yaml").read_text())
    names = re.findall(rf"`((?:{'|'.join(values)})\.\w+)`", GUIDE)
    assert len(names) >= 5
    for name in names:
        part, _, field = name.partition(".")
        assert field in values[part], name
