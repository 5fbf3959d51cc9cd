"""A stage that starts from a folder of weights records their digest in its key and its lineage."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentworld.records.checkpoint import ArtifactManifest, Checkpoint
from agentworld.steps.run import run_by_name
from agentworld.storage.receipts import read_receipt
from make import records, training

if TYPE_CHECKING:
    from agentworld.train.model import LanguageModel

pytestmark = pytest.mark.compute


def test_a_base_is_identified_by_its_digest_and_not_by_its_path(
    language_model: LanguageModel, tmp_path: Path
) -> None:
    old_folder, new_folder = tmp_path / "here", tmp_path / "there"
    language_model.save(old_folder)
    digest = ArtifactManifest.of(old_folder).digest
    inputs = training.training(
        tmp_path / "store", model={"base": str(old_folder)}, cpt={"epochs": 1}
    )
    step_folder = Path(run_by_name("cpt", *inputs))
    checkpoint = Checkpoint.read(step_folder / "checkpoint.json")
    assert (checkpoint.parents, checkpoint.from_scratch) == ((digest,), False)
    assert read_receipt(step_folder).inputs["base"] == digest
    finish_time = (step_folder / "receipt.json").stat().st_mtime_ns

    shutil.move(old_folder, new_folder)
    recipe = Path(inputs.recipe)
    recipe.write_text(recipe.read_text().replace(str(old_folder), str(new_folder)))
    assert Path(run_by_name("cpt", *inputs)) == step_folder
    assert (step_folder / "receipt.json").stat().st_mtime_ns == finish_time

    (new_folder / "generation_config.json").write_text("{}")
    new_step_folder = Path(run_by_name("cpt", *inputs))
    assert new_step_folder != step_folder
    assert Checkpoint.read(new_step_folder / "checkpoint.json").parents != (digest,)


def test_a_base_with_a_checkpoint_record_passes_on_its_domains_and_random_start(
    language_model: LanguageModel, tmp_path: Path
) -> None:
    base = tmp_path / "model"
    language_model.save(base)
    fields = {"artifact": ArtifactManifest.of(base).digest, "domains": ("text",)}
    records.checkpoint("cpt", from_scratch=True, **fields).write(tmp_path / "checkpoint.json")
    inputs = training.training(tmp_path / "store", model={"base": str(base)}, cpt={"epochs": 1})
    checkpoint = Checkpoint.read(Path(run_by_name("cpt", *inputs)) / "checkpoint.json")
    assert (checkpoint.domains, checkpoint.from_scratch) == (("shell", "text"), True)
