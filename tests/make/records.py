"""Builders of valid records, with default values for all fields."""

from pathlib import Path
from tempfile import TemporaryDirectory

from agentworld.domains.base import Start, domain_of
from agentworld.domains.words import all_words
from agentworld.engine.openai import REQUEST
from agentworld.records.base import Digest, digest_bytes
from agentworld.records.checkpoint import Checkpoint, Stage
from agentworld.records.dataset import DataSet, Parent, PoolFile
from agentworld.records.episode import (
    Episode,
    EpisodeOpening,
    EpisodeStep,
    StepResult,
    text_digest,
)
from agentworld.records.report import (
    AgentReport,
    AgentScore,
    Estimate,
    Figures,
    Gain,
    ServedReport,
    WorldModelReport,
    WorldModelScore,
)
from agentworld.records.sample import Sample, SampleTurn
from agentworld.records.simulator import DomainPin, SimulatorManifest
from agentworld.records.step import StepReceipt
from agentworld.records.task import Task
from agentworld.records.trajectory import PromptParts, Trajectory, Turn
from agentworld.records.trajectory_log import TrajectoryStep
from agentworld.records.validation import Answers
from agentworld.rendering.messages import RENDERER, system_text
from agentworld.rendering.parse import PARSER
from agentworld.signing.envelope import Statement, Subject
from agentworld.storage.simulators import PinnedSimulator, SimulatorStore
from make.weights import weights


def digest(seed: str) -> Digest:
    return digest_bytes(seed.encode())


def checkpoint(stage: Stage = "cpt", **fields: object) -> Checkpoint:
    defaults = {
        "artifact": digest(f"artifact of {stage}"),
        "num_parameters": 1_000,
        "recipe": {"stage": stage},
    }
    return Checkpoint.model_validate({"stage": stage, **defaults, **fields})


def sample(seed: int = 0, *, num_turns: int = 3, pool_target: bool = True) -> Sample:
    """An episode that writes and reads files whose names depend on the seed."""
    words = all_words()[seed * 7 :]
    turns = [
        _turn(words[2 * turn], words[2 * turn + 1], turn, pool_target) for turn in range(num_turns)
    ]
    return Sample(
        trajectory=digest(f"trajectory {seed}"),
        domain="shell",
        prompt=shell_prompt(),
        turns=tuple(turns),
    )


def _turn(name: str, word: str, index: int, target: bool) -> SampleTurn:
    is_read = index % 2 == 1
    return SampleTurn(
        action=f"cat {name}.txt" if is_read else f"echo {word} > {name}.txt",
        observation=f"{word}\n[0] ~" if is_read else "[0] ~",
        tags=("cat", "history", "output") if is_read else ("write",),
        target=target,
    )


def trajectory(*turns: tuple[str, str], **fields: object) -> Trajectory:
    """An episode with these actions and observations, or two default ones."""
    pairs = turns or (("echo kolu > rimo.txt", "[0] ~"), ("cat rimo.txt", "kolu\n[0] ~"))
    defaults = {
        "domain": "shell",
        "source": "random-explorer",
        "seed": 0,
        "initial_state": "",
        "turns": [Turn(action=action, observation=observation) for action, observation in pairs],
    }
    return Trajectory.model_validate({**defaults, **fields})


def shell_prompt(text: str = "") -> PromptParts:
    """The prompt of a shell that starts with these files."""
    return domain_of("shell").prompt(Start(domain="shell", text=text))


def pinned_domains(*names: str, system_prompt: str | None = None) -> dict[str, DomainPin]:
    """These domains as a manifest pins them, or only the shell; each with its own prompt."""
    pins = {}
    for name in names or ("shell",):
        domain = domain_of(name)
        default = system_text(domain.prompt(Start(domain=name)))
        prompt = default if system_prompt is None else system_prompt
        pins[name] = DomainPin(version=domain.version, system_prompt=prompt)
    return pins


def manifest(**fields: object) -> SimulatorManifest:
    defaults = {
        "artifact": digest("artifact of rl"),
        "files": {"model.safetensors": digest_bytes(weights())},
        "sampling": {},
        "context_tokens": 1024,
        "engine": {"kind": "transformers-serve", "version": "5.19.0", "lock": digest("lock")},
        "renderer": RENDERER,
        "request": REQUEST,
        "parser": PARSER,
        "domains": pinned_domains(),
    }
    return SimulatorManifest.model_validate({**defaults, **fields})


def pinned(store: Path, **fields: object) -> PinnedSimulator:
    """A simulator in a store, with a single file in its manifest."""
    simulators = SimulatorStore(store)
    with TemporaryDirectory() as folder:
        (Path(folder) / "model.safetensors").write_bytes(weights())
        simulators.import_model(Path(folder))
    return simulators.keep(manifest(**fields))


def episode(*observations: str, base: Episode | None = None) -> Episode:
    """An episode with a chained step for each of these; `base` is its opening."""
    result = base or Episode.new("e", digest("s"), EpisodeOpening(run="r", domain="shell"))
    for observation in observations:
        texts = "ls", observation, text_digest("ls"), text_digest(observation)
        step = EpisodeStep(result.id, len(result.steps) + 1, *texts).link(result.head)
        result = result._replace(steps=(*result.steps, step))
    return result


def step_result(**fields: object) -> StepResult:
    """A response of the simulator of `episode`."""
    defaults = {"simulator": digest("s"), "run": "r", "episode": "e", "step": 1}
    return StepResult(**{**defaults, "observation": "[0] ~", **fields})


def acted(episode: Episode, number: int, **fields: object) -> TrajectoryStep:
    """The agent's log entry of a step of this episode."""
    step = episode.steps[number - 1]
    line = TrajectoryStep(
        run=episode.run,
        episode=episode.id,
        step=number,
        simulator=episode.simulator,
        policy=digest("starting"),
        policy_step=0,
        sampled=step.action,
        action=step.action,
        reward=step.reward,
        observation_digest=step.observation_digest,
        low_confidence=step.confidence.low,
    )
    return line._replace(**fields)


def task(**fields: object) -> Task:
    """A task to report a file: `echo` closes it, and `besa` is correct."""
    defaults = {
        "domain": "shell",
        "id": "shell-report-1",
        "family": "report",
        "instruction": "report rimo.txt",
        "initial_state": "rimo.txt: besa",
        "success": {"closing": "echo .+", "output": "besa"},
        "turn_limit": 3,
        "seed": 1,
    }
    return Task.model_validate({**defaults, **fields})


def estimate(mean: float = 0.5, num: int = 100) -> Estimate:
    return Estimate(mean=mean, low=max(0.0, mean - 0.1), high=min(1.0, mean + 0.1), num=num)


def world_score(mean: float = 0.8) -> WorldModelScore:
    return WorldModelScore(
        exact_match=estimate(mean),
        by_tag={
            "cat": estimate(mean),
            "history": estimate(mean - 0.05),
            "ls": estimate(mean - 0.1),
            "unseen": estimate(mean - 0.1),
        },
        metrics={"rule": estimate(mean + 0.05)},
    )


def world_report(**fields: object) -> WorldModelReport:
    defaults = {
        "data": digest("data"),
        "stages": {"cpt": world_score(0.7), "sft": world_score(0.8), "rl": world_score(0.82)},
        "baselines": {"copy": world_score(0.2), "nearest": world_score(0.3)},
        "rl_gain": Estimate(mean=0.02, low=-0.01, high=0.05, num=100),
        "lead": estimate(0.52),
    }
    return WorldModelReport.model_validate({**defaults, **fields})


def difference(mean: float, num: int = 100) -> Estimate:
    return Estimate(mean=mean, low=mean - 0.05, high=mean + 0.05, num=num)


def grouped_report(
    artifact: Digest | None = None, lead: float = 0.3, **answers: int
) -> WorldModelReport:
    """A report whose last stage, of this artifact, also has kinds of turns, leads, gains and
    responses.
    """
    artifacts = {"rl": artifact or digest("artifact of rl")}
    base = world_report(artifacts=artifacts, absent={"embedding": "no model"})
    metrics = {"rule": estimate(0.8), "token_f1": estimate(0.9)}
    nums = {"read": 60, "write": 25, "unknown": 15}
    kinds = {
        kind: Figures(exact_match=estimate(0.7, num), metrics=metrics) for kind, num in nums.items()
    }
    lead_figures = Figures(exact_match=difference(lead), metrics={"token_f1": difference(lead)})
    gains = dict.fromkeys(nums, lead_figures)
    gain = Gain(**dict(lead_figures), over="sft", by_tag={"cat": difference(0.1)}, by_kind=gains)
    score = base.stages["rl"].model_copy(
        update={
            "metrics": metrics,
            "by_kind": kinds,
            "answers": Answers(**{"num": 100, "num_episodes": 20, **answers}),
            "leads": {"copy": lead_figures, "repeat": lead_figures},
            "gain": gain,
        }
    )
    return base.model_copy(update={"stages": {**base.stages, "rl": score}})


def agent_score(live: float) -> AgentScore:
    return AgentScore(
        simulated=estimate(live + 0.05), live=estimate(live), by_family={"find": estimate(live)}
    )


def agent_report(**fields: object) -> AgentReport:
    defaults = {
        "simulator": manifest().digest,
        "base": agent_score(0.02),
        "imitated": agent_score(0.1),
        "trained": agent_score(0.5),
        "live_gain": estimate(0.4),
        "live_steps": 700,
    }
    return AgentReport.model_validate({**defaults, **fields})


def served_report(**fields: object) -> ServedReport:
    defaults = {
        "simulator": manifest().digest,
        "job": "monday",
        "measured_at": "2026-01-01T03:00:00+00:00",
        "trajectories": digest("live episodes"),
        "num_episodes": 64,
        "free_running": {"exact_match": estimate(0.7), "metrics": {"rule": estimate(0.75)}},
        "latency": {"p50_seconds": 0.1, "p99_seconds": 0.4},
    }
    return ServedReport.model_validate({**defaults, **fields})


def receipt(step: str, output: Digest, **inputs: Digest) -> StepReceipt:
    return StepReceipt(
        step=step,
        key=digest(f"{step} {output} {sorted(inputs.items())}"),
        recipe=digest("recipe"),
        inputs=inputs,
        code=digest("code"),
        output=output,
        seconds=12.5,
        peak_memory_gib=1.25,
    )


def finished_step(store: Path, step: str, output: Digest, **inputs: Digest) -> Path:
    """The folder of a finished step with only its receipt."""
    step_receipt = receipt(step, output, **inputs)
    folder = store / "steps" / step / step_receipt.key.removeprefix("sha256:")[:16]
    step_receipt.write(folder / "receipt.json")
    return folder


def trained_step(store: Path, stage: Stage, **fields: object) -> Path:
    """The folder of a finished stage with its records and without a model."""
    stage_checkpoint = checkpoint(stage, **fields)
    folder = finished_step(store, stage, stage_checkpoint.artifact)
    stage_checkpoint.write(folder / "checkpoint.json")
    return folder


def dataset(**pools: PoolFile) -> DataSet:
    """A data set with these pools."""
    return DataSet(
        domains={"shell": 9},
        parents=(Parent(collected=digest("trajectories")),),
        recipe={"min_turns": 2},
        pools=pools,
        filtered={},
    )


def prepared(store: Path, name: str) -> str:
    """A finished step that prepared a data set of this name."""
    folder = finished_step(store, "prepare", digest(name))
    dataset().write(folder / "dataset.json")
    return str(folder)


def statement(**predicate: object) -> Statement:
    """A statement about a log."""
    return Statement.model_validate(
        {
            "subject": [Subject.of("log", digest("log"))],
            "predicate_type": "urn:agentworld:checkpoint:v1",
            "predicate": predicate or {"length": 3},
        }
    )
