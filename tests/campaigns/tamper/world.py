"""A store after services have used it, divided into what an attacker can and cannot change."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import make.ledger
from agentworld.audit.checks.alias_history import agent_changes, in_use
from agentworld.audit.read.evidence import Evidence
from agentworld.audit.read.sources import Sources
from agentworld.errors import InputError
from agentworld.ledger import Ledger
from agentworld.ledger.tables import METADATA
from agentworld.lineage.base import Agent, VersionRef
from agentworld.lineage.memory import MemoryRegistry
from agentworld.operations.ledger import open_evidence
from agentworld.storage.objects import ObjectStore
from campaigns.tamper.databases import Database

_LEDGER_URL = "AGENTWORLD_LEDGER_URL"


class World(NamedTuple):
    """The attacker can change the ledger and the objects, but not keys and checkpoints."""

    folder: Path
    database: Database
    snapshots: tuple[str, ...] = ()
    """Old copies of the ledger, the oldest first; the newest has no record that the ledger
    lacks.
    """

    lost: str = "lost"
    """A copy of the ledger before a backup replaced it."""

    @contextmanager
    def named(self) -> Iterator[None]:
        """Sets the ledger in the environment for the block, as for a service."""
        old_url = os.environ.get(_LEDGER_URL)
        os.environ[_LEDGER_URL] = self.database.url
        try:
            yield
        finally:
            del os.environ[_LEDGER_URL]
            os.environ.update({_LEDGER_URL: old_url} if old_url else {})

    def ledger(self) -> Ledger:
        return Ledger(self.database.url, ObjectStore(str(self.objects)))

    @property
    def evidence(self) -> Evidence:
        return open_evidence(self.folder)

    @property
    def objects(self) -> Path:
        """The folder of long texts."""
        return self.folder / "objects"

    @property
    def agents(self) -> Path:
        """The file with the registered agents, in their order."""
        return self.folder / "agents.jsonl"

    @property
    def num_records(self) -> int:
        """The number of the ledger's rows."""
        with self.database.hand() as hand:
            counts = [
                hand.rows(f"SELECT count(*) AS rows FROM {table}") for table in METADATA.tables
            ]
        return sum(count[0]["rows"] for count in counts)

    def registry(self, ledger: Ledger) -> MemoryRegistry:
        """The agents, each in use as the ledger says: no alias reveals a change."""
        registry = MemoryRegistry()
        for line in self.agents.read_text().splitlines():
            fields = json.loads(line)
            agent = Agent.model_validate(fields["agent"])
            model, signature = self.folder / "models" / agent.run, fields["signature"]
            registry.register_agent(fields["name"], agent, model, signature=signature)
        for use in in_use(agent_changes(ledger.attestations, self.evidence)):
            with suppress(InputError):  # a missing version, which the audit reports
                registry.set_alias(VersionRef.parse(use.target), use.alias.partition("@")[2])
        return registry

    def sources(self, ledger: Ledger) -> Sources:
        """The sources of an audit."""
        evidence = self.evidence
        registry = self.registry(ledger)
        return Sources(registry, ledger, self.folder, evidence, evidence.step_keys or {})

    @contextmanager
    def copied(self, folder: Path) -> Iterator["World"]:
        """A copy in another folder, for a world whose ledger is a file without open connections."""
        make.ledger.copy_store(self.folder, folder)
        copy = self._replace(folder=folder, database=Database.file(folder))
        try:
            yield copy
        finally:
            copy.database.let_go()
