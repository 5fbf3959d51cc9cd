"""The output after all tests."""

from lanes.budget import over_budget
from lanes.results import LaneResults, TestResult
from lanes.summary import Summary, slowest


def test_the_last_line_counts_all_tests():
    tests = [TestResult("a::b"), TestResult("a::c", "failed"), TestResult("a::d", "skipped")]
    *before, last = Summary(tests).lines()
    assert before == ["failed: a::c"]
    assert last == "1 passed, 1 failed, 1 skipped"


def test_an_unfinished_lane_counts_as_a_failure():
    summary = Summary([TestResult("a::b")], ["the lane waits did not run to its end"])
    assert list(summary.lines())[-1] == "1 passed, 1 failed"
    assert summary.num_failed == 1


def test_the_slowest_tests_are_listed_first():
    tests = [TestResult(f"a::{seconds}", seconds=seconds) for seconds in range(30)]
    _, first, *others = slowest(tests)
    assert first.endswith("a::29")
    assert len(others) == 19


def test_folders_over_budget_or_without_a_budget_are_listed(tmp_path):
    budget = tmp_path / "budget.toml"
    budget.write_text('[processor_seconds]\n"agentworld" = 10\n"agentworld/audit" = 5\ncel = 1\n')
    tests = [
        TestResult("tests/agentworld/audit/test_a.py::test_a", processor_seconds=6),
        TestResult("tests/agentworld/data/test_a.py::test_a", processor_seconds=9),
        TestResult("tests/charts/test_a.py::test_a", processor_seconds=2),
    ]
    assert list(over_budget(tests, budget)) == [
        "over budget: agentworld/audit took 6 of 5 processor seconds",
        "no budget: charts took 2 processor seconds",
    ]


def test_a_truncated_line_of_a_killed_run_is_ignored(tmp_path):
    file = tmp_path / "results.jsonl"
    file.write_text(f'{{"num_collected": 2}}\n{TestResult("a::b").line()}{{"name": "a:')
    assert LaneResults.read(file) == LaneResults(2, [TestResult("a::b")])
