"""Backups and restores of the chart and its guide, with a real PostgreSQL.

The commands are those of the rendered CronJobs and of the guide, so that neither can drift.
"""

import asyncio
import re
import shlex
import shutil
from pathlib import Path

import httpx
import pytest
from sqlalchemy import create_engine, make_url

import make.chart
import make.service
from agentworld.audit.checks.store import verify_everything
from agentworld.audit.read.sources import Sources
from agentworld.engine.fake import FakeEngine
from agentworld.lineage.memory import MemoryRegistry
from agentworld.operations.declarations import erase_episode
from agentworld.operations.ledger import open_evidence, open_ledger
from agentworld.operations.restore_backup import verify_backup
from agentworld.serving.app import create_app
from agentworld.serving.setup import log_signer_on_cluster
from agentworld.signing.keys import SIMULATOR_KEYS, ensure_signer
from agentworld.storage.backups import BackupStore
from agentworld.storage.objects import ObjectStore, WriteOnce
from agentworld.storage.stores import Stores
from machines import postgres
from machines.rendered_pod import RenderedPod
from make import records
from make.chart import ROOT

pytestmark = pytest.mark.waits

GUIDE = (ROOT / "docs/operate/backup.md").read_text()
NAME_IN_GUIDE = "20261128T021700.318Z"
BACKUP = {
    "enabled": True,
    "keep": 2,
    # A killed backup holds its lease for this time.
    "extraEnv": [{"name": "AGENTWORLD_LEASE_SECONDS", "value": "0.2"}],
}
KILLS = """
import os, re, signal
def killed(function):
    def call(source, target, **options):
        if re.search(os.environ["KILL_BEFORE"], str(target)):
            os.kill(os.getpid(), signal.SIGKILL)
        return function(source, target, **options)
    return call
os.replace, os.link = killed(os.replace), killed(os.link)
"""
"""Kills a program before a file gets a name that matches."""


class Installation:
    """A release of the chart in a namespace: databases, stores, keys, backups."""

    def __init__(self, folder: Path, server: postgres.Server, urls: tuple[str, str]) -> None:
        self.folder = folder
        self.server = server
        self.ledger_url, self.mlflow_url = urls
        self.folders = {f"/{name}": folder / name for name in ("stores", "backups", "keys", "work")}
        for path in self.folders.values():
            path.mkdir()
        ensure_signer(folder / "keys" / SIMULATOR_KEYS)
        self.backups = BackupStore(str(folder / "backups"))
        self.mirror = WriteOnce(str(folder / "stores/mirror"))
        self.objects = ObjectStore(str(folder / "stores/objects"))

    def pod(self, component: str) -> RenderedPod:
        """A pod of a CronJob of the chart, with an empty folder for work."""
        shutil.rmtree(self.folders["/work"])
        self.folders["/work"].mkdir()
        rendered = make.chart.pods(make.chart.objects({"backup": BACKUP}))[component]
        secrets = {
            ("agentworld-database", "agentworld-url"): self.ledger_url,
            ("agentworld-database", "mlflow-url"): self.mlflow_url,
        }
        return RenderedPod(rendered["spec"], self.folders, secrets, [postgres.programs()])

    def back_up(self) -> str:
        """Makes a complete backup, and returns its name."""
        pod = self.pod("backup")
        for name in containers(pod):
            pod.run(name)
        return self.backups.names()[-1]

    def play(self, word: str) -> tuple[str, str]:
        """Plays a signed run with a long text, and moves an alias; returns run and episode."""
        stores, ledger = Stores.of(self.folder), open_ledger(self.folder)
        manifest = records.manifest()
        engine = FakeEngine(lambda _: f"{word * 9000}\n[0] ~")
        parts = make.service.of_one(manifest, engine, ledger)
        signer = log_signer_on_cluster(stores, ledger)
        app = create_app(*parts, signer, make.service.ACCESS)
        transport = httpx.ASGITransport(app)

        async def work() -> tuple[str, str]:
            client = make.service.SimulatorClient("http://simulator", transport=transport)
            run = (await client.open_run(make.service.OPENING)).id
            episode = await make.service.play(client, "ls", run=run)
            await client.end(episode)
            await client.close()
            async with httpx.AsyncClient(
                transport=transport, base_url="http://simulator"
            ) as http_client:
                move = {"kind": "simulator", "simulator": manifest.digest, "by": "ada"}
                key = {"Idempotency-Key": word}
                (
                    await http_client.put("/aliases/stable", json=move, headers=key)
                ).raise_for_status()
            return run, episode

        ids = asyncio.run(work())
        signer.seal_all()
        ledger.close()
        return ids

    def lose_databases(self) -> None:
        """Replaces both databases by empty ones, as on another disk."""
        for url in (self.ledger_url, self.mlflow_url):
            name = make_url(url).database
            self.server.run(f"DROP DATABASE {name} WITH (FORCE)")
            self.server.run(f"CREATE DATABASE {name}")

    def restore(self, name: str) -> RenderedPod:
        """Restores files and databases by the guide's commands, and returns the pod."""
        pod, commands = self.pod("restore"), list(guide_commands("Restore on a cluster"))
        files = [words for _, words in commands if words[:3] == ["agentworld", "backup", "restore"]]
        databases = [words for container, words in commands if container == "postgres"]
        assert (len(files), len(databases)) == (1, 2)
        pod.run("agentworld", [word.replace(NAME_IN_GUIDE, name) for word in files[0]])
        for words in databases:
            pod.run("postgres", words)
        return pod

    def problems(self) -> list[str]:
        """The problems of `audit verify`."""
        ledger = open_ledger(self.folder)
        evidence = open_evidence(self.folder, ledger)
        sources = Sources(MemoryRegistry(), ledger, self.folder, evidence)
        try:
            return list(verify_everything(sources).problems)
        finally:
            ledger.close()

    def text(self, episode: str) -> str:
        """A simulator's text in an episode."""
        ledger = open_ledger(self.folder)
        try:
            return ledger.episode(episode).steps[0].observation
        finally:
            ledger.close()


@pytest.fixture
def installation(tmp_path, monkeypatch, postgres_server):
    with postgres_server.database() as ledger_url, postgres_server.database() as mlflow_url:
        new_installation = Installation(tmp_path, postgres_server, (ledger_url, mlflow_url))
        monkeypatch.setenv("AGENTWORLD_LEDGER_URL", ledger_url)
        monkeypatch.setenv("AGENTWORLD_OBJECTS_URL", str(tmp_path / "stores/objects"))
        monkeypatch.setenv("AGENTWORLD_MIRROR_URL", str(tmp_path / "stores/mirror"))
        monkeypatch.setenv("AGENTWORLD_KEYS", str(tmp_path / "keys"))
        yield new_installation


def containers(pod):
    return [item["name"] for item in (*pod.spec["initContainers"], *pod.spec["containers"])]


def guide_commands(section):
    """Each container with a command that the guide runs in it."""
    text = GUIDE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    for line in re.findall(r"^kubectl .* exec job/restore .*", text, re.M):
        words = shlex.split(line)
        yield words[words.index("--container") + 1], words[words.index("--") + 1 :]


def audit_restored(pod, *, declared):
    [words] = [
        words
        for _, words in guide_commands("Restore on a cluster")
        if words[:3] == ["agentworld", "audit", "restored"] and ("--reason" in words) == declared
    ]
    return set(re.findall(r"[\w./-]+\.dsse\.json", pod.run("agentworld", words)))


def row_of_mlflow(installation, statement):
    engine = create_engine(installation.mlflow_url)
    with engine.begin() as connection:
        result = connection.exec_driver_sql(statement)
        return result.scalars().all() if result.returns_rows else None


def test_a_lost_database_is_restored_and_exactly_the_later_statements_are_declared(
    installation,
):
    row_of_mlflow(installation, "CREATE TABLE models AS SELECT 'world' AS name")
    _, episode = installation.play("a")
    name = installation.back_up()
    known_names = set(installation.mirror.names())
    later_run, _ = installation.play("b")
    installation.lose_databases()
    installation.objects.erase(installation.objects.digests()[0])
    pod = installation.restore(name)
    lost_names = audit_restored(pod, declared=False)
    assert lost_names == set(installation.mirror.names()) - known_names
    assert {text.partition("/")[0] for text in lost_names} == {later_run, "alias-changes"}
    assert installation.problems()
    assert audit_restored(pod, declared=True) == lost_names
    assert installation.problems() == []
    assert installation.text(episode).startswith("aaaa")
    assert row_of_mlflow(installation, "SELECT name FROM models") == ["world"]


def test_statements_written_during_a_backup_are_declared_lost_after_a_full_restore(
    installation,
):
    _, episode = installation.play("a")
    pod = installation.pod("backup")
    pod.run("begin")
    _, second_episode = installation.play("b")
    pod.run("dump")
    dumped_names = set(installation.mirror.names())
    erase_episode(episode, installation.folder, "ada")
    installation.play("c")
    pod.run("finish")
    [name] = installation.backups.names()
    lost_names = set(installation.mirror.names()) - dumped_names
    installation.lose_databases()
    shutil.rmtree(installation.folders["/stores"])
    installation.folders["/stores"].mkdir()
    pod = installation.restore(name)
    assert audit_restored(pod, declared=True) == lost_names
    assert installation.problems() == []
    assert installation.text(episode).startswith("aaaa")
    assert installation.text(second_episode).startswith("bbbb")
    erase_episode(episode, installation.folder, "ada")
    assert installation.problems() == []
    assert installation.text(episode) is None


def test_a_killed_backup_leaves_no_complete_backup_and_the_next_one_succeeds(
    installation, tmp_path
):
    installation.play("a")
    names = [installation.back_up()]
    installation.play("b")
    hook = tmp_path / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(KILLS)
    path = {"PYTHONPATH": f"{hook}:{ROOT / 'platform'}"}
    kills = [("begin", "/objects/"), ("finish", "/mirror/"), ("finish", "manifest.json")]
    for container, file in kills:
        pod = installation.pod("backup")
        for earlier in containers(pod)[: containers(pod).index(container)]:
            pod.run(earlier)
        process = pod.start(container, KILL_BEFORE=file, **path)
        assert process.returncode == -9, process.stderr
        assert installation.backups.names() == names
        assert verify_backup(str(tmp_path / "backups"), names[0]) == []
    names.append(installation.back_up())
    assert installation.backups.names() == names
    assert verify_backup(str(tmp_path / "backups"), names[1]) == []
    backup_names = {path.parent.name for path in (tmp_path / "backups/backups").glob("*/[!.]*")}
    assert backup_names == set(names)


def test_a_failed_dump_ends_the_backup_with_an_error(installation):
    pod = installation.pod("backup")
    pod.run("begin")
    failed_dump = pod.start("dump", LEDGER_URL=f"{installation.ledger_url}_gone")
    assert failed_dump.returncode != 0
    refused_dump = pod.start("dump", MLFLOW_URL="mysql://host/mlflow")
    assert "set backup.mlflow to false" in refused_dump.stderr
    assert refused_dump.returncode == 1
