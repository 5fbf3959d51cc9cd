"""Step 8: the last checkpoint becomes a version of the world model."""

from pathlib import Path

from agentworld.lineage.base import WorldModel
from agentworld.operations.registering import registered
from agentworld.operations.registry import open_registry, registry_digest
from agentworld.operations.statements import hand_in
from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.records.report import WorldModelReport
from agentworld.reports.metrics import metrics_of
from agentworld.runner.folders import REPORT, VERSION, checkpoint_of, model_of
from agentworld.runner.remote import anywhere
from agentworld.runner.step import output_of, run_step


@anywhere("rl")
def register(store: str, cpt: str, sft: str, rl: str, report: str) -> str:
    """The folder that says which version it is."""
    stages = tuple(checkpoint_of(Path(folder)) for folder in (cpt, sft, rl))
    evaluation = WorldModelReport.read(Path(report) / REPORT)
    what = WorldModel(stages=stages, report=evaluation.digest, metrics=metrics_of(evaluation))

    def work(out: Path, _: Tick) -> Digest:
        registry = open_registry(Path(store))
        model = model_of(Path(rl))
        registered(_name_of(what), what, model, registry, Path(store), out).write(out / VERSION)
        return what.artifact

    folders = {"cpt": cpt, "sft": sft, "rl": rl, "report": report}
    inputs = {name: output_of(folder) for name, folder in folders.items()}
    inputs["registry"] = registry_digest()
    return str(hand_in(run_step(Path(store), "register", [], inputs, work), Path(store)))


def _name_of(world_model: WorldModel) -> str:
    """By the kinds of world that it was trained on: `agentworld-shell`."""
    return "-".join(["agentworld", *(world_model.domains or ["text"])])
