"""A run of fast tests, of files that the test wrote."""

import pytest

from lanes import fast
from lanes.process import ROOT

pytestmark = pytest.mark.waits


def test_each_file_runs_once_and_the_output_of_a_failure_is_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))  # as the Makefile sets it
    for name in "abcd":
        test = f"def test_it(): assert '{name}' != 'c'\n"
        (tmp_path / f"test_{name}.py").write_text(test)
    plugins = ("-p", "lanes.plugin", "-p", "lanes.parts")
    options = (str(tmp_path), *plugins, f"--rootdir={tmp_path}", "-c", "/dev/null")
    monkeypatch.setattr(fast, "FAST", options)
    monkeypatch.setattr(fast, "QUICK", ())
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: {0, 1})
    assert fast.main() == 1
    output = capsys.readouterr().out
    assert output.endswith("failed: test_c.py::test_it\n3 passed, 1 failed\n")
    assert "assert 'c' != 'c'" in output
    assert "fast-0" not in output
