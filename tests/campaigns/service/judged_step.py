"""Judges one observation: whether it is complete, in its place, and from the right engine."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from campaigns.harness.finding import Finding
from campaigns.service import law

Row = dict[str, Any]
_DEFAULTS: Row = {"initial_state": "", "turn_limit": 32, "simulation_instruction": ""}
"""Defaults of openings."""
Turn = tuple[str, str]
"""An action and its observation."""


class JudgedStep(NamedTuple):
    """A step as a client or the ledger has it."""

    where: str
    simulator: str
    """The run's simulator."""
    opening: Row
    before: Sequence[Turn | None]
    """The earlier turns; null for an unknown one."""
    action: str
    observation: str | None
    outcome: law.Outcome


class Saying(NamedTuple):
    """The engines' texts, and their known properties."""

    said: dict[str, Row]
    """By observation, which are all different."""
    secrets: dict[str, str]
    """By engine."""
    manifests: dict[str, Row]
    """By digest."""

    def findings(self, step: JudgedStep) -> Iterator[Finding]:
        """The problems of a step."""
        yield from self._origin(step)
        outcome = _outcome(step)
        if outcome != step.outcome:
            yield Finding("rewarded", f"{step.where} gave {step.outcome} and not {outcome}")

    def _origin(self, step: JudgedStep) -> Iterator[Finding]:
        text_row = self.said.get(step.observation or "")
        if text_row is None:
            yield Finding("fabricated", f"{step.where} shows {_short(step)}, which nobody said")
        elif text_row["version"] != _version(self.manifests[step.simulator]):
            yield Finding("crossed_versions", f"{step.where} was said by {text_row['version']}")
        elif text_row["fault"] is not None:
            yield Finding("fabricated", f"{step.where} was said in an answer of no use")
        elif step.observation != self._said_to(step, text_row):
            yield Finding("fabricated", f"{step.where} was said after something else")

    def _said_to(self, step: JudgedStep, text_row: Row) -> str | None:
        """The engine's text for the messages of this step."""
        turns = [turn for turn in step.before if turn is not None]
        if len(turns) != len(step.before):
            return None
        manifest, opening = self.manifests[step.simulator], _DEFAULTS | step.opening
        start = (opening.get("task") or opening)["initial_state"]
        control = opening["simulation_instruction"] or manifest["control_text"]
        prompt = _system_prompt(manifest, opening)
        if prompt is None:
            return None
        messages = law.messages(prompt, start, control, turns, step.action)
        return law.observation(
            self.secrets[text_row["engine"]], text_row["version"], messages, text_row["nonce"]
        )


def _system_prompt(manifest: Row, opening: Row) -> str | None:
    """The prompt of the domain in the opening, or else of the only one; null if there is none."""
    domains: dict[str, Row] = manifest["domains"]
    name = (opening.get("task") or {}).get("domain") or opening.get("domain")
    if name is None or name == "":
        name = next(iter(domains)) if len(domains) == 1 else ""
    return str(domains[name]["system_prompt"]) if name in domains else None


def _outcome(step: JudgedStep) -> law.Outcome:
    opening = _DEFAULTS | step.opening
    task = opening.get("task")
    output = task["success"]["output"] if task else None
    limit = (task or opening)["turn_limit"]
    number = len(step.before) + 1
    return law.outcome(output, limit, number, step.action, step.observation or "")


def _version(manifest: Row) -> str:
    """The version in its control text: `You are the first.`"""
    return str(manifest["control_text"]).removeprefix("You are the ").removesuffix(".")


def _short(step: JudgedStep) -> str:
    return repr((step.observation or "")[:60])
