"""Signing the logs of runs, at intervals and when a run is closed, with a copy elsewhere.

The copy is written first and once: whoever shortens the ledger, or restores an old one, does
not know how to take it back.
"""

from contextlib import suppress
from threading import Lock

from agentworld.errors import Conflict, EvidenceError, InputError
from agentworld.evidence.checkpoint import RunCheckpoint, sign_checkpoint
from agentworld.evidence.keys import Signer, TrustedKeys
from agentworld.evidence.merkle import MerkleTree
from agentworld.evidence.weights import RunWeights, check_weights
from agentworld.ledger import Ledger
from agentworld.records.base import Digest
from agentworld.records.run import AgentRun, RunClosing
from agentworld.storage.objects import WriteOnce


class Sealer:
    """Signs for one simulator. Calls block; several replicas may seal the same run."""

    def __init__(
        self,
        ledger: Ledger,
        simulator: Digest,
        signer: Signer,
        second_store: WriteOnce,
        step_keys: TrustedKeys | None = None,
    ) -> None:
        self._ledger = ledger
        self._simulator = simulator
        self._signer = signer
        self._step_keys = step_keys or {}
        self._second_store = second_store
        self._trees: dict[str, MerkleTree] = {}
        self._turn = Lock()

    def check_closing(self, run: AgentRun, closing: RunClosing) -> None:
        """Raises InputError for a signature that no step's key made over just these weights."""
        if closing.signature is None:
            return
        made = RunWeights(run=run.id, simulator=run.simulator, weights=closing.final_weights)
        try:
            check_weights(made, closing.signature, self._step_keys)
        except EvidenceError as error:
            raise InputError(f"the run cannot be closed with this signature: {error}") from error

    def seal_all(self) -> int:
        """Signs every log that grew since it was signed last; returns how many."""
        grown = self._ledger.unsealed(self._simulator)
        for run in grown:
            self.seal(run)
        with self._turn:  # a run that stands still is not kept in memory
            self._trees = {run: tree for run, tree in self._trees.items() if run in grown}
        return len(grown)

    def seal(self, run: str) -> None:
        """Signs a log as it is now."""
        checkpoint = self._checkpoint(run)
        envelope = sign_checkpoint(checkpoint, self._signer)
        # Another replica, with a key of its own, may have signed the same length.
        with suppress(Conflict):
            self._second_store.put(checkpoint_name(run, checkpoint.length), envelope)
            self._ledger.add_checkpoint(run, checkpoint.length, envelope)

    def _checkpoint(self, run: str) -> RunCheckpoint:
        with self._turn:
            tree = self._trees.setdefault(run, MerkleTree())
            for entry in self._ledger.log(run, after=len(tree)):
                tree.append(entry.body)
            return RunCheckpoint(
                run=run, simulator=self._simulator, length=len(tree), root=tree.root
            )


def checkpoint_name(run: str, length: int) -> str:
    """Where the copy of a checkpoint is; names sort by length."""
    return f"{run}/{length:012d}.dsse.json"
