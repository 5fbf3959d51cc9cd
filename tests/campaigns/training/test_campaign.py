"""A short version of the campaign that `make faults-train` runs."""

import pytest

from campaigns.training.campaign import SHARES, run
from campaigns.training.trainings import ALONE, SEVERAL

pytestmark = pytest.mark.compute  # as root, for the disk that it fills up

EACH_KIND = dict.fromkeys(SHARES, 1)


def test_one_process_ends_with_the_same_weights_whatever_happens_to_it(tmp_path):
    report = run(tmp_path / "campaign", len(EACH_KIND), "short", ALONE, EACH_KIND, 1)
    assert report.sentences == []
    assert report.by_kind == EACH_KIND
    assert report.trainings.keys() == {"cpt", "sft"}
    assert report.resumed  # a training that was told to end goes on from its checkpoint


def test_several_processes_end_when_one_is_lost_and_any_number_goes_on(tmp_path):
    report = run(tmp_path / "campaign", 1, "short", [SEVERAL], {"killed": 1}, 1)
    assert report.sentences == []
    assert report.by_kind == {"killed": 1}
