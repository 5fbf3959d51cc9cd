"""The plugin in a run of a few tests."""

import pytest

import lanes.plugin
from lanes.results import LaneResults

pytestmark = pytest.mark.compute

pytest_plugins = ["pytester"]

SLOW_FIXTURE = """
import pytest

@pytest.fixture(scope="session")
def tiny_model():
    return "model"
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Runs the tests of one file with the plugin; returns pytest's exit code, and its results."""
    monkeypatch.setenv(
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1"
    )  # other plugins take a third of a second

    def run_tests(code, *arguments, has_results=True):
        pytester.mkdir("tests")
        (pytester.path / "tests/conftest.py").write_text(SLOW_FIXTURE)
        (pytester.path / "tests/test_it.py").write_text(f"import pytest\n{code}")
        markers = "\n".join(f"  {name}: a marker" for name in ("compute", "waits", "ordered"))
        pytester.makeini(f"[pytest]\naddopts = --import-mode=importlib\nmarkers =\n{markers}")
        file = pytester.path / "results.jsonl"
        command = ["-p", "lanes.plugin", *arguments, "tests"]
        command += [f"--results={file}"] * has_results
        return pytester.runpytest_inprocess(*command), LaneResults.read(file)

    return run_tests


class ProcessorClock:
    """Processor time that only the tests of the inner run use."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def outcomes(results):
    return {test.name.rpartition("::")[2]: test.outcome for test in results.tests}


@pytest.mark.parametrize(
    "code",
    [
        "def test_a(tiny_model): pass",
        "@pytest.mark.compute\n@pytest.mark.waits\ndef test_a(): pass",
    ],
    ids=["none", "two"],
)
def test_a_slow_test_needs_exactly_one_lane(run, code):
    result, results = run(code)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "tests/test_it.py::test_a" in result.stderr.str() + result.stdout.str()
    assert results.tests == []


def test_a_local_fixture_with_the_name_of_a_slow_fixture_makes_no_test_slow(run):
    code = "@pytest.fixture\ndef tiny_model(): return 1\ndef test_a(tiny_model): pass"
    _, results = run(code)
    assert results.count("passed") == 1


def test_every_outcome_of_a_test_is_recorded(run):
    _, results = run(
        "@pytest.fixture\ndef broken(): raise OSError\n"
        "def test_passes(): pass\n"
        "def test_fails(): assert False\n"
        "def test_has_no_fixture(broken): pass\n"
        "def test_is_skipped(): pytest.skip('why')\n"
    )
    assert results.num_collected == 4
    assert outcomes(results) == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_has_no_fixture": "failed",
        "test_is_skipped": "skipped",
    }


def test_a_fast_test_that_computes_too_long_fails(run):
    work = "sum(range(1_000_000))"
    with pytest.MonkeyPatch.context() as patch:  # only for the tests within this one
        patch.setattr(lanes.plugin, "MOST_FAST_SECONDS", -1.0)
        _, results = run(
            f"def test_fast(): {work}\n@pytest.mark.compute\ndef test_slow(): {work}\n"
        )
    assert outcomes(results) == {"test_fast": "failed", "test_slow": "passed"}


def test_a_test_that_ends_a_process_is_not_charged_for_its_earlier_time(run):
    process = "import time\\nwhile time.process_time() < 0.5: pass\\nprint(flush=True)\\ninput()"
    with pytest.MonkeyPatch.context() as patch:  # only for the tests within this one
        patch.setattr(lanes.plugin, "MOST_FAST_SECONDS", 0.4)
        result, _ = run(
            "import sys\nfrom subprocess import PIPE, Popen\n"
            "@pytest.fixture(scope='module')\ndef process():\n"
            f"  command = [sys.executable, '-c', '{process}']\n"
            "  return Popen(command, stdin=PIPE, stdout=PIPE)\n"
            "@pytest.mark.compute\ndef test_slow(process): process.stdout.readline()\n"
            "def test_fast(process): process.kill(), process.communicate()\n",
            has_results=False,
        )
    assert result.parseoutcomes() == {"passed": 2}


def test_a_short_test_that_waits_is_repeated_with_its_files_fixtures(run, monkeypatch):
    monkeypatch.setattr("lanes.repeating.tree_seconds", ProcessorClock())
    result, results = run(
        "from lanes import repeating\n"
        "@pytest.fixture(scope='module')\ndef made(): print('made once')\n"
        "@pytest.fixture\ndef own(): yield print('own made'); print('own gone')\n"
        "@pytest.mark.waits\ndef test_short(made, own): repeating.tree_seconds.now += 9\n"
        "@pytest.mark.waits\ndef test_long(made): repeating.tree_seconds.now += 10\n"
        "@pytest.mark.waits\n@pytest.mark.parametrize('n', [1, 2])\ndef test_with(made, n): pass\n"
        "@pytest.mark.compute\ndef test_computes(made): pass\n",
        "--repeat=9",
        "-s",
    )
    names = [test.name.rpartition("::")[2] for test in results.tests]
    assert names == [
        *["test_short"] * 9,
        *["test_long"] * 3,
        *[*["test_with[1]"] * 5, *["test_with[2]"] * 5],
        *["test_computes"] * 3,
    ]
    output = result.stdout.str()
    assert [output.count(text) for text in ("made once", "own made", "own gone")] == [1, 9, 9]


def test_a_file_of_ordered_tests_is_repeated_as_a_whole(run):
    result, results = run(
        "pytestmark = [pytest.mark.waits, pytest.mark.ordered]\n"
        "@pytest.fixture(scope='module')\ndef log(): print('a log'); return []\n"
        "def test_first(log): log.append(1)\n"
        "def test_second(log): assert log == [1]\n",
        "--repeat=9",
        "-s",
    )
    names = [test.name.rpartition("::")[2] for test in results.tests]
    assert names == ["test_first", "test_second"] * 3
    assert result.stdout.str().count("a log") == 3
    assert result.ret == 0


def test_a_repeated_run_with_exitfirst_stops_after_its_first_failure(run):
    _, results = run("def test_it(): assert False\ndef test_other(): pass\n", "--repeat=9", "-x")
    assert len(results.tests) == 1
