import pytest

from agentworld.runner import folders


@pytest.mark.compute
def test_training_writes_what_steps_read_under_these_names():
    from agentworld.train import save

    assert (folders.MODEL, folders.CHECKPOINT) == (save.MODEL, save.RECORD)
