"""External trajectories, and those of a validation, as the raw logs of a data set."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.data.imported import import_trajectories
from agentworld.errors import InputError
from agentworld.evaluate.agent import EpisodeResult
from agentworld.recipes.data import CollectRecipe
from agentworld.records.progress import ignore_progress
from agentworld.records.quarantine import OTHER, QUARANTINE, QuarantinedRecord, count_reason
from agentworld.records.trajectory import Turn
from agentworld.steps.run import run_by_name
from agentworld.storage.source import digest_of
from agentworld.storage.trajectories import read_collected, read_trajectories, write_trajectories
from make import records

RECIPE = CollectRecipe(held_out_share=0.25)


def import_logs(tmp_path, recipe=RECIPE, tick=ignore_progress, name="logs"):
    source = str(tmp_path / name)
    recipe = recipe.model_copy(update={"trajectories": source})
    digest = import_trajectories(recipe, digest_of(source), tmp_path / "out", tick)
    assert read_collected(tmp_path / "out").digest == digest
    return list(read_trajectories(tmp_path / "out"))


def write_log(tmp_path, *trajectories, name="a"):
    write_trajectories(tmp_path / "logs" / f"{name}.jsonl", trajectories)


def test_marked_episodes_stay_held_out_and_all_others_are_for_training(tmp_path):
    write_log(tmp_path, records.trajectory(seed=1), records.trajectory(seed=2, held_out=True))
    write_log(tmp_path, records.trajectory(seed=3), name="b")
    assert [(episode.seed, episode.held_out) for episode in import_logs(tmp_path)] == [
        (1, False),
        (2, True),
        (3, False),
    ]
    collected = read_collected(tmp_path / "out")
    assert (collected.num_trajectories, collected.num_transitions) == (2, 4)
    assert (collected.num_held_out_trajectories, collected.num_held_out_transitions) == (1, 2)


@pytest.mark.waits
def test_without_marks_a_share_is_held_out_independently_of_other_episodes(tmp_path):
    trajectories = [records.trajectory(seed=seed) for seed in range(400)]
    write_log(tmp_path, *trajectories)
    held_out = {episode.seed for episode in import_logs(tmp_path) if episode.held_out}
    assert 0.18 < len(held_out) / 400 < 0.32
    write_log(tmp_path, *trajectories[:200])
    assert {episode.seed for episode in import_logs(tmp_path) if episode.held_out} == {
        seed for seed in held_out if seed < 200
    }


INVALID_LINES = [b"{}\n", b'{"domain": "shell"\n', b"\xff\n"]
SURROGATE = (
    b'{"domain": "text", "source": "\\ud800", "turns": [{"action": "", "observation": ""}]}\n'
)


def add_lines(tmp_path, *lines, name="a"):
    with (tmp_path / f"logs/{name}.jsonl").open("ab") as file:
        file.writelines(lines)


@pytest.mark.parametrize("line", [*INVALID_LINES, SURROGATE])
def test_an_invalid_line_is_quarantined_and_the_other_lines_are_imported(tmp_path, line):
    write_log(tmp_path, records.trajectory())
    add_lines(tmp_path, line, records.trajectory(seed=1).model_dump_json().encode())
    assert [episode.seed for episode in import_logs(tmp_path)] == [0, 1]
    assert read_collected(tmp_path / "out").num_quarantined == 1
    (record,) = map(json.loads, (tmp_path / "out" / QUARANTINE).read_text().splitlines())
    assert (record["file"], record["place"]) == ("a.jsonl", "line 2")
    assert record["problem"]


@pytest.mark.parametrize("line", INVALID_LINES)
def test_a_strict_import_refuses_an_invalid_line(tmp_path, line):
    write_log(tmp_path, records.trajectory())
    add_lines(tmp_path, line)
    with pytest.raises(InputError, match=r"a\.jsonl line 2 is not an episode: "):
        import_logs(tmp_path, RECIPE.model_copy(update={"strict": True}))
    assert not (tmp_path / "out/collected.json").exists()


def test_an_import_without_any_episode_reports_the_first_reason(tmp_path):
    (tmp_path / "logs").mkdir()
    add_lines(tmp_path, b"{}\n", b"{}\n")
    recipe = RECIPE.model_copy(update={"format": "trajectories"})
    with pytest.raises(InputError, match=r"the first of 2 records .* a\.jsonl line 1: domain: "):
        import_logs(tmp_path, recipe)


def test_a_trajectory_with_a_tool_that_has_no_canonical_json_is_quarantined(tmp_path):
    rows = [json.loads(records.trajectory(seed=seed).model_dump_json()) for seed in range(5)]
    schema = {"type": "object", "maximum": 2**63 - 1}
    rows[2] |= {"task_id": "t-1", "tools": [{"name": "f", "input_schema": schema}]}
    (tmp_path / "logs").mkdir()
    add_lines(tmp_path, *(json.dumps(row).encode() + b"\n" for row in rows))
    assert [episode.seed for episode in import_logs(tmp_path)] == [0, 1, 3, 4]
    assert (
        "JSON does not keep 9,223,372,036,854,775,807 exactly"
        in (tmp_path / "out" / QUARANTINE).read_text()
    )


def test_copies_and_records_without_a_turn_are_counted(tmp_path):
    empty = records.trajectory(seed=2).model_copy(update={"turns": ()})
    write_log(tmp_path, records.trajectory(), records.trajectory(seed=1), empty)
    import_logs(tmp_path)
    notes = read_collected(tmp_path / "out").notes
    assert notes == {"duplicate trajectory": 1, "record without a turn": 1}


def test_the_trials_of_a_task_are_held_out_together(tmp_path):
    trials = [
        records.trajectory(seed=seed).model_copy(update={"task_id": str(seed % 40)})
        for seed in range(400)
    ]
    write_log(tmp_path, *trials)
    held_out = Counter(trial.task_id for trial in import_logs(tmp_path) if trial.held_out)
    assert set(held_out.values()) == {10}
    assert 2 < len(held_out) < 20


def test_an_invalid_option_of_a_format_is_named(tmp_path):
    write_log(tmp_path, records.trajectory())
    recipe = RECIPE.model_copy(update={"options": {"licence": 3}})
    with pytest.raises(InputError, match=r"the options of trajectories are wrong at licence: "):
        import_logs(tmp_path, recipe)


def test_an_unrecognized_format_must_be_named(tmp_path):
    (tmp_path / "logs").mkdir()
    add_lines(tmp_path, b'{"a": 1}\n')
    with pytest.raises(
        InputError, match=r"a\.jsonl fits no form; name one with --format: .*messages"
    ):
        import_logs(tmp_path)


def test_the_manifest_names_the_domains_of_the_imported_episodes(tmp_path):
    write_log(tmp_path, records.trajectory(domain="text"), records.trajectory(seed=1))
    import_logs(tmp_path)
    assert read_collected(tmp_path / "out").domains == ("shell", "text")


def test_the_error_for_an_unknown_format_lists_the_known_formats(tmp_path):
    write_log(tmp_path, records.trajectory())
    recipe = RECIPE.model_copy(update={"format": "xml"})
    with pytest.raises(InputError, match="no form of recordings 'xml' here; .*trajectories"):
        import_logs(tmp_path, recipe)
    assert not (tmp_path / "out").exists()


def test_a_single_file_can_be_imported(tmp_path):
    write_log(tmp_path, records.trajectory(seed=7, held_out=True))
    assert [episode.seed for episode in import_logs(tmp_path, name="logs/a.jsonl")] == [7]


@pytest.mark.parametrize(
    ("name", "problem"),
    [("gone.jsonl", "has no recordings"), ("empty.jsonl", "fits no form")],
)
def test_a_missing_or_empty_file_is_refused(tmp_path, name, problem):
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(InputError, match=problem):
        import_logs(tmp_path, name=name)


def test_a_file_changed_during_the_import_leaves_no_manifest(tmp_path):
    write_log(tmp_path, records.trajectory())

    def tick(_done, _total):
        write_log(tmp_path, records.trajectory(seed=9))

    with pytest.raises(InputError, match="changed while it was read"):
        import_logs(tmp_path, tick=tick)
    assert not (tmp_path / "out/collected.json").exists()


TEXTS = st.text(max_size=20)
TURNS = st.lists(st.builds(Turn, action=TEXTS, observation=TEXTS), min_size=1, max_size=4)


@pytest.mark.waits
@given(st.lists(st.tuples(TURNS, st.booleans()), min_size=1, max_size=8))
def test_no_trajectory_is_lost_made_up_or_changed(tmp_path_factory, logs):
    folder = tmp_path_factory.mktemp("recorded")
    trajectories = [
        records.trajectory(seed=seed, held_out=held_out).model_copy(update={"turns": tuple(turns)})
        for seed, (turns, held_out) in enumerate(logs)
    ]
    write_log(folder, *trajectories)
    episodes = import_logs(folder)
    if any(held_out for _, held_out in logs):
        assert episodes == trajectories
    unmarked = {"held_out": False}
    assert [episode.model_copy(update=unmarked) for episode in episodes] == [
        episode.model_copy(update=unmarked) for episode in trajectories
    ]


@pytest.mark.waits
def test_live_episodes_of_a_validation_can_be_logs_of_the_next_data_set(tmp_path):
    from agentworld.steps.validate import _trajectories

    turns = tuple(Turn(action="cat rimo.txt", observation=f"{n}\n[0] ~") for n in range(3))
    results = [EpisodeResult(records.task(seed=seed), turns, True) for seed in range(4)]
    trajectories = _trajectories("shell", results, records.digest("agent"))
    write_log(tmp_path, *trajectories, name="trained-live")
    write_log(tmp_path, *(records.trajectory(seed=seed) for seed in range(9)), name="before")
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(f"name: mine\ncollect: {{trajectories: {tmp_path / 'logs'}}}\n")
    store = str(tmp_path / "store")
    folder = run_by_name("collect", str(recipe), store)
    episodes = list(read_trajectories(tmp_path / folder))
    assert [episode for episode in episodes if episode.held_out] == trajectories
    assert len(episodes) == 13
    assert run_by_name("collect", str(recipe), store) == folder
    write_log(tmp_path, *trajectories[1:], name="trained-live")
    assert run_by_name("collect", str(recipe), store) != folder


def test_reasons_of_the_quarantine_are_counted_without_values_and_numbers(tmp_path):
    write_log(tmp_path, records.trajectory())
    lines = [
        json.dumps({**json.loads(records.trajectory().model_dump_json()), "seed": seed})
        for seed in ("x1", "x2")
    ]
    add_lines(tmp_path, *(line.encode() + b"\n" for line in lines), b"[1]\n")
    import_logs(tmp_path)
    collected = read_collected(tmp_path / "out")
    assert sorted(collected.quarantined.values()) == [1, 2]
    assert collected.num_quarantined == 3
    assert not any("x1" in reason for reason in collected.quarantined)


def test_notes_are_redacted_limited_and_valid_unicode(tmp_path):
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    kinds = [secret, "k" * 1_000_000, "\ud800", *(f"kind {number}" for number in range(200))]
    parts = [{"type": kind} for kind in kinds]
    call = {"type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "go"}, *parts]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "nothing"},
    ]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/a.jsonl").write_text(json.dumps({"messages": messages}) + "\n")
    assert len(import_logs(tmp_path, RECIPE.model_copy(update={"format": "messages"}))) == 1
    notes = read_collected(tmp_path / "out").notes
    assert sum(notes.values()) == len(kinds) + 1  # one more for the words of the user
    assert notes["part: [REDACTED:github-token:1]"] == 1
    assert notes["part: \\ud800"] == 1
    assert notes[OTHER] > 90
    assert max(map(len, notes)) == 120


def test_reasons_beyond_the_first_hundred_are_counted_together():
    counts = Counter()
    for number in range(300):
        name = "".join(chr(97 + int(digit)) for digit in str(number))
        count_reason(counts, QuarantinedRecord(file="f", place="", problem=f"{name}: wrong").reason)
    assert len(counts) == 101
    assert counts[OTHER] == 200
    assert counts.total() == 300
