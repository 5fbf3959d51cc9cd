"""A service of many simulators, with scripted engines that respond with their simulator's name."""

import asyncio
from collections import Counter
from functools import partial
from pathlib import Path
from typing import NamedTuple

import make.ledger
from agentworld.access import Access
from agentworld.engine.fake import FakeEngine
from agentworld.errors import AgentworldError, NotFound
from agentworld.ledger import Ledger
from agentworld.records.simulator import SimulatorManifest
from agentworld.serving.app import create_app
from agentworld.serving.episodes.store import EpisodeStore
from agentworld.serving.simulators.base import Catalog, ConnectedSimulator, SimulatorRequest
from agentworld.serving.simulators.connections import Simulators
from agentworld.signing.keys import SIMULATOR_KEYS, STEP_KEYS, ensure_signer, load_trusted
from agentworld.statements.log_checkpoints import LogCheckpointSigner
from agentworld.storage.objects import WriteOnce
from make import records
from make.service import ACCESS

FIRST = records.manifest(control_text="You are the first.")
SECOND = records.manifest(control_text="You are the second.")
NAMES = {FIRST.digest: "first", SECOND.digest: "second"}


class Catalogue:
    """The available simulators by digest, and the aliases, independent of the service."""

    single: ConnectedSimulator | None = None

    def __init__(self) -> None:
        self.manifests: dict[str, SimulatorManifest] = {m.digest: m for m in (FIRST, SECOND)}
        self.engines = {digest: Closing(name) for digest, name in NAMES.items()}
        self.aliases = {"stable": FIRST.digest, "canary": SECOND.digest}
        self.states = {digest: {f"http://{name}": "closed"} for digest, name in NAMES.items()}
        self.num_found: Counter[str] = Counter()
        self.failing: AgentworldError | None = None

    async def find(self, simulator: str) -> ConnectedSimulator:
        self.num_found[simulator] += 1
        await asyncio.sleep(0.01)
        if self.failing:
            raise self.failing
        if simulator not in self.manifests:
            raise NotFound(f"there is no simulator {simulator}; pin one")
        states = partial(self.states.__getitem__, simulator)
        return ConnectedSimulator(self.manifests[simulator], self.engines[simulator], states)

    async def resolve(self, request: SimulatorRequest) -> str:
        name = request.simulator
        if request.is_by_digest:
            return name
        if name not in self.aliases:
            raise NotFound(f"there is no alias {name!r}; set it, or give a digest")
        return self.aliases[name]


class Closing(FakeEngine):
    """Responds with its name and the action, and records whether it was closed."""

    def __init__(self, name: str) -> None:
        super().__init__(lambda messages: f"{name}: {messages[-1]['content']}\n[0] ~")
        self.is_closed = False

    async def close(self) -> None:
        self.is_closed = True


class Parts(NamedTuple):
    """The parts of a service."""

    simulators: Simulators
    episode_store: EpisodeStore
    log_signer: LogCheckpointSigner
    access: Access


def parts(folder: Path, catalogue: Catalog, access: Access = ACCESS, kind=Ledger) -> Parts:
    """The parts of one replica; all replicas of a folder share its ledger."""
    ledger = kind(make.ledger.laid(f"sqlite:///{folder / 'ledger.db'}"))
    keys, steps = (folder / "keys" / item for item in (SIMULATOR_KEYS, STEP_KEYS))
    signer, trusted = partial(ensure_signer, keys), partial(load_trusted, keys)
    ensure_signer(steps)
    episode_store = EpisodeStore(ledger)
    copies = WriteOnce(str(folder / "mirror"))
    step_keys = partial(load_trusted, steps)
    log_signer = LogCheckpointSigner(
        ledger, None, signer, copies, trusted=trusted, step_keys=step_keys
    )
    return Parts(
        Simulators(episode_store, catalogue),
        episode_store,
        log_signer,
        access,
    )


def app(folder: Path, catalogue: Catalog, access: Access = ACCESS, kind=Ledger):
    """A replica."""
    return create_app(*parts(folder, catalogue, access, kind))
