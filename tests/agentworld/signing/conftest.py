"""A signer in a separate folder, for all tests of the package; do not rotate it."""

from pathlib import Path

import pytest

from agentworld.signing.keys import Signer, ensure_signer


@pytest.fixture(scope="session")
def key_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    ensure_signer(folder)
    return folder


@pytest.fixture(scope="session")
def signer(key_folder) -> Signer:
    return ensure_signer(key_folder)
