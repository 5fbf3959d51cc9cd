"""A finished job on disk, for tests that read one."""

from pathlib import Path

from agentworld.audit.checks.validation import LiveLink
from agentworld.audit.questions.agent import AgentChain, StageLink
from agentworld.lineage.base import VersionRef
from agentworld.records.gate import GateVerdict
from agentworld.records.run import AgentRun, RunClosing, RunOpening
from agentworld.runner.folders import AGENT, CHAIN, REPORT, VERDICT, TrainedAgent
from agentworld.steps.table import AFTER_GATE, MAIN_JOB
from make import records


def agent_run() -> AgentRun:
    return AgentRun(
        id="a1b2c3",
        opening=RunOpening(agent="shell-agent", starting_weights=records.digest("imitated")),
        simulator=records.manifest().digest,
        closing=RunClosing(final_weights=records.digest("trained")),
        num_episodes=1_728,
        num_steps=6_301,
    )


def chain(**fields: object) -> AgentChain:
    stages = [records.checkpoint("cpt"), records.checkpoint("sft"), records.checkpoint("rl")]
    defaults = {
        "subject": "shell-agent@1",
        "grade": "proven",
        "artifact": records.digest("trained"),
        "run": agent_run(),
        "simulator": records.manifest().digest,
        "world_model": "agentworld-shell@1",
        "world_model_artifact": records.digest("artifact of rl"),
        "stages": [StageLink.of(stage) for stage in stages],
        "data": records.digest("data"),
        "live": LiveLink(
            report=records.agent_report().digest,
            num_tasks=200,
            episodes=400,
            successes_before=20,
            successes_after=100,
            gain=records.estimate(0.4),
            commands=1_700,
        ),
    }
    return AgentChain.model_validate({**defaults, **fields})


def verdict(reason: str = "") -> GateVerdict:
    return GateVerdict(
        verdict="refused" if reason else "passed",
        reason=reason,
        report=records.world_report().digest,
        gate=(),
    )


def finished_job(store: Path, *, agent_chain: AgentChain | None = None) -> dict[str, Path]:
    """The folders of all steps, with reports; the simulator is in its store."""
    outputs = {"simulate": records.pinned(store).digest}
    folders = {
        step: records.finished_step(store, step, outputs.get(step, records.digest(step)))
        for step in MAIN_JOB
    }
    agent = TrainedAgent(
        version=VersionRef(name="shell-agent", version=1), run=agent_run(), live_steps=0
    )
    records.world_report().write(folders["evaluate"] / REPORT)
    verdict().write(folders["gate"] / VERDICT)
    records.agent_report().write(folders["validate"] / REPORT)
    agent.write(folders["register_agent"] / AGENT)
    (agent_chain or chain()).write(folders["audit"] / CHAIN)
    return folders


def refused_job(store: Path) -> dict[str, Path]:
    """The same up to a gate that failed."""
    folders = finished_job(store)
    verdict("rl.rule is 0.3, which is under 0.5").write(folders["gate"] / VERDICT)
    return {step: folder for step, folder in folders.items() if step not in AFTER_GATE}
