"""Signs statements of steps about their own work, and submits them to the ledger, by the service
if one is deployed.

A statement stays in the step's folder too; if it was not accepted, it is submitted again when the
step is run again.
"""

import asyncio
import logging
from contextlib import closing
from pathlib import Path

from agentworld.client.simulator import SimulatorClient
from agentworld.errors import AgentworldError
from agentworld.operations.ledger import (
    open_ledger,
    registering_signer,
    trusted_services,
    trusted_steps,
)
from agentworld.operations.serving import deployed_service
from agentworld.records.statements.registration import RegisteredVersion
from agentworld.records.statements.validation import Validation
from agentworld.records.step_statement import StepStatement
from agentworld.runner.remote import fetch
from agentworld.signing.envelope import attest
from agentworld.statements.steps import Files
from agentworld.storage.objects import WriteOnce
from agentworld.storage.stores import Stores
from agentworld.storage.working_copy import copy_of

_STATEMENT = "statement.json"

_log = logging.getLogger(__name__)


def sign(payload: RegisteredVersion | Validation, store: Path, out: Path) -> None:
    """Signs a statement and writes it into the step's folder; does nothing without a key."""
    if signer := registering_signer(store):
        envelope = attest(payload, signer).envelope.decode()
        statement = StepStatement.model_validate({"kind": payload.kind, "envelope": envelope})
        statement.write(out / _STATEMENT)


def submit(folder: Path, store: Path) -> Path:
    """Submits the signed statements of a finished step; returns its folder.

    If they are not accepted, they count as unsigned, and the step does not fail; the log says why.
    """
    path = fetch(folder / _STATEMENT)
    if path.is_file():
        try:
            _submit(StepStatement.read(path), store)
        except AgentworldError as error:
            _log.warning("what %s signed is not kept with the ledger: %s", folder, error)
    return folder


def _submit(statement: StepStatement, store: Path) -> None:
    if client := deployed_service():
        asyncio.run(_send(client, statement))
    elif copy_of(store.resolve()) is None or "ledger_url" in Stores.from_environment():
        _keep(statement, store)


def _keep(statement: StepStatement, store: Path) -> None:
    mirror = WriteOnce(Stores.of(store).mirror_url)
    with closing(open_ledger(store)) as ledger:
        keys = trusted_steps(store), trusted_services(store, ledger)
        Files(ledger.attestations, mirror, *keys).add(statement)


async def _send(client: SimulatorClient, statement: StepStatement) -> None:
    try:
        await client.file(statement)
    finally:
        await client.close()
