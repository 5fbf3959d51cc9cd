import os
from datetime import UTC, datetime

from agentworld.storage.receipts import finished_steps, step_that_read
from make import records

AGENT, OTHER, REPORT = records.digest("agent"), records.digest("other"), records.digest("report")


def test_a_step_is_found_by_all_of_its_inputs(tmp_path):
    folder = records.finished_step(tmp_path, "validate", REPORT, agent=AGENT, simulator=OTHER)
    step = step_that_read(tmp_path, "validate", agent=AGENT, simulator=OTHER)
    assert step
    assert step.folder == folder
    assert step_that_read(tmp_path, "validate", agent=AGENT, simulator=AGENT) is None


def test_a_step_is_found_as_soon_as_it_is_finished(tmp_path):
    assert step_that_read(tmp_path, "validate", agent=AGENT) is None
    records.finished_step(tmp_path, "validate", REPORT, agent=AGENT)
    assert step_that_read(tmp_path, "validate", agent=AGENT)


def test_the_newest_step_finished_by_a_given_time_is_found(tmp_path):
    old, new = (
        records.finished_step(tmp_path, "validate", records.digest(name), agent=AGENT, other=OTHER)
        for name in ("old", "new")
    )
    times = {old: 10, new: 30}
    for folder, seconds in times.items():
        os.utime(folder / "receipt.json", (seconds, seconds))
    steps = {
        seconds: step_that_read(
            tmp_path, "validate", datetime.fromtimestamp(seconds, UTC), agent=AGENT
        )
        for seconds in (9, 10, 29, 30)
    }
    folders = {seconds: step and step.folder for seconds, step in steps.items()}
    assert folders == {9: None, 10: old, 29: old, 30: new}


def test_a_step_without_its_receipt_is_not_finished(tmp_path):
    folder = records.finished_step(tmp_path, "validate", REPORT, agent=AGENT)
    assert [step.folder for step in finished_steps(tmp_path, "validate")] == [folder]
    (folder / "receipt.json").unlink()
    assert step_that_read(tmp_path, "validate", agent=AGENT) is None
    assert list(finished_steps(tmp_path, "validate")) == []
