"""A short campaign: what `make tamper` does a thousand times."""

import pytest

from tamper import columns
from tamper.campaign import campaign
from tamper.registry import REGISTRY_MUTATIONS


@pytest.mark.slow
def test_every_kind_of_tampering_is_found_and_named_and_nobody_else_is_accused(tmp_path):
    report = campaign(tmp_path / "campaign", 130, "short")
    assert report.sentences == []
    assert (report.found, report.false_alarms) == (130, 0)
    assert report.records > 1_000
    # Each column is tampered with, or is marked as none that is evidence.
    assert {f"{column.table}.{column.name}" for column in columns.evidence()} <= {*report.by_kind}
    assert {*REGISTRY_MUTATIONS} <= {*report.by_kind}
