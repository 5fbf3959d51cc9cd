import pytest

from agentworld.errors import InputError
from agentworld.recipes.environment import from_environment
from agentworld.recipes.ranks import Ranks

TORCHRUN = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "5",
    "OMPI_COMM_WORLD_SIZE": "8",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
}


@pytest.mark.parametrize("variables", [TORCHRUN, OPEN_MPI], ids=["torchrun", "Open MPI"])
def test_a_process_finds_its_place_in_what_its_launcher_says(monkeypatch, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    ranks = from_environment(Ranks)
    assert ranks.variables == TORCHRUN
    assert not ranks.is_first


def test_a_process_that_nobody_launched_is_alone():
    assert from_environment(Ranks).variables == {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}


def test_a_place_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("RANK", "first")
    with pytest.raises(InputError, match="the environment is wrong at RANK"):
        from_environment(Ranks)


def test_a_rank_beyond_all_processes_is_refused(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(InputError, match="rank 1 is none of 1 processes, .*; set RANK and WORLD"):
        from_environment(Ranks)
