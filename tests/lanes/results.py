"""The cost and the outcome of each test of one pytest process, as JSON lines."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self


@dataclass
class TestResult:
    """The result of one test, over its setup, call and teardown."""

    __test__ = False

    name: str
    """Pytest's node id."""
    outcome: str = "passed"
    """`passed`, `skipped` or `failed`; an error in a fixture is a failure."""
    seconds: float = 0.0
    processor_seconds: float = 0.0
    """Of the pytest process and of all its descendants."""

    @property
    def file(self) -> str:
        """The test's file, from the project's root."""
        return self.name.partition("::")[0]

    def line(self) -> str:
        """The JSON line."""
        return json.dumps(asdict(self)) + "\n"


@dataclass
class LaneResults:
    """The results of all tests that ended in one pytest process."""

    num_collected: int = 0
    tests: list[TestResult] = field(default_factory=list)

    @classmethod
    def read(cls, file: Path) -> Self:
        """Empty if the process ended before its first test did."""
        if not file.exists():
            return cls()
        # A killed process may leave an incomplete line.
        complete_lines = file.read_text().rpartition("\n")[0]
        first, *lines = complete_lines.splitlines() or ['{"num_collected": 0}']
        return cls(json.loads(first)["num_collected"], [TestResult(**json.loads(x)) for x in lines])

    def count(self, outcome: str) -> int:
        """The tests with this outcome."""
        return sum(test.outcome == outcome for test in self.tests)
