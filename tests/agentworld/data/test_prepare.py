import pytest

from agentworld.data.prepare import prepare
from agentworld.domains.base import UNSEEN
from agentworld.domains.words import held_out_words, training_words
from agentworld.errors import InputError
from agentworld.recipes.data import PrepareRecipe
from agentworld.records.dataset import DataSet
from agentworld.records.progress import ignore_progress
from agentworld.records.sample import POOLS
from agentworld.storage.pools import read_pool
from agentworld.storage.trajectories import read_collected, write_trajectories
from make import records
from make.secrets import planted_secrets

pytestmark = pytest.mark.compute


def episode(number, *, held_out=False, word=None):
    """Writes a file and reads it: the second turn shows output and depends on the first."""
    word = word or (held_out_words() if held_out else training_words())[number % 90]
    name = training_words()[number]
    turns = [(f"echo {word} > {name}.txt", "[0] ~"), (f"cat {name}.txt", f"{word}\n[0] ~")]
    return records.trajectory(*turns, seed=number, held_out=held_out)


@pytest.fixture
def episodes():
    return [episode(n) for n in range(200)] + [episode(n, held_out=True) for n in range(20)]


def prepare_data(folder, episodes, recipe=PrepareRecipe(), tick=ignore_progress):  # noqa: B008  it is frozen
    write_trajectories(folder / "logs" / "a.jsonl", episodes)
    return prepare(recipe, folder / "logs", folder / "data", tick)


def pools_of(folder, dataset):
    return {pool: list(read_pool(folder / "data", dataset, pool)) for pool in POOLS}


def test_each_trajectory_is_in_exactly_one_pool(tmp_path, episodes):
    pools = pools_of(tmp_path, prepare_data(tmp_path, episodes))
    digests = [sample.trajectory for samples in pools.values() for sample in samples]
    assert len(digests) == len(set(digests)) == len(episodes)
    assert set(digests) == {trajectory.digest for trajectory in episodes}


def test_the_held_out_pool_contains_exactly_the_held_out_trajectories(tmp_path, episodes):
    pools = pools_of(tmp_path, prepare_data(tmp_path, episodes))
    digests = {trajectory.digest for trajectory in episodes if trajectory.held_out}
    assert {sample.trajectory for sample in pools["held_out"]} == digests


def test_a_held_out_word_reaches_no_training_pool(tmp_path, episodes):
    leak = episode(0, word=held_out_words()[50])
    start_leak = records.trajectory(initial_state=f"rimo.txt: {held_out_words()[1]}")
    dataset = prepare_data(tmp_path, [leak, start_leak, *episodes])
    assert dataset.filtered["held-out content in training"] == 2
    files = [file for pool, file in dataset.pools.items() if pool != "held_out"]
    assert [file.share(UNSEEN) for file in files] == [0, 0, 0]
    assert dataset.pools["held_out"].share(UNSEEN) == 1


def test_the_manifest_is_written_and_names_the_recipe_and_the_sources(tmp_path, episodes):
    dataset = prepare_data(tmp_path, episodes)
    assert DataSet.read(tmp_path / "data" / "dataset.json") == dataset
    assert dataset.recipe == PrepareRecipe().model_dump(mode="json")
    assert dataset.pools["cpt"].tags.keys() == {"write", "cat", "history", "output"}
    assert dataset.domains == {"shell": 220}
    assert dataset.sources == {"random-explorer": 220}
    assert dataset.licences == {"unstated": 220}
    assert (dataset.num_read, dataset.num_trajectories) == (220, 220)
    assert dataset.parents[0].collected == read_collected(tmp_path / "logs").digest
    assert sum(dataset.lengths.turns) == 220


def test_the_same_trajectories_give_the_same_data_set(tmp_path, episodes):
    first, second = (prepare_data(tmp_path / name, episodes) for name in ("a", "b"))
    assert first.digest == second.digest


def test_another_seed_gives_different_pools(tmp_path, episodes):
    first = prepare_data(tmp_path / "a", episodes)
    second = prepare_data(tmp_path / "b", episodes, PrepareRecipe(seed=1))
    assert first.pools["cpt"].content != second.pools["cpt"].content


def test_a_trajectory_keeps_its_pool_when_others_are_added(tmp_path, episodes):
    small = pools_of(tmp_path / "a", prepare_data(tmp_path / "a", episodes))
    additions = [*(episode(n) for n in range(200, 300)), *episodes]
    large = pools_of(tmp_path / "b", prepare_data(tmp_path / "b", additions))
    for pool in POOLS:
        assert {sample.trajectory for sample in small[pool]} <= {
            sample.trajectory for sample in large[pool]
        }


def test_removed_trajectories_are_counted_by_reason(tmp_path, episodes):
    short_episode = records.trajectory(("ls", "[0] ~"))
    dataset = prepare_data(tmp_path, [short_episode, *episodes, episodes[0]])
    assert dataset.filtered["short trajectory"] == 1
    assert dataset.filtered["duplicate trajectory"] == 1
    assert (dataset.num_read, dataset.num_trajectories) == (len(episodes) + 2, len(episodes))


def test_a_removed_last_trajectory_is_counted_as_read(tmp_path, episodes):
    dataset = prepare_data(tmp_path, [*episodes, records.trajectory(("ls", "[0] ~"))])
    assert (dataset.num_read, dataset.num_trajectories) == (len(episodes) + 1, len(episodes))


def test_masked_turns_are_counted_by_their_class(tmp_path, episodes):
    echo_turn = ("echo kolu tane besa", "kolu tane besa\n[0] ~")
    output_turn = ("ls", "rimo.txt\ntane.txt\n[0] ~")
    additions = [
        records.trajectory(echo_turn, output_turn, initial_state=f"a{n}.txt: b") for n in range(40)
    ]
    dataset = prepare_data(tmp_path, episodes + additions, PrepareRecipe(near_duplicates=None))
    assert dataset.filtered["masked echo"] > 30


def test_secrets_reach_no_pool_and_are_counted_by_kind(tmp_path, episodes):
    kind, secret, trajectory = next(planted_secrets(1))
    additions = [trajectory.model_copy(update={"seed": 7, "held_out": True})]
    dataset = prepare_data(tmp_path / "a", episodes + additions)
    assert kind == "aws access key"
    assert dataset.filtered["redacted aws-access-key"] == 1
    pools = pools_of(tmp_path / "a", dataset)
    assert additions[0].digest in {sample.trajectory for sample in pools["held_out"]}
    assert secret not in str(pools)
    raw_dataset = prepare_data(tmp_path / "b", episodes + additions, PrepareRecipe(redact=False))
    assert secret in str(pools_of(tmp_path / "b", raw_dataset))


def test_a_malformed_record_is_reported_with_its_file_and_line(tmp_path, episodes):
    write_trajectories(tmp_path / "logs" / "a.jsonl", episodes)
    with (tmp_path / "logs" / "a.jsonl").open("a") as file:
        file.write('{"domain": 7}\n')
    with pytest.raises(InputError, match=r"a\.jsonl line 221 .*domain"):
        prepare(PrepareRecipe(), tmp_path / "logs", tmp_path / "data", ignore_progress)
    assert not list((tmp_path / "data").iterdir())


def test_a_source_without_a_trajectory_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no trajectory; collect or import some first"):
        prepare_data(tmp_path, [])


def test_an_empty_pool_is_reported_by_its_name(tmp_path, episodes):
    with pytest.raises(InputError, match="pool held_out is empty"):
        prepare_data(tmp_path, episodes[:200])


def test_too_few_held_out_turns_with_output_are_refused(tmp_path, episodes):
    silent_turn = ("echo kolu > rimo.txt", "[0] ~")
    additions = [
        records.trajectory(silent_turn, silent_turn, held_out=True, seed=n, initial_state=f"a{n}")
        for n in range(40)
    ]
    with pytest.raises(InputError, match="held-out turns have the tag 'output'.*collect more"):
        prepare_data(tmp_path, episodes + additions)


def test_too_few_held_out_turns_that_need_memory_are_refused(tmp_path, episodes):
    turn = ("echo kolu", "kolu\n[0] ~")
    additions = [
        records.trajectory(turn, turn, held_out=True, seed=n, initial_state=f"a{n}")
        for n in range(40)
    ]
    with pytest.raises(InputError, match="have the tag 'history', and 33%.*turns_per_episode"):
        prepare_data(tmp_path, episodes + additions)


def log(number, **fields):
    turns = ("open", ""), ("wait", ""), ("look", f"{number} apples")
    return records.trajectory(*turns, domain="text", seed=number, **fields)


def test_held_out_logs_may_have_few_turns_with_output(tmp_path):
    logs = [log(n) for n in range(200)] + [log(n, held_out=True) for n in range(200, 220)]
    dataset = prepare_data(tmp_path, logs)
    assert dataset.domains == {"text": 220}
    assert dataset.pools["held_out"].tags == {"output": 20}


def test_a_data_set_may_have_several_domains(tmp_path, episodes):
    logs = [log(n) for n in range(100)] + [log(n, held_out=True) for n in range(100, 110)]
    dataset = prepare_data(tmp_path, [*logs, *episodes])
    assert dataset.domains == {"shell": 220, "text": 110}
    domains = {sample.domain for sample in pools_of(tmp_path, dataset)["held_out"]}
    assert domains == {"shell", "text"}


def test_shares_that_leave_nothing_for_rl_are_refused(tmp_path, episodes):
    with pytest.raises(InputError, match="leave nothing for RL"):
        prepare_data(tmp_path, episodes, PrepareRecipe(cpt_share=0.6, sft_share=0.4))


def test_progress_is_reported_to_its_end(tmp_path, episodes):
    ticks = []
    prepare_data(tmp_path, episodes, tick=lambda done, total: ticks.append((done, total)))
    assert ticks == [(1, 2), (2, 2)]
