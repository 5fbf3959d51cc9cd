from agentworld.storage.receipts import finished_steps, step_that_read
from make import records

AGENT, OTHER, REPORT = records.digest("agent"), records.digest("other"), records.digest("report")


def test_a_step_is_found_by_all_that_it_read(tmp_path):
    folder = records.finished_step(tmp_path, "validate", REPORT, agent=AGENT, simulator=OTHER)
    found = step_that_read(tmp_path, "validate", agent=AGENT, simulator=OTHER)
    assert found
    assert found.folder == folder
    assert step_that_read(tmp_path, "validate", agent=AGENT, simulator=AGENT) is None


def test_what_is_finished_later_is_found_later(tmp_path):
    assert step_that_read(tmp_path, "validate", agent=AGENT) is None
    records.finished_step(tmp_path, "validate", REPORT, agent=AGENT)
    assert step_that_read(tmp_path, "validate", agent=AGENT)


def test_a_step_whose_receipt_was_taken_away_is_not_finished(tmp_path):
    folder = records.finished_step(tmp_path, "validate", REPORT, agent=AGENT)
    assert [each.folder for each in finished_steps(tmp_path, "validate")] == [folder]
    (folder / "receipt.json").unlink()
    assert step_that_read(tmp_path, "validate", agent=AGENT) is None
    assert list(finished_steps(tmp_path, "validate")) == []
