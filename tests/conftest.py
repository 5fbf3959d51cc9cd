"""What many rooms' tests share: a tiny model for real engines, and patience on busy machines."""

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory) -> Path:
    """The folder of a random Qwen3 with tokenizer and chat template; do not write into it."""
    import make_model

    return make_model.tiny_model(tmp_path_factory.mktemp("tiny") / "model")
