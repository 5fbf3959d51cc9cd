"""Two processes hold a model in parts; its files are those that one process writes."""

from pathlib import Path

import pytest

from agentworld.records.checkpoint import ArtifactManifest
from machines.forked import run_with_ranks
from make.model import tiny_family

pytestmark = pytest.mark.compute

FAMILIES = {"Qwen3": "Qwen3", "experts": "Qwen3Moe", "gated": "Qwen3_5", "merged": "Qwen3"}


def test_a_model_in_parts_is_saved_as_a_whole_one_is(tmp_path: Path) -> None:
    from machines.in_parts import SHARD_BYTES, load_whole, merge, save_in_parts

    bases = {name: tiny_family(tmp_path / "base" / name, FAMILIES[name]) for name in FAMILIES}
    run_with_ranks(tmp_path, save_in_parts, bases, tmp_path / "parts")
    for name, base in bases.items():
        model = load_whole(base)
        if name == "merged":
            model = merge(model)
        model.save_pretrained(tmp_path / "whole" / name, max_shard_size=SHARD_BYTES)
        whole, parts = (
            ArtifactManifest.of(tmp_path / kind / name).files for kind in ("whole", "parts")
        )
        assert "model.safetensors.index.json" in whole
        assert parts == whole, name
