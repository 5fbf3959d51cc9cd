"""The short form of `make bench-domains`: the verdicts on a few episodes recorded twice."""

import asyncio

import pytest

from agentworld.domains.base import domain_of
from make.recorded_twice import record_twice
from make.verifier_quality import measure_quality

NUM_EPISODES = {"shell": 10, "mcp": 6, "terminal": 4}


@pytest.mark.waits
@pytest.mark.parametrize("name", NUM_EPISODES)
def test_a_second_recording_passes_and_wrong_changes_of_every_kind_fail(name):
    episodes = asyncio.run(record_twice(name, NUM_EPISODES[name], at_once=2, patiently=True))
    quality = measure_quality(domain_of(name), episodes)
    assert quality.verdict_coverage.value > 0.5
    assert quality.second_truth_pass.value == 1, quality.mistakes
    assert quality.tolerated_pass.value == 1, quality.mistakes
    shares = {kind: share.total > 0 and share.value for kind, share in quality.killed.items()}
    assert {kind for kind, share in shares.items() if share < 0.95} == set(), quality.mistakes
