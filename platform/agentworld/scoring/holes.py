"""Stops work if half of its verdicts are missing: a judge may be down, and the rest says little."""

from collections import deque
from threading import Lock

from agentworld.errors import JudgeError

_WINDOW = 40
_FEWEST = _WINDOW // 2
"""With fewer, half may be missing by chance."""


class HoleLimit:
    """Counts questions to a judge; threads may share it.

    `subjects` is a plural noun for the judged items; `verdict` is the word for what is missing.
    """

    def __init__(self, subjects: str, verdict: str = "verdict") -> None:
        self.num = 0
        """The number of questions."""
        self.num_holes = 0
        self._subjects = subjects
        self._verdict = verdict
        self._last_problem = ""
        self._recent: deque[bool] = deque(maxlen=_WINDOW)
        """For each recent question, whether it is a hole."""
        self._one_at_a_time = Lock()

    def add(self, problem: str | None) -> None:
        """Counts one question; `problem` is the reason of a hole.

        Raises JudgeError if half of the last 40 are holes.
        """
        with self._one_at_a_time:
            is_hole = problem is not None
            self.num += 1
            self.num_holes += is_hole
            self._recent.append(is_hole)
            self._last_problem = problem or self._last_problem
            num_recent = sum(self._recent)
            if is_hole and num_recent >= _FEWEST:
                raise self._error(num_recent, f"the last {len(self._recent)}")

    def check(self) -> None:
        """Raises JudgeError if half of all are holes, even of a few."""
        if self.num and 2 * self.num_holes >= self.num:
            raise self._error(self.num_holes, f"{self.num}")

    def _error(self, num_holes: int, of_which: str) -> JudgeError:
        return JudgeError(
            f"{num_holes} of {of_which} {self._subjects} have no {self._verdict}, the last because"
            f" {self._last_problem}; the answers are kept: correct the cause and run this again"
        )
