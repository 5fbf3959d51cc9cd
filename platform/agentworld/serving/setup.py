"""The setup that all service processes share."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

from agentworld.access import Access
from agentworld.access.checked import CheckedAccess, LocalAccess
from agentworld.access.reloaded import ReloadedAccess
from agentworld.access.run_token import RunTokens
from agentworld.errors import InputError
from agentworld.http.protection import Guard, Limits
from agentworld.ledger import Ledger
from agentworld.records.base import Digest
from agentworld.serving.authorized_service import AppState
from agentworld.signing.keys import (
    SIMULATOR_KEYS,
    STEP_KEYS,
    Signer,
    TrustedKeys,
    ensure_signer,
    load_signer,
    load_trusted,
)
from agentworld.statements.log_checkpoints import LogCheckpointSigner
from agentworld.statements.mounted_keys import MountedKeys, read_trusted_keys
from agentworld.statements.signer import StatementSigner
from agentworld.storage.objects import WriteOnce
from agentworld.storage.stores import Stores

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def access_of(tokens: RunTokens, access: Literal["local"] | Path, host: str) -> Access:
    """The access control; raises InputError if it is `local` and other machines could connect."""
    if access != "local":
        return CheckedAccess(ReloadedAccess(access), tokens)
    if host not in _LOOPBACK:
        raise InputError(
            f"access is `local`, which checks no credentials, and the host is {host};"
            " name an access file, or listen on 127.0.0.1"
        )
    return LocalAccess(tokens)


def log_signer_of(stores: Stores, ledger: Ledger, simulator: Digest | None) -> LogCheckpointSigner:
    """Signs the logs of one simulator's runs, or of all runs."""
    own = stores.keys / SIMULATOR_KEYS
    ensure_signer(own)
    return _log_signer(
        stores, ledger, simulator, partial(load_signer, own), partial(load_trusted, own)
    )


def log_signer_on_cluster(stores: Stores, ledger: Ledger) -> LogCheckpointSigner:
    """Signs the logs of all runs with a mounted key; raises NotFound if there is none."""
    own = MountedKeys(stores.keys / SIMULATOR_KEYS, ledger.signing_keys)
    own.signer()
    return _log_signer(
        stores, ledger, None, own.signer, partial(read_trusted_keys, ledger.signing_keys)
    )


def statement_signer_of(stores: Stores, ledger: Ledger) -> StatementSigner:
    """Signs statements about a ledger if no service is deployed.

    A ledger of a cluster's services states their keys: only such a key is accepted there.
    """
    if ledger.signing_keys.all():
        return log_signer_on_cluster(stores, ledger).statement_signer
    return log_signer_of(stores, ledger, None).statement_signer


def _log_signer(
    stores: Stores,
    ledger: Ledger,
    simulator: Digest | None,
    signer: Callable[[], Signer],
    trusted: Callable[[], TrustedKeys],
) -> LogCheckpointSigner:
    steps = stores.keys / STEP_KEYS
    return LogCheckpointSigner(
        ledger,
        simulator,
        signer,
        WriteOnce(stores.mirror_url),
        trusted=trusted,
        step_keys=lambda: load_trusted(steps) if steps.is_dir() else {},
    )


def guard_of(app_state: AppState, limits: Limits) -> Guard:
    """Names the simulator of a service that has a single one, and counts refusals."""
    return Guard(app_state.simulators.single, limits, app_state.episode_store.metrics.count_problem)
