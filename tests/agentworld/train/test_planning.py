"""The planned resources of a training, against measured trainings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from agentworld.errors import InputError
from agentworld.recipes import load_recipe, recipe_path
from agentworld.recipes.train import LoraRecipe, NextTokenRecipe
from agentworld.records.progress import ignore_progress
from agentworld.records.training_plan import Gpus, RankMemory, StageMemory

if TYPE_CHECKING:
    from agentworld.train.plan.architecture import Architecture

pytestmark = pytest.mark.compute

GIB = 1 << 30
RECIPE = NextTokenRecipe(stage="cpt", tokens_per_batch=64, packing=False)
MUON = {"muon_learning_rate": 0.02}
LORA = {"lora": LoraRecipe(rank=4)}


def test_planned_gpu_memory_is_within_15_percent_of_recorded_peaks() -> None:
    from benchmarks.planner_error import compared

    rows = {row.name: row for row in compared()}
    assert len(rows) == 7
    assert {name: row for name, row in rows.items() if abs(row.error) > 0.15} == {}


@pytest.mark.parametrize(
    ("family", "settings"),
    [("Qwen3", {}), ("Qwen3", MUON), ("Qwen3", LORA), ("Qwen3Moe", {}), ("Qwen3_5Moe", LORA)],
)
def test_planned_weights_gradients_and_moments_equal_those_of_a_real_training(
    family: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    from transformers import TrainerCallback

    from agentworld.train.encode import Row
    from agentworld.train.model import load_model
    from agentworld.train.parent import Parent
    from agentworld.train.plan.architecture import (
        architecture_of,
        config_of_folder,
        model_without_memory,
    )
    from agentworld.train.plan.memory import state_bytes
    from agentworld.train.trainer import NextTokenTrainer
    from make.model import tiny_family

    recipe = RECIPE.model_copy(update=settings)
    base = tiny_family(tmp_path / "base", family)
    model = load_model(Parent(base))
    if recipe.lora:
        model = model.with_adapter(recipe.lora, 0)
    row = Row(np.arange(60, dtype=np.int32), np.ones(60, dtype=np.bool_))
    trainer = NextTokenTrainer(model, recipe, [row], tmp_path, ignore_progress)
    memories: list[RankMemory] = []

    class MemoryRecorder(TrainerCallback):
        def on_optimizer_step(self, *_: object, **__: object) -> None:
            weights = list(trainer.model.parameters())
            moments = [
                moment.nbytes
                for part in getattr(trainer.optimizer.optimizer, "_parts", [trainer.optimizer])
                for state in part.state.values()
                for moment in state.values()
                if moment.ndim
            ]
            memories.append(
                RankMemory(
                    weights=sum(weight.nbytes for weight in weights),
                    gradients=sum(
                        weight.grad.nbytes for weight in weights if weight.grad is not None
                    ),
                    optimizer=sum(moments),
                )
            )

    trainer.add_callback(MemoryRecorder())
    trainer.train()
    planned_architecture = architecture_of(model_without_memory(config_of_folder(base), recipe))
    assert memories == [state_bytes(planned_architecture, recipe)]


def architecture(**numbers: object) -> Architecture:
    from agentworld.train.plan.architecture import Architecture

    defaults: dict[str, Any] = {
        "name": "Model",
        "num_frozen": 0,
        "num_trained": 1_200,
        "num_by_muon": 0,
        "num_cast": 0,
        "num_embedding": 100,
        "is_embedding_shared": False,
        "is_embedding_trained": True,
        "num_largest": 60,
        "num_gathered": 100,
        "hidden_size": 10,
        "vocabulary_size": 10,
        "context_tokens": 1_000,
        "flops": None,
    }
    return Architecture(**defaults | numbers)


def memory(
    num_gpus: int, settings: dict[str, Any], sizes: tuple[int, int, int, int] = (0, 0, 0, 0)
) -> StageMemory:
    from agentworld.train.plan.activations import Activations
    from agentworld.train.plan.memory import stage_memory

    gpus = Gpus(num_nodes=1, per_node=num_gpus, card="H100")
    recipe = NextTokenRecipe(stage="cpt", **settings)
    return stage_memory(architecture(), Activations(*sizes), recipe, 1, gpus)


@pytest.mark.parametrize(
    ("settings", "weights", "gradients", "optimizer"),
    [
        ({}, 4, 4, 8),
        ({"zero_stage": 1}, 4, 4, 12 / 4),
        ({"zero_stage": 2}, 4, 4 / 4, 12 / 4),
        ({"zero_stage": 3}, 4 / 4, 4 / 4, 12 / 4),
    ],
)
def test_each_zero_stage_divides_its_part_of_the_state_among_the_gpus(
    settings: dict[str, Any], weights: float, gradients: float, optimizer: float
) -> None:
    rank_memory = memory(4, settings).gpu["training"]
    parts = rank_memory.weights, rank_memory.gradients, rank_memory.optimizer
    assert parts == (1_200 * weights, 1_200 * gradients, 1_200 * optimizer)


@pytest.mark.parametrize(
    ("settings", "gpu", "loading", "saving"),
    [
        ({}, (4_800, 0), 4 * 4_800, 1_000),  # a file at a time
        ({"zero_stage": 2}, (4_800, 0), 4 * 4_800, 4 * 4_800),  # each process has all
        ({"zero_stage": 3}, (1_200, 400), 4 * 400, 1_000 + 400),
    ],
)
def test_planned_memory_for_loading_and_saving_depends_on_the_zero_stage(
    settings: dict[str, Any],
    gpu: tuple[int, int],
    loading: int,
    saving: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from agentworld.train.plan import memory as memory_module

    monkeypatch.setattr(memory_module, "SHARD_BYTES", 1_000)
    stage_memory = memory(4, settings)
    assert (stage_memory.gpu["load"].weights, stage_memory.gpu["load"].buffers) == gpu
    assert stage_memory.gpu["save"].buffers == gpu[1]
    assert stage_memory.node == {"load": loading, "training": 0, "save": saving}


@pytest.mark.parametrize(
    ("settings", "gpu", "process_bytes"),
    [
        ({"zero_stage": 1, "offload": "optimizer"}, (4, 4, 0), 20),
        ({"zero_stage": 2, "offload": "optimizer"}, (4, 0, 0), 20),
        ({"zero_stage": 2, "offload": "optimizer", "accumulation": 2}, (4, 0, 0), 24),
        ({"zero_stage": 3, "offload": "optimizer", "accumulation": 2}, (4 / 4, 0, 0), 20),
        ({"zero_stage": 3, "offload": "parameters"}, (0, 0, 0), 24),
    ],
)
def test_offloaded_state_is_planned_in_the_node_memory(
    settings: dict[str, Any], gpu: tuple[float, float, float], process_bytes: int
) -> None:
    offload_plan, plain_plan = memory(4, settings), memory(4, settings | {"offload": None})
    for moment in ("training", "save"):
        parts = offload_plan.gpu[moment]
        weights, gradients, optimizer = (1_200 * num_bytes for num_bytes in gpu)
        assert (parts.weights, parts.optimizer) == (weights, optimizer)
        assert parts.gradients == (gradients if moment == "training" else 0)
        assert offload_plan.node[moment] == plain_plan.node[moment] + 1_200 * process_bytes
    is_moved = settings["offload"] == "parameters"
    assert offload_plan.gpu["load"].weights == (0 if is_moved else plain_plan.gpu["load"].weights)
    assert offload_plan.node["load"] == plain_plan.node["load"] + (4_800 if is_moved else 0)
    transfer_bytes = 4 * 100 if settings["zero_stage"] < 3 else 0
    buffers = (plan.gpu["training"].buffers for plan in (offload_plan, plain_plan))
    assert next(buffers) >= next(buffers) + transfer_bytes
    assert memory(1, settings) == memory(1, settings | {"offload": None})


def test_one_process_divides_no_state_and_is_planned_at_its_peak() -> None:
    assert memory(1, {"zero_stage": 3}).gpu["training"].optimizer == 8 * 1_200
    # Layer inputs, all activations of layers, those of the largest beside its input, the rest.
    sizes = 1_000_000, 9_000_000, 2_000_000, 500_000
    recomputed_memory = memory(1, {}, sizes).gpu["training"]
    assert recomputed_memory.activations == 1_000_000 + 500_000 + 2_000_000
    full_memory = memory(1, {"gradient_checkpointing": False}, sizes).gpu["training"]
    assert full_memory.activations == 9_000_000 + 500_000
    assert full_memory.gradients == 4 * 100  # those of the output layer alone, at the loss
    accumulated_memory = memory(1, {"gradient_checkpointing": False, "accumulation": 2}, sizes)
    assert accumulated_memory.gpu["training"].gradients == 4 * 1_200


def test_planned_tokens_of_a_process_include_one_row_more_than_its_share() -> None:
    from agentworld.train.plan.memory import most_tokens

    recipe = NextTokenRecipe(stage="cpt", tokens_per_batch=8_000, sequence_tokens=1_000)
    assert most_tokens(recipe, 1, 4_096) == 8_000
    assert most_tokens(recipe, 8, 4_096) == 2_000
    one_row_recipe = recipe.model_copy(update={"sequence_tokens": 9_000})
    assert most_tokens(one_row_recipe, 1, 4_096) == 9_000


def test_sequence_parallel_divides_the_planned_tokens_of_a_process() -> None:
    from agentworld.train.plan.memory import most_tokens

    recipe = NextTokenRecipe(
        stage="cpt", tokens_per_batch=8_000, sequence_tokens=1_000, sequence_parallel=4
    )
    assert most_tokens(recipe, 1, 4_096) == 8_000
    assert most_tokens(recipe, 4, 4_096) == 8_000 / 4
    assert most_tokens(recipe, 8, 4_096) == (4_000 + 1_000) / 4  # two groups
    one_row_recipe = recipe.model_copy(update={"sequence_tokens": 9_001})
    assert most_tokens(one_row_recipe, 8, 4_096) == 2_251


QWEN3_8B = {
    "model_type": "qwen3",
    "vocab_size": 151_936,
    "hidden_size": 4_096,
    "intermediate_size": 12_288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "tie_word_embeddings": False,
    "max_position_embeddings": 32_768,
}
QWEN3_06B = QWEN3_8B | {
    "hidden_size": 1_024,
    "intermediate_size": 3_072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "tie_word_embeddings": True,
}
QWEN3_5_35B = {"model_type": "qwen3_5_moe_text"}
"""transformers' own defaults are its shape."""
CONFIGS = {
    "qwen3-0.6b": QWEN3_06B,
    "qwen3-0.6b-shell": QWEN3_06B,
    "qwen3-8b": QWEN3_8B,
    "qwen3.5-35b-a3b": QWEN3_5_35B,
    "qwen3.5-35b-a3b-nodes": QWEN3_5_35B,
}


def base_of(folder: Path, name: str) -> Path:
    (folder / "config.json").write_text(json.dumps(CONFIGS[name]))
    return folder


def plans(folder: Path, name: str, gpus: str, **terms: Any) -> list[Any]:
    from agentworld.operations.training_plan import plan_training
    from agentworld.train.plan.planning import Terms, parse_gpus

    plan_terms = Terms(parse_gpus(gpus), **terms)
    return plan_training(name, ["cpt", "sft"], base_of(folder, name), plan_terms)


@pytest.mark.parametrize(
    ("name", "gpus"),
    [
        ("qwen3-0.6b", "1xH100"),
        ("qwen3-0.6b-shell", "1xH100"),
        ("qwen3-8b", "8xH100"),
        ("qwen3.5-35b-a3b", "8xH200"),
        ("qwen3.5-35b-a3b-nodes", "4x8xH200"),
    ],
)
def test_a_shipped_recipe_fits_the_gpus_named_in_its_comment(
    name: str, gpus: str, tmp_path: Path
) -> None:
    assert f" {gpus}" in recipe_path(name).read_text()
    stage_plans = plans(tmp_path, name, gpus)
    assert [plan.stage for plan in stage_plans] == ["cpt", "sft"]
    for plan in stage_plans:
        assert max(rank_memory.total for rank_memory in plan.memory.gpu.values()) <= plan.usable
        # No speed of a mixture of experts was measured or is cited.
        assert (plan.speed is None) == name.startswith("qwen3.5")
    assert load_recipe(recipe_path(name)).model.base is not None


def test_a_plan_that_does_not_fit_is_refused_with_its_largest_part(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        plans(tmp_path, "qwen3-8b", "1xH100")
    assert str(error.value) == (
        "cpt does not fit 1xH100: in training each GPU would hold 122.2 GiB of the 75.1 GiB that"
        " can be used, most of it the optimizer's state (61.0 GiB); train an adapter with cpt.lora"
    )
    with pytest.raises(InputError, match=r"hold 18\.5 GiB of its 10\.0 GiB together"):
        plans(tmp_path, "qwen3-8b", "8xH100", node_gib=10)


@pytest.mark.parametrize(
    ("name", "gpus"), [("qwen3-8b", "2xH100"), ("qwen3.5-35b-a3b-nodes", "8xH200")]
)
def test_a_plan_that_does_not_fit_advises_to_offload_the_optimizer(
    name: str, gpus: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"in training .*; set cpt\.offload to optimizer$"):
        plans(tmp_path, name, gpus)


def test_planned_time_and_cost_use_the_most_similar_known_training(tmp_path: Path) -> None:
    terms, speed = {"num_tokens": 1_000_000_000, "price": 2.5}, {"tokens_per_second": 1_000.0}
    cpt, sft = plans(tmp_path, "qwen3-8b", "8xH100", **terms)
    assert "torchtitan" in cpt.speed.source
    rate = 0.33 * 989e12 / (6 * 8_190_735_360 + 6 * 36 * 4_096 * 8_192)
    assert cpt.speed.tokens_per_second == pytest.approx(8 * rate)
    assert sft.num_tokens == 2 * cpt.num_tokens
    assert cpt.gpu_hours == pytest.approx(1e9 / rate / 3_600)
    assert cpt.cost == pytest.approx(2.5 * cpt.gpu_hours)
    cpt, _ = plans(tmp_path, "qwen3-0.6b", "1xH100", **terms, **speed)
    assert (cpt.speed.source, cpt.seconds) == ("your figure of one GPU", 1_000_000.0)


def test_known_measured_speeds_equal_the_recorded_figures() -> None:
    from agentworld.train.plan.speed import KNOWN_SPEEDS
    from benchmarks.targets import value_at

    figures = json.loads((Path(__file__).parents[3] / "docs/figures/gpu.json").read_text())
    mfus = {
        speed.source.partition("(")[2].partition(" in")[0]: speed.mfu
        for speed in KNOWN_SPEEDS
        if speed.source.startswith("measured")
    }
    assert len(mfus) == 4
    assert mfus == {name: value_at(figures, name)["mfu"] for name in mfus}


@pytest.mark.parametrize("text", ["H100", "8", "8xH999", "0xH100", "-1xH100", "2x8x8xH100"])
def test_invalid_gpu_names_are_refused(text: str) -> None:
    from agentworld.train.plan.planning import parse_gpus

    with pytest.raises(InputError, match="names no GPUs; write 8xH100"):
        parse_gpus(text)


def test_a_sequence_parallel_that_does_not_fit_the_gpus_or_heads_is_refused(tmp_path: Path) -> None:
    from agentworld.train.plan.architecture import config_of_folder
    from agentworld.train.plan.planning import Planner, Terms, parse_gpus

    recipe = NextTokenRecipe(stage="cpt", sequence_parallel=3)
    planner = Planner(config_of_folder(base_of(tmp_path, "qwen3-0.6b")))
    with pytest.raises(InputError, match="sequence_parallel 3 does not divide 8, the number of"):
        planner.plan(recipe, Terms(parse_gpus("8xH100")))
    with pytest.raises(InputError, match="3 cannot split 16 attention heads with 8 key-value"):
        planner.plan(recipe, Terms(parse_gpus("3xH100")))


@pytest.mark.parametrize(
    ("layers", "advice"),
    [
        ({}, "; set cpt.sequence_parallel to 2"),
        (
            {"use_sliding_window": True, "sliding_window": 4_096, "max_window_layers": 0},
            "; set cpt.tokens_per_batch and cpt.sequence_tokens to 12288",
        ),
    ],
    ids=["full attention", "sliding attention"],
)
def test_a_plan_advises_sequence_parallel_only_for_models_that_support_sharing(
    layers: dict[str, object], advice: str, tmp_path: Path
) -> None:
    from agentworld.train.plan.architecture import config_of_folder
    from agentworld.train.plan.planning import Planner, Terms, parse_gpus

    recipe = NextTokenRecipe(
        stage="cpt", tokens_per_batch=24_576, sequence_tokens=24_576, zero_stage=3
    )
    (tmp_path / "config.json").write_text(json.dumps(QWEN3_8B | layers))
    planner = Planner(config_of_folder(tmp_path))
    with pytest.raises(InputError) as error:
        planner.plan(recipe, Terms(parse_gpus("8xH100")))
    assert str(error.value).endswith(advice)
