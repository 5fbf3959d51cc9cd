"""Writes the chain from the agent back to its data; a broken chain ends the job with an error."""

from pathlib import Path

from agentworld.audit.questions.agent import audit_agent
from agentworld.client.credential import ClientSettings
from agentworld.errors import InputError, StoreError
from agentworld.operations.ledger import open_sources
from agentworld.records.base import Digest
from agentworld.records.garbled import redact
from agentworld.records.progress import OnProgress
from agentworld.runner.folders import AGENT, CHAIN, TrainedAgent
from agentworld.runner.task import Plan, Task
from agentworld.storage.stores import Stores

_OF_A_SERVICE = ("ledger_url", "objects_url", "mirror_url")


def plan(task: Task) -> Plan:
    """Plans the audit of the registered version."""
    version = TrainedAgent.read(task.folders["registered"] / AGENT).version

    def work(out: Path, _: OnProgress) -> Digest:
        chain = audit_agent(version, open_sources(task.store), verify=True)
        if problems := (*chain.problems, *chain.notes):
            problem = f"the chain of {version} is broken or incomplete: {'; '.join(problems)}"
            raise StoreError(problem, retryable=False)
        chain.write(out / CHAIN)
        return chain.digest

    return Plan(work, {"version": version.digest}, _check_stores)


def _check_stores() -> None:
    """Raises InputError if a service has the run, and the addresses of its stores are not set.

    The service's protocols do not serve the signed records of a run, so the audit reads the stores.
    """
    url, addresses = ClientSettings().service_url, Stores.from_environment()
    missing = [f"AGENTWORLD_{name.upper()}" for name in _OF_A_SERVICE if name not in addresses]
    if url and missing:
        raise InputError(
            f"the audit reads the run's record from the stores of the service at {redact(url)};"
            f" set {', '.join(missing)} to the service's values"
        )
