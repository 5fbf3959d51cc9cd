"""Sums of a run's log entries, which its checkpoints include."""

import re

from agentworld.records.log import Fields
from agentworld.records.statements.edge import Traffic

MOST_CONTROLS = 100
_DIGEST = re.compile("sha256:[0-9a-f]{64}")


class TrafficCount:
    """The sums of an append-only log."""

    def __init__(self) -> None:
        self._num_episodes = self._num_steps = self._num_copied = self._other_controls = 0
        self._controls: dict[str, int] = {}
        self._first_at = self._last_at = ""

    def add(self, fields: Fields) -> None:
        """Adds an entry."""
        at = str(fields.get("at", ""))
        self._first_at, self._last_at = self._first_at or at, at
        match fields:
            case {"kind": "episode-opened", "control": str(control)} if _DIGEST.fullmatch(control):
                self._num_episodes += 1
                self._count_control(control)
                self._num_copied += _number(fields.get("num_copied"))
            case {"kind": "steps"}:
                self._num_steps += _number(fields.get("num_steps"))

    @property
    def total(self) -> Traffic:
        """The sums so far. Copied steps are in the same entries as answered ones."""
        num_copied = min(self._num_copied, self._num_steps)
        return Traffic(
            num_episodes=self._num_episodes,
            num_steps=self._num_steps - num_copied,
            num_copied=num_copied,
            controls=dict(self._controls),
            other_controls=self._other_controls,
            first_at=self._first_at,
            last_at=self._last_at,
        )

    def _count_control(self, control: str) -> None:
        if control in self._controls or len(self._controls) < MOST_CONTROLS:
            self._controls[control] = self._controls.get(control, 0) + 1
        else:
            self._other_controls += 1


def _number(value: object) -> int:
    """0 if the value is not a number: the log then does not match its signature."""
    return value if isinstance(value, int) and value > 0 else 0
