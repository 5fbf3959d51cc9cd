import pytest

from agentworld.errors import InputError
from agentworld.recipes.environment import from_environment
from agentworld.recipes.ranks import Ranks

TORCHRUN = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}


def test_ranks_are_read_from_the_launchers_environment(monkeypatch):
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    ranks = from_environment(Ranks)
    assert (ranks.rank, ranks.world_size, ranks.local_rank) == (5, 8, 1)
    assert not ranks.is_first
    assert ranks.is_of_several_machines


def test_a_process_without_a_launcher_is_the_only_rank():
    ranks = from_environment(Ranks)
    assert (ranks.rank, ranks.world_size, ranks.local_rank) == (0, 1, 0)
    assert ranks.is_first
    assert not ranks.is_of_several_machines


def test_a_rank_that_is_not_a_number_is_refused(monkeypatch):
    monkeypatch.setenv("RANK", "first")
    with pytest.raises(InputError, match="the environment is wrong at RANK"):
        from_environment(Ranks)


def test_a_rank_not_below_the_world_size_is_refused(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(
        InputError, match="rank 1 is not one of 1 processes, .*; set RANK and WORLD"
    ):
        from_environment(Ranks)
