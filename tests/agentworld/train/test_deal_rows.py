"""Rank 0 has all rows, and each process receives its own."""

from pathlib import Path

import pytest

from machines.forked import run_with_ranks

pytestmark = pytest.mark.compute


def test_each_process_receives_exactly_its_rows(tmp_path: Path) -> None:
    from machines.in_parts import SHARES, deal

    run_with_ranks(tmp_path, deal, tmp_path, num=3)
    rows_by_rank = [(tmp_path / f"rows-{rank}").read_text().split() for rank in range(3)]
    assert [sorted(map(int, numbers)) for numbers in rows_by_rank] == [
        sorted(share) for share in SHARES
    ]
