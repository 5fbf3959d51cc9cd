import pytest

pytestmark = pytest.mark.compute

SHAPES = [(8, 8), (8, 8), (4, 8), (24, 8), (24, 8), (8, 24)]


def trained(optimizer, **settings):
    """Weights after three steps towards targets, and what is kept for the fourth."""
    import torch

    torch.manual_seed(0)
    weights = [torch.nn.Parameter(torch.randn(shape)) for shape in SHAPES]
    idle = torch.nn.Parameter(torch.ones(8, 8))
    targets = [torch.randn(shape) for shape in SHAPES]
    steps = optimizer([*weights, idle], lr=0.02, **settings)
    for _ in range(3):
        steps.zero_grad()
        sum(((w - t) ** 2).sum() for w, t in zip(weights, targets, strict=True)).backward()
        steps.step()
    assert torch.equal(idle, torch.ones(8, 8))
    return weights, steps.state_dict()


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_batched_muon_takes_the_same_steps_as_torch_muon(weight_decay):
    import torch

    from agentworld.train.muon import BatchedMuon

    ours, our_state = trained(BatchedMuon, weight_decay=weight_decay)
    theirs, their_state = trained(torch.optim.Muon, weight_decay=weight_decay)
    # The iteration is in bfloat16, and a step moves an entry by up to 0.02 times 1.7.
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-3)
    assert our_state["param_groups"] == their_state["param_groups"]
    assert our_state["state"].keys() == their_state["state"].keys()
