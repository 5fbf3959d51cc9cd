"""Our service with an engine that responds at once, which measures the service's own cost.

Everything else is as `agentworld.serving.main` starts it: the real ledger on a disk, a step durable
and chained before the response.
"""

import sys
from functools import partial
from pathlib import Path
from typing import NamedTuple

from agentworld.engine.base import Completion, CompletionRequest
from agentworld.engine.process import LOOPBACK
from agentworld.http.protection import Limits, most_connections
from agentworld.http.server import listen
from agentworld.ledger import Ledger
from agentworld.serving.app import create_app
from agentworld.serving.episodes.store import EpisodeStore
from agentworld.serving.setup import guard_of
from agentworld.serving.simulators.connections import Simulators
from agentworld.signing.keys import ensure_signer
from agentworld.statements.log_checkpoints import LogCheckpointSigner
from agentworld.storage.objects import ObjectStore, WriteOnce
from make import records
from make.service import ACCESS, of_one


class InstantEngine:
    """Returns one text for every request, without state."""

    def __init__(self, text: str) -> None:
        self._answer = Completion(text, len(text), len(text), "stop")

    async def complete(self, _request: CompletionRequest) -> Completion:
        return self._answer

    async def close(self) -> None: ...


class Parts(NamedTuple):
    """The parts of a service."""

    simulators: Simulators
    episode_store: EpisodeStore
    log_signer: LogCheckpointSigner


def parts_in(folder: str, text: str) -> Parts:
    """A service's parts, with its stores in a folder."""
    ledger = Ledger(f"sqlite:///{folder}/ledger.db", ObjectStore(f"file://{folder}/objects"))
    manifest, signer = records.manifest(), partial(ensure_signer, Path(folder) / "keys")
    log_signer = LogCheckpointSigner(
        ledger, manifest.digest, signer, WriteOnce(f"file://{folder}/mirror")
    )
    return Parts(*of_one(manifest, InstantEngine(text), ledger), log_signer)


def main(port: str, folder: str, text: str) -> None:
    app = create_app(*parts_in(folder, text), ACCESS)
    guard = guard_of(app.state.app_state, Limits(connections=most_connections()))
    listen(app, guard, LOOPBACK, int(port))


if __name__ == "__main__":
    main(*sys.argv[1:])
