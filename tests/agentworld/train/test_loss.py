from __future__ import annotations

import pytest

pytestmark = pytest.mark.compute


@pytest.mark.parametrize("most_logits", [1, 50, 70, 10_000])
def test_a_chunked_loss_equals_the_loss_of_all_tokens_at_once(most_logits: int) -> None:
    import torch
    from torch.nn.functional import cross_entropy

    from agentworld.train.loss import loss_sum

    torch.manual_seed(0)
    layer, targets = torch.nn.Linear(8, 20, bias=False), torch.randint(20, (11,))
    hidden = torch.randn(11, 8, requires_grad=True)
    loss = cross_entropy(layer(hidden), targets, reduction="sum")
    gradients = torch.autograd.grad(loss, [hidden, layer.weight])
    chunked_loss = loss_sum(hidden, layer, targets, most_logits)
    assert chunked_loss.item() == pytest.approx(loss.item())
    torch.testing.assert_close(torch.autograd.grad(chunked_loss, [hidden, layer.weight]), gradients)


def test_a_chunk_computes_no_more_logits_than_the_limit() -> None:
    import torch

    from agentworld.train.loss import loss_sum

    layer, sizes = torch.nn.Linear(8, 20, bias=False), []
    layer.register_forward_hook(lambda _layer, _inputs, logits: sizes.append(logits.numel()))
    loss_sum(torch.randn(11, 8), layer, torch.randint(20, (11,)), most_logits=65)
    assert max(sizes) <= 65
    assert sum(sizes) == 11 * 20
