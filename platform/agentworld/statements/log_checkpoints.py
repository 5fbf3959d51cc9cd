"""Signs the logs of runs, at intervals and when a run is closed, with a copy in the evidence
mirror. The copy is written first and only once: an attacker who shortens the ledger, or restores an
old one, cannot remove it. Keys are read when they are needed, because they may be rotated.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import NamedTuple, TypeVar

from agentworld.errors import Conflict, EvidenceError, InputError, StoreError
from agentworld.ledger import Ledger
from agentworld.records.base import Digest
from agentworld.records.run import AgentRun, RunClosing
from agentworld.signing.checkpoint import (
    RunCheckpoint,
    checkpoint_name,
    read_checkpoint,
    sign_checkpoint,
)
from agentworld.signing.keys import Signer, TrustedKeys
from agentworld.signing.merkle import MerkleTree
from agentworld.signing.traffic import TrafficCount
from agentworld.signing.weights import RunWeights, check_weights
from agentworld.statements.signer import StatementSigner
from agentworld.storage.objects import WriteOnce

_Keys = TypeVar("_Keys")


class LogCheckpointSigner:
    """Signs the logs of one simulator, or of all.

    Calls block; several replicas may sign the same run.
    """

    def __init__(
        self,
        ledger: Ledger,
        simulator: Digest | None,
        signer: Callable[[], Signer],
        mirror: WriteOnce,
        *,
        trusted: Callable[[], TrustedKeys] = dict,
        step_keys: Callable[[], TrustedKeys] = dict,
    ) -> None:
        self._ledger = ledger
        self._simulator = simulator
        self._signer = signer
        self._mirror = mirror
        self._trusted = trusted
        self._step_keys = step_keys
        self._read: dict[str, _LogState] = {}
        self._turn = Lock()
        self.statement_signer = StatementSigner(
            ledger,
            partial(_read, signer),
            mirror,
            trusted=partial(_read, trusted),
            step_keys=partial(_read, step_keys),
        )
        """Signs statements beside the logs with the same keys."""

    def check_closing(self, run: AgentRun, closing: RunClosing) -> None:
        """Raises InputError for a signature that is not of a step's key over these weights."""
        if closing.signature is None:
            return
        weights = RunWeights(run=run.id, simulator=run.simulator, weights=closing.final_weights)
        trusted = _read(self._step_keys)
        try:
            check_weights(weights, closing.signature, trusted)
        except EvidenceError as error:
            raise InputError(f"the run cannot be closed with this signature: {error}") from error

    def seal_all(self) -> int:
        """Signs every log that grew since its last checkpoint; returns their number."""
        runs = self._ledger.logs.unsealed_runs(self._simulator)
        problems = []
        for run in runs:
            try:
                self.seal(run)
            except EvidenceError as error:  # one forked log does not prevent the others
                problems.append(str(error))
        with self._turn:  # an idle run is not kept in memory
            self._read = {run: read for run, read in self._read.items() if run in runs}
        if problems:
            raise EvidenceError("; ".join(problems))
        return len(runs)

    def seal(self, run: str) -> None:
        """Signs the current log; raises EvidenceError if another log was signed for this run.

        Raises Conflict if the evidence mirror belongs to another ledger.
        """
        self.statement_signer.check_own()
        checkpoint = self._checkpoint(run)
        envelope = self._copy(checkpoint)
        with suppress(Conflict):  # another replica was faster, with the same copy
            self._ledger.logs.add_checkpoint(run, checkpoint.length, envelope)

    def seal_end(self, run: str) -> None:
        """Signs a log to its end; does nothing if that was done."""
        if run in self._ledger.logs.unsealed_runs(self._ledger.owner(run).simulator):
            self.seal(run)

    def _copy(self, checkpoint: RunCheckpoint) -> bytes:
        """The evidence mirror's checkpoint of this length: ours, or an equal one by another key."""
        name = checkpoint_name(checkpoint.run, checkpoint.length)
        envelope = sign_checkpoint(checkpoint, _read(self._signer))
        try:
            self._mirror.put(name, envelope)
        except Conflict:
            envelope = self._mirror.get(name)
            _check_same(checkpoint, envelope, _read(self._trusted))
        return envelope

    def _checkpoint(self, run: str) -> RunCheckpoint:
        with self._turn:
            tree, traffic = self._read.setdefault(run, _LogState(MerkleTree(), TrafficCount()))
            for entry in self._ledger.logs.entries(run, after=len(tree)):
                tree.append(entry.body)
                traffic.add(entry.readable_fields)
            return RunCheckpoint(
                run=run,
                simulator=self._ledger.owner(run).simulator,
                length=len(tree),
                root=tree.root,
                traffic=traffic.total,
            )


class _LogState(NamedTuple):
    """The part of a log that has been read."""

    tree: MerkleTree
    traffic: TrafficCount


def _read(keys: Callable[[], _Keys]) -> _Keys:
    """Reads the service's keys; raises StoreError, as a failure is not the caller's mistake."""
    try:
        return keys()
    except InputError as error:
        raise StoreError(f"the service cannot read its keys: {error}") from error


def _check_same(checkpoint: RunCheckpoint, envelope: bytes, keys: TrustedKeys) -> None:
    try:
        stored = read_checkpoint(envelope, keys)
    except EvidenceError as error:
        raise EvidenceError(
            f"{checkpoint.length} entries of run {checkpoint.run} cannot be signed, for what the"
            f" evidence mirror holds of them does not verify: {error}"
        ) from error
    if stored != checkpoint:
        raise EvidenceError(
            f"the log of run {checkpoint.run} has forked: of {checkpoint.length} entries the second"
            f" store holds {stored.root} of run {stored.run}, and the ledger has {checkpoint.root};"
            " stop what serves it, and find out which of the two is true"
        )
