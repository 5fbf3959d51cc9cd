"""A short version of the campaign that `make tamper MODE=garbage` runs."""

import pytest

from campaigns.garbage.campaign import in_ledger, in_registry

pytestmark = pytest.mark.compute


def test_garbage_in_rows_and_files_neither_stops_an_audit_nor_removes_findings(tmp_path):
    report = in_ledger(tmp_path / "store", 20, "short")
    assert report.sentences == []
    assert (report.cases, report.clean) == (20, True)


def test_garbage_in_mlflow_neither_stops_an_audit_nor_removes_findings(tmp_path):
    report = in_registry(tmp_path / "mlflow", 15, "short")
    assert report.sentences == []
    assert (report.cases, report.clean) == (15, True)
