from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from agentworld.errors import InputError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from agentworld.train.encode import Row

pytestmark = pytest.mark.compute

SIZES = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
}
LENGTHS = (5, 17, 1, 40)


def model_of(family: str, config_suffix: str = "Config", **fields: Any) -> PreTrainedModel:
    """Two layers with random weights."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{family}{config_suffix}")(**SIZES, **fields)
    model: PreTrainedModel = getattr(transformers, f"{family}ForCausalLM")(config)
    return model


def qwen3_moe() -> PreTrainedModel:
    return model_of("Qwen3Moe", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16)


def qwen3_5() -> PreTrainedModel:
    """One layer of each kind."""
    kinds = ["linear_attention", "full_attention"]
    heads = {f"linear_num_{name}_heads": 2 for name in ("key", "value")}
    widths = {f"linear_{name}_head_dim": 8 for name in ("key", "value")}
    return model_of("Qwen3_5", "TextConfig", layer_types=kinds, **heads, **widths)


def rows_of(lengths: tuple[int, ...] = LENGTHS) -> list[Row]:
    """Random tokens, some of which are targets."""
    from agentworld.train.encode import Row

    random = np.random.default_rng(0)
    return [
        Row(random.integers(97, size=length, dtype=np.int32), random.random(length) < 0.7)
        for length in lengths
    ]


def loss_of(model: PreTrainedModel, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """The loss summed over the targets of one of the trainer's batches."""
    from agentworld.train.loss import loss_sum

    batch = dict(batch)
    is_target = batch.pop("is_target")[:, 1:]
    hidden = model.model(**batch, use_cache=False).last_hidden_state[:, :-1][is_target]
    return loss_sum(hidden, model.lm_head, batch["input_ids"][:, 1:][is_target])


def loss_and_gradients(
    model: PreTrainedModel, batches: list[dict[str, torch.Tensor]]
) -> tuple[float, dict[str, torch.Tensor]]:
    import torch

    model.zero_grad()
    loss = torch.stack([loss_of(model, batch) for batch in batches]).sum()
    loss.backward()
    gradients = {
        name: weight.grad.clone()
        for name, weight in model.named_parameters()
        if weight.grad is not None
    }
    return loss.item(), gradients


@pytest.mark.parametrize("family", ["Qwen3", "Qwen3Moe"])
def test_packed_rows_have_the_loss_and_gradients_of_separate_rows(family: str) -> None:
    import torch

    from agentworld.train.batches import collate
    from agentworld.train.packing import PACKED_ATTENTION, pack, packs

    model = model_of("Qwen3") if family == "Qwen3" else qwen3_moe()
    separate_loss, gradients = loss_and_gradients(model, [collate([row]) for row in rows_of()])
    assert packs(model, packing=True)
    model.set_attn_implementation(PACKED_ATTENTION)
    packed_loss, packed_gradients = loss_and_gradients(model, [pack(rows_of())])
    assert packed_loss == pytest.approx(separate_loss, rel=1e-5)
    assert gradients.keys() == packed_gradients.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(packed_gradients[name], gradient, rtol=1e-4, atol=1e-5)


def test_a_packed_batch_has_no_padding_and_no_target_across_two_rows() -> None:
    import torch

    from agentworld.train.encode import Row
    from agentworld.train.packing import pack

    rows = [Row(np.arange(n, dtype=np.int32), np.ones(n, dtype=np.bool_)) for n in (3, 2)]
    batch = pack(rows)
    assert batch["input_ids"].tolist() == [[0, 1, 2, 0, 1]]
    assert batch["position_ids"].tolist() == [[0, 1, 2, 0, 1]]
    assert batch["is_target"].tolist() == [[False, True, True, False, True]]
    assert batch["cu_seq_lens_q"].tolist() == [0, 3, 5]
    assert batch["cu_seq_lens_q"].dtype == torch.int32
    assert batch["max_length_q"] == 3


def test_packing_no_rows_makes_a_batch_without_targets() -> None:
    from agentworld.train.packing import pack

    assert not pack([])["is_target"].any()


def test_unsupported_layers_are_not_packed_and_explicit_packing_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from agentworld.train.packing import packs

    model = qwen3_5()
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert packs(model_of("Qwen3"), packing=None)
    assert not packs(model, packing=None)
    with pytest.raises(InputError, match=r"layers of linear_attention; set packing to false"):
        packs(model, packing=True)
    sliding_model = model_of("Mistral", sliding_window=8)
    assert not packs(sliding_model, packing=None)


def test_a_cpu_packs_only_if_the_recipe_enables_packing(monkeypatch: pytest.MonkeyPatch) -> None:
    from agentworld.train.packing import packs

    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    model = model_of("Qwen3")
    assert [packs(model, packing) for packing in (None, False, True)] == [False, False, True]


def test_packed_attention_with_dropout_is_refused() -> None:
    from agentworld.train.packing import PACKED_ATTENTION, pack

    model = model_of("Qwen3", attention_dropout=0.1).train()
    model.set_attn_implementation(PACKED_ATTENTION)
    with pytest.raises(InputError, match=r"would lose the dropout .* set packing to false"):
        loss_of(model, pack(rows_of()))


@pytest.mark.parametrize(("family", "leaks_state"), [("Qwen3_5", True), ("Qwen3", False)])
def test_only_gated_delta_layers_leak_state_between_packed_rows(
    family: str, *, leaks_state: bool
) -> None:
    import torch

    model = qwen3_5() if leaks_state else model_of(family)
    model.set_attn_implementation("sdpa")  # masks rows that position ids separate
    first, second = (torch.from_numpy(row.input_ids).long() for row in rows_of((7, 9)))
    positions = torch.cat([torch.arange(7), torch.arange(9)])[None]
    expected = model(input_ids=second[None], use_cache=False).logits[0]
    packed_ids = torch.cat([first, second])[None]
    logits = model(input_ids=packed_ids, position_ids=positions, use_cache=False).logits[0, 7:]
    assert ((logits - expected).abs().max() > 1e-3) == leaks_state
