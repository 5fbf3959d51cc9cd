"""What a step says of its own work, signed and kept with the ledger, by whoever keeps that."""

import asyncio
from contextlib import closing
from pathlib import Path

from agentworld.client.simulator import SimulatorClient
from agentworld.evidence.declared import attested
from agentworld.records.step_statement import Registered, StepStatement, Validation
from agentworld.simulate.filing import Files
from agentworld.simulate.stores import Stores
from agentworld.steps.keys import registering_signer
from agentworld.steps.ledger import open_ledger, trusted_steps
from agentworld.steps.serving import deployed_service
from agentworld.storage.objects import WriteOnce
from agentworld.storage.working_copy import copy_of


def file(told: Registered | Validation, store: Path) -> None:
    """Nothing is kept where no key can be had, or no ledger: then it is unsigned."""
    signer = registering_signer(store)
    if signer is None:
        return
    envelope = attested(told, signer).envelope.decode()
    statement = StepStatement.model_validate({"kind": told.kind, "envelope": envelope})
    if client := deployed_service():
        asyncio.run(_handed_in(client, statement))
    elif copy_of(store.resolve()) is None or "ledger_url" in Stores.named():
        _keep(statement, store)


def _keep(statement: StepStatement, store: Path) -> None:
    second_store = WriteOnce(Stores.of(store).checkpoints_url)
    with closing(open_ledger(store)) as ledger:
        Files(ledger.attestations, second_store, trusted_steps(store)).add(statement)


async def _handed_in(client: SimulatorClient, statement: StepStatement) -> None:
    try:
        await client.file(statement)
    finally:
        await client.close()
