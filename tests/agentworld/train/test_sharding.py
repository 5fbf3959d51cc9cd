"""Two processes hold a model in parts and save the same files as one process."""

import shutil
from pathlib import Path

import pytest

from agentworld.records.checkpoint import ArtifactManifest
from machines.forked import run_with_ranks
from make.model import tiny_family

pytestmark = pytest.mark.compute

FAMILIES = {"Qwen3": "Qwen3", "experts": "Qwen3Moe", "gated": "Qwen3_5", "merged": "Qwen3"}


def without_norm(base: Path, folder: Path) -> Path:
    """The same model with one weight missing in its file."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(base, folder)
    weights = load_file(base / "model.safetensors")
    del weights["model.norm.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def test_a_sharded_model_is_saved_with_the_same_files_as_a_whole_model(tmp_path: Path) -> None:
    from machines.in_parts import SHARD_BYTES, load_whole, merge, save_in_parts

    bases = {name: tiny_family(tmp_path / "base" / name, FAMILIES[name]) for name in FAMILIES}
    incomplete_base = without_norm(bases["Qwen3"], tmp_path / "incomplete")
    run_with_ranks(tmp_path, save_in_parts, bases, incomplete_base, tmp_path / "parts")
    for name, base in bases.items():
        model = load_whole(base)
        if name == "merged":
            model = merge(model)
        model.save_pretrained(tmp_path / "whole" / name, max_shard_size=SHARD_BYTES)
        whole_files, part_files = (
            ArtifactManifest.of(tmp_path / kind / name).files for kind in ("whole", "parts")
        )
        assert "model.safetensors.index.json" in whole_files
        assert part_files == whole_files, name
