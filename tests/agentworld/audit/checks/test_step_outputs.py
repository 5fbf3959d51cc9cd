"""Outputs of finished steps, compared with their receipts."""

import pytest

from agentworld.audit.checks.step_outputs import step_problems
from agentworld.records.base import digest_file
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.collected import Collected
from agentworld.storage.receipts import finished_steps
from make import records


def training(store, step="sft"):
    """The folder of a finished training step."""
    draft = store / "draft"
    draft.mkdir()
    (draft / "model.safetensors").write_bytes(b"the weights of " + step.encode())
    folder = records.finished_step(store, step, ArtifactManifest.of(draft).digest)
    draft.rename(folder / "model")
    return folder


def collection(store):
    draft = store / "draft"
    draft.mkdir()
    (draft / "0.jsonl").write_text('{"recorded": 1}\n')
    manifest = Collected(chunks={"0.jsonl": digest_file(draft / "0.jsonl")}, num_trajectories=1)
    folder = records.finished_step(store, "collect", manifest.digest)
    manifest.write(draft / "collected.json")
    for file in draft.iterdir():
        file.rename(folder / file.name)
    return folder


def test_unchanged_finished_steps_have_no_problems(tmp_path):
    for step in ("cpt", "sft", "rl", "imitate", "agent"):
        training(tmp_path, step)
    collection(tmp_path)
    records.finished_step(tmp_path, "register", records.digest("version"))
    assert [*step_problems(tmp_path)] == []


@pytest.mark.parametrize("step", ["cpt", "sft", "rl", "imitate", "agent"])
def test_changed_weights_of_a_finished_step_are_reported(tmp_path, step):
    folder = training(tmp_path, step)
    (folder / "model/model.safetensors").write_bytes(b"others")
    (problem,) = step_problems(tmp_path)
    assert problem.startswith(f"the digest of {folder} is sha256:")
    assert problem.endswith("; restore it")


def test_an_added_file_beside_the_weights_of_a_finished_step_is_reported(tmp_path):
    folder = training(tmp_path)
    (folder / "model/chat_template.jinja").write_text("{{ messages }}")
    (problem,) = step_problems(tmp_path)
    assert problem.startswith(f"the digest of {folder} is sha256:")


def test_a_changed_episode_file_of_a_finished_collect_step_is_reported(tmp_path):
    folder = collection(tmp_path)
    (folder / "0.jsonl").write_text('{"recorded": 2}\n')
    (problem,) = step_problems(tmp_path)
    assert f"{folder / '0.jsonl'} is not the file of collected.json" in problem


def test_a_garbled_receipt_is_reported_and_other_steps_are_still_read(tmp_path):
    first, second = training(tmp_path), records.finished_step(tmp_path, "sft", records.digest("x"))
    (first / "receipt.json").write_text("[" * 200_000)
    (problem,) = step_problems(tmp_path)
    assert problem.startswith(f"what is in {first} is garbled: ")
    assert [step.folder for step in finished_steps(tmp_path, "sft")] == [second]


def test_weights_outside_the_store_are_not_compared(tmp_path):
    records.finished_step(tmp_path, "rl", records.digest("in a bucket"))
    assert [*step_problems(tmp_path)] == []
