"""An agent's training against a service that records its answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import make.service
from agentworld.audit.questions.join import join_run
from agentworld.client.simulator import SimulatorClient
from agentworld.client.trajectory import TrajectoryLog, read_trajectory
from agentworld.domains.live import live_domain
from agentworld.recipes.train import AgentRecipe, AgentRlRecipe
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.progress import ignore_progress
from agentworld.records.task import Task
from agentworld.records.trajectory_log import TrajectoryStep
from agentworld.train.parent import Parent

if TYPE_CHECKING:
    from agentworld.train.model import LanguageModel


def shell_task(seed: int) -> Task:
    return live_domain("shell").task(seed, held_out=False)


AGENT = AgentRecipe(rl=AgentRlRecipe(num_steps=2, prompts_per_step=2, group_size=2, max_tokens=4))


@pytest.mark.compute
def test_the_trainers_trajectory_log_matches_the_services_ledger(
    language_model: LanguageModel, tmp_path: Path
) -> None:
    from agentworld.train import agent_rl

    language_model.save(tmp_path / "parent")
    service, log = make.service.service(tmp_path), tmp_path / "log"
    with make.service.listening(service.app) as url, TrajectoryLog(log) as trajectory:
        client = SimulatorClient(url, trajectory=trajectory)
        run = asyncio.run(client.open_run(make.service.OPENING))
        out = tmp_path / "out"
        practice = agent_rl.Practice(client, run.simulator, shell_task)
        agent_rl.run(AGENT, Parent(tmp_path / "parent"), practice, out, ignore_progress)
    ledger = service.ledger
    report = join_run(ledger.run(run.id), ledger.episodes(run.id), read_trajectory(log))
    assert report.num_matched == ledger.run(run.id).num_steps > 0
    assert not report.is_alarm
    steps = [line for line in read_trajectory(log) if isinstance(line, TrajectoryStep)]
    weights = ArtifactManifest.of(tmp_path / "parent").digest
    assert {(step.policy, step.policy_step) for step in steps} == {(weights, 0), (weights, 1)}
