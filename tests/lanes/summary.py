"""The summary at the end of a run of the tests."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lanes.results import TestResult

_NUM_SLOWEST = 20


class Summary(NamedTuple):
    """The results of a whole run."""

    tests: Sequence[TestResult]
    errors: Sequence[str] = ()
    """The reasons why parts of the run are missing; each counts as a failure."""

    @property
    def num_failed(self) -> int:
        return self._count("failed") + len(self.errors)

    def lines(self) -> Iterator[str]:
        """The failures; the last line has the counts."""
        for test in self.tests:
            if test.outcome == "failed":
                yield f"failed: {test.name}"
        for error in self.errors:
            yield f"error: {error}"
        num_skipped = self._count("skipped")
        counts = f"{self._count('passed')} passed, {self.num_failed} failed"
        yield f"{counts}, {num_skipped} skipped" if num_skipped else counts

    def _count(self, outcome: str) -> int:
        return sum(test.outcome == outcome for test in self.tests)


def slowest(tests: Sequence[TestResult]) -> Iterator[str]:
    """A line for each of the slowest tests."""
    yield f"the {_NUM_SLOWEST} slowest tests: seconds, and seconds of a processor"
    for test in sorted(tests, key=lambda test: -test.seconds)[:_NUM_SLOWEST]:
        yield f"{test.seconds:8.1f} {test.processor_seconds:8.1f}  {test.name}"
