import pytest

pytestmark = pytest.mark.compute

SHAPES = [(8, 8), (8, 8), (4, 8), (24, 8), (24, 8), (8, 24)]


def train(optimizer_class, **settings):
    """Weights after three steps towards targets, and the optimizer's state for the fourth."""
    import torch

    torch.manual_seed(0)
    weights = [torch.nn.Parameter(torch.randn(shape)) for shape in SHAPES]
    idle_weight = torch.nn.Parameter(torch.ones(8, 8))
    targets = [torch.randn(shape) for shape in SHAPES]
    optimizer = optimizer_class([*weights, idle_weight], lr=0.02, **settings)
    for _ in range(3):
        optimizer.zero_grad()
        sum(((w - t) ** 2).sum() for w, t in zip(weights, targets, strict=True)).backward()
        optimizer.step()
    assert torch.equal(idle_weight, torch.ones(8, 8))
    return weights, optimizer.state_dict()


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_batched_muon_takes_the_same_steps_as_torch_muon(weight_decay):
    import torch

    from agentworld.train.muon import BatchedMuon

    weights, state = train(BatchedMuon, weight_decay=weight_decay)
    expected_weights, expected_state = train(torch.optim.Muon, weight_decay=weight_decay)
    # The iteration is in bfloat16, and a step moves an entry by up to 0.02 times 1.7.
    torch.testing.assert_close(weights, expected_weights, rtol=0, atol=1e-3)
    assert state["param_groups"] == expected_state["param_groups"]
    assert state["state"].keys() == expected_state["state"].keys()
