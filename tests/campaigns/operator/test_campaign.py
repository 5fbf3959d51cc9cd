"""A short version of the campaign that `make faults-operator` runs."""

import pytest

from campaigns.operator.campaign import run
from campaigns.operator.chaos import SHARES

EACH_KIND = {**dict.fromkeys(SHARES, 1), "request": 6}
REQUIRED_KINDS = {
    "API server killed",
    "leader killed",
    "follower killed",
    "service killed",
    "pods killed",
    "watches dropped",
    "certificate renewed",
    "certificate spoiled",
    "webhook unreachable",
}


@pytest.mark.waits
def test_all_resources_converge_to_their_specs_after_faults(tmp_path):
    report = run(tmp_path / "campaign", sum(EACH_KIND.values()), "short", EACH_KIND)
    assert report.sentences == []
    assert (report.faults, report.diverged) == (sum(EACH_KIND.values()), 0)
    assert report.by_kind.keys() >= REQUIRED_KINDS
    assert report.writes > 20
    assert report.moves["done"]
