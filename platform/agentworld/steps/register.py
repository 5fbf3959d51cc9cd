"""Step 7: the last checkpoint becomes a version of the world model."""

from pathlib import Path

from agentworld.lineage.base import WorldModel
from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.records.report import WorldModelReport, WorldModelScore
from agentworld.steps.addresses import open_registry, registry_digest
from agentworld.steps.base import output_of, run_step
from agentworld.steps.folders import REPORT, VERSION, checkpoint_of, model_of

NAME = "agentworld-terminal"


def register(store: str, cpt: str, sft: str, rl: str, report: str) -> str:
    """The folder that says which version it is."""
    stages = tuple(checkpoint_of(Path(folder)) for folder in (cpt, sft, rl))
    found = WorldModelReport.read(Path(report) / REPORT)
    what = WorldModel(stages=stages, report=found.digest, metrics=_metrics(found))

    def work(out: Path, _: Tick) -> Digest:
        ref = open_registry(Path(store)).register_world_model(NAME, what, model_of(Path(rl)))
        ref.write(out / VERSION)
        return what.artifact

    folders = {"cpt": cpt, "sft": sft, "rl": rl, "report": report}
    inputs = {name: output_of(folder) for name, folder in folders.items()}
    inputs["registry"] = registry_digest()
    return str(run_step(Path(store), "register", [], inputs, work))


def _metrics(report: WorldModelReport) -> dict[str, float]:
    scores = {**report.stages, **{f"baseline.{k}": v for k, v in report.baselines.items()}}
    return {
        f"{name}.{measure}": value
        for name, score in scores.items()
        for measure, value in _means(score).items()
    }


def _means(score: WorldModelScore) -> dict[str, float]:
    return {
        "exact_match": score.exact_match.mean,
        "exact_match_state": score.exact_match_state.mean,
        "exact_match_unseen": score.exact_match_unseen.mean,
        "rule": score.rule.mean,
    }
