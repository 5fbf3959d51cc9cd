import pytest

from agentworld.runner import folders


@pytest.mark.compute
def test_training_and_steps_use_the_same_file_names():
    from agentworld.train import save

    assert (folders.MODEL, folders.CHECKPOINT) == (save.MODEL, save.RECORD)
