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


class Shown(NamedTuple):
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

    def findings(self, shown: Shown) -> Iterator[Finding]:
        """What is wrong with a step."""
        yield from self._origin(shown)
        outcome = _outcome(shown)
        if outcome != shown.outcome:
            yield Finding("rewarded", f"{shown.where} gave {shown.outcome} and not {outcome}")

    def _origin(self, shown: Shown) -> Iterator[Finding]:
        said = self.said.get(shown.observation or "")
        if said is None:
            yield Finding("fabricated", f"{shown.where} shows {_short(shown)}, which nobody said")
        elif said["version"] != _version(self.manifests[shown.simulator]):
            yield Finding("crossed_versions", f"{shown.where} was said by {said['version']}")
        elif said["fault"] is not None:
            yield Finding("fabricated", f"{shown.where} was said in an answer of no use")
        elif shown.observation != self._said_to(shown, said):
            yield Finding("fabricated", f"{shown.where} was said after something else")

    def _said_to(self, shown: Shown, said: Row) -> str | None:
        """What the engine would have said to the messages of this step."""
        turns = [turn for turn in shown.before if turn is not None]
        if len(turns) != len(shown.before):
            return None
        manifest, opening = self.manifests[shown.simulator], _DEFAULTS | shown.opening
        start = (opening.get("task") or opening)["initial_state"]
        control = opening["simulation_instruction"] or manifest["control_text"]
        prompt = _system_prompt(manifest, opening)
        if prompt is None:
            return None
        asked = law.messages(prompt, start, control, turns, shown.action)
        return law.observation(self.secrets[said["engine"]], said["version"], asked, said["nonce"])


def _system_prompt(manifest: Row, opening: Row) -> str | None:
    """The prompt of the domain in the opening, or else of the only one; null if there is none."""
    domains: dict[str, Row] = manifest["domains"]
    name = (opening.get("task") or {}).get("domain") or opening.get("domain")
    if name is None or name == "":
        name = next(iter(domains)) if len(domains) == 1 else ""
    return str(domains[name]["system_prompt"]) if name in domains else None


def _outcome(shown: Shown) -> law.Outcome:
    opening = _DEFAULTS | shown.opening
    task = opening.get("task")
    output = task["success"]["output"] if task else None
    limit = (task or opening)["turn_limit"]
    number = len(shown.before) + 1
    return law.outcome(output, limit, number, shown.action, shown.observation or "")


def _version(manifest: Row) -> str:
    """The version in its control text: `You are the first.`"""
    return str(manifest["control_text"]).removeprefix("You are the ").removesuffix(".")


def _short(shown: Shown) -> str:
    return repr((shown.observation or "")[:60])
