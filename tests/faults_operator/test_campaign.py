"""A short campaign: what `make faults-operator` does at length."""

import pytest

from faults_operator.campaign import campaign

WANTED = {"API server killed", "leader killed", "follower killed", "pods killed", "watches dropped"}


@pytest.mark.slow
def test_everything_becomes_as_its_spec_wants_it_after_faults(tmp_path):
    report = campaign(tmp_path / "campaign", num_faults=50, seed="short")
    assert report.sentences == []
    assert (report.faults, report.diverged) == (50, 0)
    assert report.by_kind.keys() >= WANTED
    assert report.writes > 50
