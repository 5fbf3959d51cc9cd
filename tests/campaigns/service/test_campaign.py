"""A short version, over each kind of ledger, of the campaign that `make faults-simulator` runs."""

import pytest

from campaigns.service.campaign import over_postgres, over_sqlite


@pytest.mark.waits
@pytest.mark.parametrize("campaign", [over_sqlite, over_postgres])
def test_no_step_is_fabricated_lost_or_doubled_under_faults(campaign, tmp_path):
    report = campaign(tmp_path / "campaign", num_faults=40, seed="short")
    assert report.sentences == []
    assert report.faults >= 40
    assert report.steps > 40
