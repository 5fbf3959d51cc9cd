"""The files, ports and manifests of one campaign, and the commands of its processes."""

import asyncio
import json
import secrets
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import agentworld
from agentworld.audit.read.evidence import Evidence
from agentworld.ledger import Ledger
from agentworld.pinning.manifest import check_code
from agentworld.records.base import digest_bytes
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.simulator import SimulatorManifest
from agentworld.serving.episodes.store import EpisodeStore
from agentworld.signing.keys import SIMULATOR_KEYS, ensure_signer, load_trusted
from agentworld.statements.log_checkpoints import LogCheckpointSigner
from agentworld.storage.objects import ObjectStore, WriteOnce
from campaigns.harness.processes import Command
from campaigns.harness.proxy import LOOPBACK
from campaigns.service import law
from make import records
from make.weights import weights

ENGINE_TIMEOUT_SECONDS = 1.0
VERSIONS = ("first", "second")
"""The second one sometimes replaces the first."""
_ROOT = Path(__file__).parents[2]


class Place(NamedTuple):
    """A folder, and the address of its ledger."""

    folder: Path
    ledger_url: str
    service_ledger_url: str
    """The same through an unreliable network, for the services."""

    @classmethod
    def create(cls, folder: Path, ledger_url: str, service_ledger_url: str) -> "Place":
        """Creates it with a manifest for each version."""
        (folder / "model").mkdir(parents=True)
        (folder / "model/model.safetensors").write_bytes(weights())
        for version in VERSIONS:
            _manifest(version).write(folder / f"{version}.json")
        return cls(folder, ledger_url, service_ledger_url)

    def manifest(self, version: str) -> SimulatorManifest:
        """The manifest of a version."""
        return SimulatorManifest.read(self.folder / f"{version}.json")

    def service(self, version: str, port: int, engines: list[int]) -> Command:
        """The command and the environment of a service."""
        environment = {
            "AGENTWORLD_MANIFEST": str(self.folder / f"{version}.json"),
            "AGENTWORLD_MODEL_FOLDER": str(self.folder / "model"),
            "AGENTWORLD_ENGINE_URLS": json.dumps([f"http://{LOOPBACK}:{p}" for p in engines]),
            "AGENTWORLD_ENGINE_MODEL": version,
            "AGENTWORLD_ENGINE_TIMEOUT_SECONDS": str(ENGINE_TIMEOUT_SECONDS),
            "AGENTWORLD_LEDGER_URL": self.service_ledger_url,
            "AGENTWORLD_OBJECTS_URL": str(self.folder / "objects"),
            "AGENTWORLD_MIRROR_URL": str(self.folder / "mirror"),
            "AGENTWORLD_ACCESS": "local",
            "AGENTWORLD_KEYS": str(self.folder / "keys"),
            "AGENTWORLD_PORT": str(port),
            "PYTHONPATH": str(Path(agentworld.__file__).parents[1]),
        }
        return [sys.executable, "-m", "agentworld.serving.main"], environment

    def engine(self, name: str, version: str, port: int, rate: float, seed: str) -> Command:
        """The command and the environment of an engine, which keeps its secret across restarts."""
        options = {
            "name": name,
            "version": version,
            "secret": self.secret(name),
            "port": port,
            "folder": self.folder,
            "rate": rate,
            "timeout": ENGINE_TIMEOUT_SECONDS,
            "seed": seed,
        }
        arguments = [word for key, value in options.items() for word in (f"--{key}", str(value))]
        return [sys.executable, "-m", "campaigns.service.engine", *arguments], {
            "PYTHONPATH": str(_ROOT)
        }

    def ledger(self) -> Ledger:
        """The ledger, without the services."""
        return Ledger(self.ledger_url, ObjectStore(str(self.folder / "objects")))

    def evidence(self) -> Evidence:
        """An auditor's evidence."""
        trusted_keys = load_trusted(self.folder / "keys" / SIMULATOR_KEYS)
        return Evidence(trusted_keys, WriteOnce(str(self.folder / "mirror")))

    @contextmanager
    def housekeeper(self, version: str) -> Iterator["Housekeeper"]:
        """A replica without clients: it can end episodes and sign logs."""
        simulator, copies = self.manifest(version).digest, WriteOnce(f"{self.folder}/mirror")
        signer = partial(ensure_signer, self.folder / "keys" / SIMULATOR_KEYS)
        with closing(self.ledger()) as ledger:
            log_signer = LogCheckpointSigner(ledger, simulator, signer, copies)
            yield Housekeeper(EpisodeStore(ledger, simulator=simulator), log_signer)

    def secret(self, engine: str) -> str:
        """The secret that an engine and the checker share."""
        path = self.folder / "secrets" / engine
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_text(secrets.token_hex(16))
        return path.read_text()


class Housekeeper(NamedTuple):
    """The periodic work of a replica."""

    episode_store: EpisodeStore
    log_signer: LogCheckpointSigner

    async def work(self, idle_seconds: float) -> None:
        """Ends episodes that were idle that long, and signs new entries."""
        await self.episode_store.expire(idle_seconds)
        await asyncio.to_thread(self.log_signer.seal_all)


def _manifest(version: str) -> SimulatorManifest:
    files = {"model.safetensors": digest_bytes(weights())}
    manifest = records.manifest(
        files=files,
        artifact=ArtifactManifest(files=files).digest,
        control_text=f"You are the {version}.",
        sampling={"temperature": 1.0},
        context_tokens=law.CONTEXT_TOKENS,
        engine={"kind": "vllm", "version": law.ENGINE_VERSION, "lock": records.digest("lock")},
        retry={"attempts": 2, "retry_on": ["engine", "slow", "capacity", "cut-off", "unparsable"]},
    )
    check_code(manifest)
    return manifest
