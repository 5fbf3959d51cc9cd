"""A short version of the campaign that `make faults-train` runs."""

import pytest

from campaigns.training.campaign import SHARES, run
from campaigns.training.trainings import ALONE, SEVERAL

pytestmark = pytest.mark.compute  # as root, for the disk that it fills up

EACH_KIND = dict.fromkeys(SHARES, 1)


def test_a_one_process_training_ends_with_the_same_weights_after_every_fault(tmp_path):
    report = run(tmp_path / "campaign", len(EACH_KIND), "short", ALONE, EACH_KIND, 1)
    assert report.sentences == []
    assert report.by_kind == EACH_KIND
    assert report.trainings.keys() == {"cpt", "sft"}
    assert report.resumed  # a terminated training resumes from its checkpoint


def test_a_multi_process_training_ends_when_one_is_killed_and_any_number_resumes(tmp_path):
    report = run(tmp_path / "campaign", 1, "short", [SEVERAL], {"killed": 1}, 1)
    assert report.sentences == []
    assert report.by_kind == {"killed": 1}
