"""What the tasks of a terminal ask of the files, beside the transcript."""

import pytest

from agentworld.domains.shell.start import parse_files
from agentworld.domains.shell.tasks import files_agree, make_errand
from agentworld.records.task import SuccessRule

SHOWS = SuccessRule(closing=r"cat\ tane\.txt", output="kolu\nbesa")


@pytest.mark.parametrize(
    ("files", "agree"),
    [
        ({"tane.txt": "kolu\nbesa"}, True),
        ({"a/tane.txt": "kolu\nbesa", "tane.txt": "x"}, True),
        ({"tane.txt": "kolu / besa"}, False),
        ({"tane.txt": "kolu"}, False),
        ({"xtane.txt": "kolu\nbesa", "tane.txt/": ""}, False),
        ({}, False),
    ],
)
def test_a_file_that_is_to_be_shown_has_to_be_there_with_this_text(files, agree):
    assert files_agree(SHOWS, files) is agree


@pytest.mark.parametrize("closing", ["echo [a-z. ]+", "cat .*", r"cat\ \.hidden", r"cat\ /etc/x"])
def test_a_success_that_is_in_no_file_of_the_home_is_held_against_none(closing):
    assert files_agree(SuccessRule(closing=closing, output="kolu"), {}) is None


def test_the_files_of_a_task_that_is_still_to_be_done_do_not_agree():
    tasks = [solved_task(seed, held_out=True).task for seed in range(100)]
    agree = {each.family: files_agree(each.success, {}) for each in tasks}
    assert agree == {"create": False, "edit": False, "find": None, "report": None}
    starts = [(each.success, parse_files(each.initial_state)) for each in tasks]
    assert not any(files_agree(success, files) for success, files in starts)
