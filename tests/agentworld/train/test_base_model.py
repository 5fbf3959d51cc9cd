"""A stage that starts from a folder of weights: what it read stands in its key and its lineage."""

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
    here, there = tmp_path / "here", tmp_path / "there"
    language_model.save(here)
    digest = ArtifactManifest.of(here).digest
    own = training.training(tmp_path / "store", model={"base": str(here)}, cpt={"epochs": 1})
    made = Path(run_by_name("cpt", *own))
    checkpoint = Checkpoint.read(made / "checkpoint.json")
    assert (checkpoint.parents, checkpoint.from_scratch) == ((digest,), False)
    assert read_receipt(made).inputs["base"] == digest
    finished = (made / "receipt.json").stat().st_mtime_ns

    shutil.move(here, there)
    recipe = Path(own.recipe)
    recipe.write_text(recipe.read_text().replace(str(here), str(there)))
    assert Path(run_by_name("cpt", *own)) == made
    assert (made / "receipt.json").stat().st_mtime_ns == finished

    (there / "generation_config.json").write_text("{}")
    anew = Path(run_by_name("cpt", *own))
    assert anew != made
    assert Checkpoint.read(anew / "checkpoint.json").parents != (digest,)


def test_a_base_with_a_checkpoint_record_passes_on_its_domains_and_random_start(
    language_model: LanguageModel, tmp_path: Path
) -> None:
    base = tmp_path / "model"
    language_model.save(base)
    known = {"artifact": ArtifactManifest.of(base).digest, "domains": ("text",)}
    records.checkpoint("cpt", from_scratch=True, **known).write(tmp_path / "checkpoint.json")
    own = training.training(tmp_path / "store", model={"base": str(base)}, cpt={"epochs": 1})
    checkpoint = Checkpoint.read(Path(run_by_name("cpt", *own)) / "checkpoint.json")
    assert (checkpoint.domains, checkpoint.from_scratch) == (("shell", "text"), True)
