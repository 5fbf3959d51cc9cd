"""A store's folders of validations in an attacker's hands, by which an agent in use is current."""

import random
import shutil
from pathlib import Path

import make
from agentworld.records.report import AgentReport
from agentworld.records.step import StepReceipt
from tamper.place import Change, Place
from tamper.registered import AGENTS, NEXT, STARTED

VALIDATED = AGENTS[:-1]


def _report_changed(place: Place, name: str, _other: str, chance: random.Random) -> None:
    _rewrite(place, name, chance)


def _receipt_too(place: Place, name: str, _other: str, chance: random.Random) -> None:
    """So that both agree."""
    report = _rewrite(place, name, chance)
    file = _folder(place, name) / "receipt.json"
    StepReceipt.read(file).model_copy(update={"output": report.digest}).write(file)


def _report_exchanged(place: Place, name: str, other: str, _chance: random.Random) -> None:
    shutil.copy(_folder(place, other) / "report.json", _folder(place, name) / "report.json")


def _report_removed(place: Place, name: str, _other: str, _chance: random.Random) -> None:
    (_folder(place, name) / "report.json").unlink()


def _receipt_garbled(place: Place, name: str, _other: str, chance: random.Random) -> None:
    file = _folder(place, name) / "receipt.json"
    made = StepReceipt.read(file)
    changed = {**made.inputs, chance.choice(list(made.inputs)): make.digest("another")}
    made.model_copy(update={"inputs": changed}).write(file)


def _planted(place: Place, _name: str, _other: str, _chance: random.Random) -> None:
    """The last agent is current by it, were it believed."""
    report = make.agent_report(simulator=NEXT)
    read = {"agent": place.artifact(AGENTS[-1]), "imitated": STARTED, "simulator": NEXT}
    folder = make.finished_step(place.folder, "validate", report.digest, **read)
    report.write(folder / "report.json")


def _folder(place: Place, name: str) -> Path:
    return place.folder / "steps/validate" / place.steps_of(name)[0]


def _rewrite(place: Place, name: str, chance: random.Random) -> AgentReport:
    file = _folder(place, name) / "report.json"
    steps = chance.randrange(1_000, 2_000)
    report = AgentReport.read(file).model_copy(update={"live_steps": steps})
    report.write(file)
    return report


VALIDATION_MUTATIONS: dict[str, Change] = {
    "validation's report changed": _report_changed,
    "validation's report and receipt changed": _receipt_too,
    "validation's report exchanged": _report_exchanged,
    "validation's report removed": _report_removed,
    "validation's receipt changed": _receipt_garbled,
    "validation planted": _planted,
}
OF_VALIDATED = VALIDATION_MUTATIONS.keys() - {"validation planted"}
