"""Trajectories of others, and a validation's own, as the raw logs of a data set."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.data.imported import import_trajectories
from agentworld.errors import InputError
from agentworld.evaluate.agent import EpisodeResult
from agentworld.recipes.data import CollectRecipe
from agentworld.records.progress import no_tick
from agentworld.records.trajectory import Turn
from agentworld.steps.run import run_by_name
from agentworld.storage.trajectories import (
    read_collected,
    read_trajectories,
    recorded,
    write_trajectories,
)
from make import records

RECIPE = CollectRecipe(held_out_share=0.25)


def taken_in(tmp_path, recipe=RECIPE, tick=no_tick):
    digest = import_trajectories(recipe, tmp_path / "logs", tmp_path / "out", tick)
    assert read_collected(tmp_path / "out").digest == digest
    return list(read_trajectories(tmp_path / "out"))


def log(tmp_path, *trajectories, name="a"):
    write_trajectories(tmp_path / "logs" / f"{name}.jsonl", trajectories)


def test_what_is_marked_stays_marked_and_everything_else_is_for_training(tmp_path):
    log(tmp_path, records.trajectory(seed=1), records.trajectory(seed=2, held_out=True))
    log(tmp_path, records.trajectory(seed=3), name="b")
    assert [(each.seed, each.held_out) for each in taken_in(tmp_path)] == [
        (1, False),
        (2, True),
        (3, False),
    ]
    told = read_collected(tmp_path / "out")
    assert (told.num_trajectories, told.num_transitions) == (2, 4)
    assert (told.num_held_out_trajectories, told.num_held_out_transitions) == (1, 2)


def test_where_none_is_marked_a_share_is_held_out_whatever_else_is_there(tmp_path):
    trajectories = [records.trajectory(seed=seed) for seed in range(400)]
    log(tmp_path, *trajectories)
    held_out = {each.seed for each in taken_in(tmp_path) if each.held_out}
    assert 0.18 < len(held_out) / 400 < 0.32
    log(tmp_path, *trajectories[:200])
    assert {each.seed for each in taken_in(tmp_path) if each.held_out} == {
        seed for seed in held_out if seed < 200
    }


@pytest.mark.parametrize("line", [b"{}\n", b'{"domain": "shell"\n', b"\xff\n"])
def test_a_line_that_is_none_is_named_and_nothing_is_taken_in(tmp_path, line):
    log(tmp_path, records.trajectory())
    log(tmp_path, records.trajectory(seed=1), name="b")
    with (tmp_path / "logs/b.jsonl").open("ab") as file:
        file.write(line)
    with pytest.raises(InputError, match=r"b\.jsonl line 2 is no trajectory"):
        taken_in(tmp_path)
    assert not (tmp_path / "out").exists()


def test_the_domains_of_what_is_taken_in_are_named(tmp_path):
    log(tmp_path, records.trajectory(domain="text"), records.trajectory(seed=1))
    taken_in(tmp_path)
    assert read_collected(tmp_path / "out").domains == ("shell", "text")


def test_a_form_that_nothing_reads_is_refused_with_those_that_there_are(tmp_path):
    log(tmp_path, records.trajectory())
    recipe = RECIPE.model_copy(update={"format": "parquet"})
    with pytest.raises(InputError, match="no importer 'parquet' here; there is .*trajectories"):
        taken_in(tmp_path, recipe)
    assert not (tmp_path / "out").exists()


def test_a_file_alone_is_taken_in_too(tmp_path):
    log(tmp_path, records.trajectory(seed=7, held_out=True))
    import_trajectories(RECIPE, tmp_path / "logs/a.jsonl", tmp_path / "out", no_tick)
    assert [each.seed for each in read_trajectories(tmp_path / "out")] == [7]


@pytest.mark.parametrize(
    ("name", "problem"),
    [("gone.jsonl", r"cannot read .*gone\.jsonl"), ("empty.jsonl", "holds no trajectory")],
)
def test_a_file_with_nothing_in_it_is_refused(tmp_path, name, problem):
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(InputError, match=problem):
        import_trajectories(RECIPE, tmp_path / name, tmp_path / "out", no_tick)


def test_a_file_that_a_manifest_does_not_name_is_not_passed_over(tmp_path):
    log(tmp_path, records.trajectory())
    taken_in(tmp_path)
    write_trajectories(tmp_path / "out" / "late.jsonl", [records.trajectory(seed=1)])
    with pytest.raises(InputError, match=r"late\.jsonl is not in collected\.json"):
        recorded(tmp_path / "out")


def test_a_file_that_is_changed_meanwhile_makes_no_manifest(tmp_path):
    log(tmp_path, records.trajectory())

    def tick(_done, _total):
        log(tmp_path, records.trajectory(seed=9))

    with pytest.raises(InputError, match="was changed while it was read"):
        import_trajectories(RECIPE, tmp_path / "logs", tmp_path / "out", tick)
    assert not (tmp_path / "out/collected.json").exists()


TEXTS = st.text(max_size=20)
TURNS = st.lists(st.builds(Turn, action=TEXTS, observation=TEXTS), max_size=4)


@given(st.lists(st.tuples(TURNS, st.booleans()), min_size=1, max_size=8))
def test_no_trajectory_is_lost_made_up_or_changed(tmp_path_factory, told):
    folder = tmp_path_factory.mktemp("recorded")
    trajectories = [
        records.trajectory(seed=seed, held_out=held_out).model_copy(update={"turns": tuple(turns)})
        for seed, (turns, held_out) in enumerate(told)
    ]
    log(folder, *trajectories)
    found = taken_in(folder)
    if any(held_out for _, held_out in told):
        assert found == trajectories
    unmarked = {"held_out": False}
    assert [each.model_copy(update=unmarked) for each in found] == [
        each.model_copy(update=unmarked) for each in trajectories
    ]


@pytest.mark.waits
def test_a_validations_live_episodes_can_be_the_next_data_sets_logs(tmp_path):
    from agentworld.steps.validate import _trajectories

    turns = tuple(Turn(action="cat rimo.txt", observation=f"{n}\n[0] ~") for n in range(3))
    played = [EpisodeResult(records.task(seed=seed), turns, True) for seed in range(4)]
    live = _trajectories("shell", played, records.digest("agent"))
    log(tmp_path, *live, name="trained-live")
    log(tmp_path, *(records.trajectory(seed=seed) for seed in range(9)), name="before")
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(f"name: mine\ncollect: {{trajectories: {tmp_path / 'logs'}}}\n")
    store = str(tmp_path / "store")
    folder = run_by_name("collect", str(recipe), store)
    found = list(read_trajectories(tmp_path / folder))
    assert [each for each in found if each.held_out] == live
    assert len(found) == 13
    assert run_by_name("collect", str(recipe), store) == folder
    log(tmp_path, *live[1:], name="trained-live")
    assert run_by_name("collect", str(recipe), store) != folder
