"""An auditor's questions to a large store, timed, and the same questions to MLflow."""

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import NamedTuple

from mlflow import MlflowClient
from sqlalchemy import make_url

from agentworld.audit.checks.run import verify_run
from agentworld.audit.questions.agent import audit_agent
from agentworld.audit.questions.simulator import audit_simulator
from agentworld.audit.read.sources import Sources
from agentworld.ledger import Ledger
from agentworld.lineage.base import Agent, VersionRef
from agentworld.lineage.mlflow import MlflowRegistry
from agentworld.operations.attested import request_edge
from agentworld.operations.runs import run_backend
from agentworld.records.base import Digest, Record
from agentworld.records.run import AgentRun
from agentworld.storage.simulators import SimulatorStore
from benchmarks.audit_store import AuditStore, Trained
from benchmarks.figures import percentile


class Times(Record):
    """The times of one question in milliseconds, asked once for each of many subjects."""

    p50_ms: float
    p99_ms: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Times":
        ordered = sorted(1e3 * item for item in seconds)
        return cls(
            p50_ms=round(percentile(ordered, 0.5), 2), p99_ms=round(percentile(ordered, 0.99), 2)
        )


class Answers(Record):
    """The times for a ledger of some size."""

    forward: Times
    inverse: Times
    first_forward_ms: float
    """The first question of a process, which fills caches."""
    large_forward_ms: float
    """For the agent with a tenth of all episodes."""
    close_seconds: float
    register_seconds: float
    verify_steps_per_second: float
    """For the run of that agent."""
    verified_steps: int
    problems: int
    """Findings of a verification of some runs; there should be none."""


class MlflowAnswers(Record):
    """The times of MLflow's own search for the same questions."""

    forward: Times
    inverse: Times


def answers(audit_store: AuditStore, large: Trained, url: str, num_questions: int) -> Answers:
    """Times questions to the ledger at a URL; first closes and registers the last agent."""
    with _ledger(url), closing(Ledger(url)) as ledger:
        sources = Sources(
            MlflowRegistry(_uri(audit_store)), ledger, audit_store.store, audit_store.evidence
        )
        first = _seconds(lambda: _whole(audit_store.agents[0], sources))
        agents = random.Random(1).choices(audit_store.agents, k=num_questions)
        forward = [_seconds(lambda ref=ref: _whole(ref, sources)) for ref in agents]
        simulators = random.Random(2).choices(audit_store.simulators, k=num_questions)
        inverse = [_seconds(lambda name=name: _touched(name, sources)) for name in simulators]
        close_seconds = _seconds(lambda: _close(audit_store, large))
        start = time.perf_counter()
        ref = _register(
            audit_store, large, ledger, f"{large.name}-{make_url(url).get_backend_name()}"
        )
        register_seconds = time.perf_counter() - start
        large_forward = _seconds(lambda: audit_agent(ref, sources))
        verification = _verified(large.run.id, ledger, audit_store)
        audit_store.forget(large)
        sample = random.Random(3).choices(audit_store.runs, k=20)
        problems = [verify_run(run, ledger, audit_store.evidence).problems for run in sample]
        return Answers(
            forward=Times.of(forward),
            inverse=Times.of(inverse),
            first_forward_ms=round(1e3 * first, 1),
            large_forward_ms=round(1e3 * large_forward, 1),
            close_seconds=round(close_seconds, 2),
            register_seconds=round(register_seconds, 3),
            verify_steps_per_second=round(verification.steps / verification.seconds),
            verified_steps=verification.steps,
            problems=sum(map(len, problems)) + verification.problems,
        )


def mlflow_answers(audit_store: AuditStore, num_questions: int) -> MlflowAnswers:
    """The simulator in a version's tags, and the versions that name a simulator."""
    client: MlflowClient = audit_store.registry.client
    agents = random.Random(1).choices(audit_store.agents, k=num_questions)
    simulators = random.Random(2).choices(audit_store.simulators, k=num_questions)

    def forward(ref: VersionRef) -> None:
        version = client.get_model_version(ref.name, str(ref.version))
        run = client.get_run(version.run_id)
        assert run.data.tags["agentworld.simulator"] == version.tags["agentworld.simulator"]

    def inverse(simulator: Digest) -> None:
        client.search_model_versions(f"tags.`agentworld.simulator` = '{simulator}'")

    return MlflowAnswers(
        forward=Times.of([_seconds(lambda ref=ref: forward(ref)) for ref in agents]),
        inverse=Times.of([_seconds(lambda name=name: inverse(name)) for name in simulators]),
    )


class _Verified(NamedTuple):
    steps: int
    seconds: float
    problems: int


def _verified(run: str, ledger: Ledger, audit_store: AuditStore) -> _Verified:
    start = time.perf_counter()
    verification = verify_run(run, ledger, audit_store.evidence)
    return _Verified(
        verification.num_steps, time.perf_counter() - start, len(verification.problems)
    )


def _whole(ref: VersionRef, sources: Sources) -> None:
    chain = audit_agent(ref, sources)
    assert not chain.problems, chain.problems
    assert chain.edge, ref
    assert chain.edge.grade == "proven", chain.edge


def _touched(simulator: Digest, sources: Sources) -> None:
    audit = audit_simulator(simulator, sources)
    assert not audit.unregistered, simulator
    assert all(agent.edge and agent.edge.grade == "proven" for agent in audit.agents), simulator


def _close(audit_store: AuditStore, large: Trained) -> None:
    """Closes the run with the service's code, which signs the whole log at once."""
    simulator = SimulatorStore(audit_store.store).find(large.run.simulator)

    async def close() -> AgentRun:
        async with run_backend(simulator, audit_store.store) as backend:
            return await backend.close(large.run.id, large.closing)

    asyncio.run(close())


def _register(audit_store: AuditStore, large: Trained, ledger: Ledger, name: str) -> VersionRef:
    """Registers as the step does, with a different name for each ledger, which is thus new to the
    registry.
    """
    run, registry = ledger.run(large.run.id), MlflowRegistry(_uri(audit_store))
    edge = request_edge(name, large.checkpoint, run, registry, audit_store.store)
    agent = Agent(checkpoint=large.checkpoint, run=run.id, edge=edge)
    return registry.register_agent(name, agent, audit_store.store / "model")


def _uri(audit_store: AuditStore) -> str:
    return f"sqlite:///{audit_store.store}/mlflow.db"


@contextmanager
def _ledger(url: str) -> Iterator[None]:
    """A step's environment for this store."""
    os.environ["AGENTWORLD_LEDGER_URL"] = url
    try:
        yield
    finally:
        del os.environ["AGENTWORLD_LEDGER_URL"]


def _seconds(question: Callable[[], object]) -> float:
    start = time.perf_counter()
    question()
    return time.perf_counter() - start
