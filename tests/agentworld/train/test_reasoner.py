"""Thoughts before observations, from the recorded state."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentworld.errors import InputError
from agentworld.records.checkpoint import Checkpoint
from agentworld.records.sample import Sample
from agentworld.rendering.parse import parse_observation
from agentworld.train.parent import Parent
from agentworld.train.reasoner import recorded_thoughts
from make import records, training

START = "rimo.txt: kolu"


def with_states(sample: Sample) -> Sample:
    """The sample as collected with `record_state: true`: each turn has the files after it."""
    files, turns = {"rimo.txt": "kolu"}, []
    for turn in sample.turns:
        words = turn.action.split()
        if words[0] == "echo":
            files[words[3]] = words[1]
        state = "\n".join(f"{path}: {text}" for path, text in sorted(files.items()))
        turns.append(turn.model_copy(update={"state": state}))
    prompt = sample.prompt.model_copy(update={"initial_state": START})
    return sample.model_copy(update={"prompt": prompt, "turns": tuple(turns)})


def thoughts(sample: Sample) -> list[str]:
    return list(recorded_thoughts(sample))


def test_a_thought_contains_the_named_files_as_before_the_action():
    sample = with_states(records.sample(num_turns=4))
    write_words, read_words, *_ = (turn.action.split() for turn in sample.turns)
    name, word = write_words[3], write_words[1]
    read_turn = sample.turns[1].model_copy(update={"action": f"cat {name}"})
    turns = (sample.turns[0], read_turn, *sample.turns[2:])
    texts = thoughts(sample.model_copy(update={"turns": turns}))
    assert texts == ["none", f"{name}: {word}", "none", "none"]
    assert read_words[0] == "cat"


def test_the_first_thought_comes_from_the_initial_state():
    sample = with_states(records.sample(num_turns=1))
    first = sample.turns[0].model_copy(update={"action": "cat rimo.txt"})
    assert thoughts(sample.model_copy(update={"turns": (first,)})) == [START]


def test_a_non_target_turn_gets_no_thought_and_needs_no_state():
    first, *rest = with_states(records.sample(num_turns=3)).turns
    turns = (first, *(turn.model_copy(update={"target": False, "state": None}) for turn in rest))
    sample = with_states(records.sample(num_turns=3)).model_copy(update={"turns": turns})
    assert thoughts(sample) == ["none", "", ""]


def test_a_target_turn_without_a_recorded_state_is_refused():
    sample = with_states(records.sample(num_turns=3))
    turns = [turn.model_copy(update={"state": None}) for turn in sample.turns]
    sample = sample.model_copy(update={"turns": tuple(turns)})
    with pytest.raises(InputError, match="no recorded state before its turn 2; collect"):
        thoughts(sample)


def test_an_empty_state_counts_as_recorded():
    sample = records.sample(num_turns=3)
    turns = [turn.model_copy(update={"state": ""}) for turn in sample.turns]
    assert thoughts(sample.model_copy(update={"turns": tuple(turns)})) == ["none"] * 3


def test_a_thought_of_a_text_log_is_its_whole_recorded_state():
    sample = records.sample(num_turns=2)
    turns = [turn.model_copy(update={"state": "3 apples"}) for turn in sample.turns]
    prompt = sample.prompt.model_copy(update={"initial_state": "a shop"})
    log = sample.model_copy(update={"domain": "text", "prompt": prompt, "turns": tuple(turns)})
    assert thoughts(log) == ["a shop", "3 apples"]


@pytest.mark.compute
def test_a_trained_world_model_writes_a_thought_before_its_observation(tmp_path: Path) -> None:
    from agentworld.steps.run import run_by_name
    from agentworld.train.model import load_model
    from make.pools import write_pool

    settings = {"reasoning": "recorded-state", "epochs": 30}
    inputs = training.training(tmp_path / "store", cpt=settings)
    pool = write_pool(Path(inputs.data) / "cpt.parquet", map(with_states, training.samples()[:2]))
    records.dataset(cpt=pool).write(Path(inputs.data) / "dataset.json")
    step_folder = Path(run_by_name("cpt", *inputs))
    assert Checkpoint.read(step_folder / "checkpoint.json").recipe["reasoning"] == "recorded-state"
    model, tokenizer, _ = load_model(Parent(step_folder / "model"))
    sample = with_states(training.samples()[0])
    from agentworld.rendering.messages import world_messages

    messages = world_messages(sample.prompt, (), sample.turns[0].action)
    prompt = tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    output_ids = model.generate(**prompt, max_new_tokens=40)[0, prompt["input_ids"].shape[1] :]
    text = tokenizer.decode(output_ids, skip_special_tokens=True)
    assert text.startswith("<think>none</think>")
    assert parse_observation(text) == sample.turns[0].observation
