"""What the tests of one pytest process cost, and how they ended: a JSON line for each test."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self


@dataclass
class TestResult:
    """Of one test, over its setup, call and teardown."""

    __test__ = False

    name: str
    """Pytest's node id."""
    outcome: str = "passed"
    """`passed`, `skipped` or `failed`; an error in a fixture is a failure."""
    seconds: float = 0.0
    processor_seconds: float = 0.0
    """Of the pytest process and of all processes under it."""

    @property
    def file(self) -> str:
        """The test's file, from the project's root."""
        return self.name.partition("::")[0]

    def line(self) -> str:
        """As it is written."""
        return json.dumps(asdict(self)) + "\n"


@dataclass
class LaneResults:
    """Of all tests that ended in one pytest process."""

    num_collected: int = 0
    tests: list[TestResult] = field(default_factory=list)

    @classmethod
    def read(cls, file: Path) -> Self:
        """Empty where the process ended before its first test did."""
        if not file.exists():
            return cls()
        # A process that is killed may leave half a line.
        whole = file.read_text().rpartition("\n")[0]
        first, *lines = whole.splitlines() or ['{"num_collected": 0}']
        return cls(json.loads(first)["num_collected"], [TestResult(**json.loads(x)) for x in lines])

    def write(self, file: Path) -> None:
        """As `read` takes it."""
        file.parent.mkdir(exist_ok=True)
        first = json.dumps({"num_collected": self.num_collected}) + "\n"
        file.write_text(first + "".join(test.line() for test in self.tests))

    def count(self, outcome: str) -> int:
        """The tests that ended so."""
        return sum(test.outcome == outcome for test in self.tests)
