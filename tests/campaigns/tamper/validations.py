"""An attacker's changes of a store's folders of validations, on which an agent's state depends."""

import shutil
from pathlib import Path

from agentworld.records.report import AgentReport
from agentworld.records.step import StepReceipt
from campaigns.tamper.registered import AGENTS, NEXT, STARTED
from campaigns.tamper.victim import Change, Victim
from make import records

VALIDATED = AGENTS[:-1]


def _report_changed(victim: Victim) -> AgentReport:
    file, steps = _file(victim, "report.json"), victim.chance.randrange(1_000, 2_000)
    report = AgentReport.read(file).model_copy(update={"live_steps": steps})
    report.write(file)
    return report


def _receipt_too(victim: Victim) -> None:
    """Changes both consistently."""
    output = {"output": _report_changed(victim).digest}
    file = _file(victim, "receipt.json")
    StepReceipt.read(file).model_copy(update=output).write(file)


def _report_exchanged(victim: Victim) -> None:
    shutil.copy(_file(victim.other, "report.json"), _file(victim, "report.json"))


def _report_removed(victim: Victim) -> None:
    _file(victim, "report.json").unlink()


def _receipt_garbled(victim: Victim) -> None:
    file = _file(victim, "receipt.json")
    receipt = StepReceipt.read(file)
    changed_input = {victim.chance.choice(list(receipt.inputs)): records.digest("another")}
    receipt.model_copy(update={"inputs": {**receipt.inputs, **changed_input}}).write(file)


def _planted(victim: Victim) -> None:
    """Would make the last agent current, if it were accepted."""
    report = records.agent_report(simulator=NEXT)
    inputs = {"agent": victim.artifact, "imitated": STARTED, "simulator": NEXT}
    folder = records.finished_step(victim.folder, "validate", report.digest, **inputs)
    report.write(folder / "report.json")


def _file(victim: Victim, name: str) -> Path:
    return victim.folder / "steps/validate" / victim.steps()[0] / name


VALIDATION_MUTATIONS: dict[str, Change] = {
    "validation's report changed": _report_changed,
    "validation's report and receipt changed": _receipt_too,
    "validation's report exchanged": _report_exchanged,
    "validation's report removed": _report_removed,
    "validation's receipt changed": _receipt_garbled,
    "validation planted": _planted,
}
OF_VALIDATED = VALIDATION_MUTATIONS.keys() - {"validation planted"}
