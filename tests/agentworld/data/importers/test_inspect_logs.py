import json

import pytest

from agentworld.data.importers.inspect_logs import samples_of
from agentworld.storage.source import files_of
from make import zips

HEADER = {"version": 3, "status": "success", "eval": {"task": "listing", "model": "m"}}
SAMPLE = {"id": "a", "epoch": 1, "messages": []}


def read(path):
    return list(samples_of(files_of(str(path))[0]))


def eval_file(folder, write=zips.write_zip, **members):
    return write(
        folder / "a.eval",
        {name: json.dumps(value).encode() for name, value in members.items()},
    )


@pytest.mark.parametrize("write", [zips.write_zip, zips.write_zstd_zip])
def test_an_eval_file_has_a_sample_for_each_epoch(tmp_path, write):
    members = {
        "_journal/start.json": HEADER,
        "samples/b/c_epoch_2.json": SAMPLE,
        "samples/b/c_epoch_1.json": SAMPLE,
        "summaries.json": [SAMPLE],
        "header.json": HEADER,
    }
    samples = read(eval_file(tmp_path, write, **members))
    assert [sample.row.place for sample in samples] == list(members)[1:3]
    assert [sample.row.value for sample in samples] == [SAMPLE, SAMPLE]
    assert {sample.evaluation.task for sample in samples} == {"listing"}


def test_an_unfinished_log_contains_its_finished_samples(tmp_path):
    members = {"_journal/start.json": HEADER, "samples/a_epoch_1.json": SAMPLE}
    (sample,) = read(eval_file(tmp_path, **members))
    assert sample.row.value == SAMPLE


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        (
            {"samples/a_epoch_1.json": SAMPLE},
            "the log has no header.json or _journal/start.json; export it again",
        ),
        ({"header.json": {"eval": 3}, "samples/a_epoch_1.json": SAMPLE}, "eval: "),
        ({"header.json": HEADER, "samples/a_epoch_1/sample.json": {}}, "the sample is stored in"),
    ],
)
def test_an_unreadable_log_reports_the_reason(tmp_path, members, problem):
    (sample,) = read(eval_file(tmp_path, **members))
    assert sample.row.problem.startswith(problem)


def test_a_damaged_sample_is_a_problem_and_the_other_sample_is_read(tmp_path):
    members = {
        "samples/a_epoch_1.json": b"{",
        "samples/b_epoch_1.json": json.dumps(SAMPLE).encode(),
        "header.json": json.dumps(HEADER).encode(),
    }
    path = zips.write_zip(tmp_path / "a.eval", members)
    assert [bool(sample.row.problem) for sample in read(path)] == [True, False]
    zips.set_field(path, 24, "<I", 3)
    bad_sample, good_sample = read(path)
    assert bad_sample.row.place == "samples/a_epoch_1.json"
    assert bad_sample.row.problem.startswith("it is damaged")
    assert not good_sample.row.problem


def test_a_truncated_zip_is_a_problem(tmp_path):
    path = eval_file(tmp_path, **{"header.json": HEADER, "samples/a_epoch_1.json": SAMPLE})
    path.write_bytes(path.read_bytes()[:-10])
    (sample,) = read(path)
    assert sample.row.problem.startswith("it is not a whole zip")


def test_samples_of_a_json_log_are_named_by_their_index(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(HEADER | {"samples": [SAMPLE, SAMPLE]}))
    assert [sample.row.place for sample in read(path)] == ["samples[0]", "samples[1]"]
