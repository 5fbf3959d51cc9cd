"""Step 17: the chain from the agent back to its data, whole or the job stops."""

from pathlib import Path

from agentworld.audit.chain import audit_agent
from agentworld.errors import StoreError
from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.steps.base import output_of, run_step
from agentworld.steps.folders import AGENT, CHAIN, TrainedAgent
from agentworld.steps.remote import anywhere
from agentworld.steps.sources import open_sources


@anywhere()
def audit(store: str, registered: str, validation: str) -> str:
    """The folder of the chain."""
    parents = {"registered": output_of(registered), "validation": output_of(validation)}
    version = TrainedAgent.read(Path(registered) / AGENT).version

    def work(out: Path, _: Tick) -> Digest:
        chain = audit_agent(version, open_sources(Path(store)))
        if chain.breaks:
            raise StoreError(f"the chain of {version} is broken: {'; '.join(chain.breaks)}")
        chain.write(out / CHAIN)
        return chain.digest

    return str(run_step(Path(store), "audit", [version], parents, work))
