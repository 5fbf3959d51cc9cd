"""The profile `smoke` collects, prepares and trains on the same bytes as before.

A change that moves or renames code leaves these digests alone. A change to the data itself
replaces them, and its decision note says why.
"""

import hashlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from agentworld.data.collect import collect
from agentworld.data.prepare import prepare
from agentworld.recipes import load_recipe, recipe_path
from agentworld.records.base import digest_file
from agentworld.storage.pools import read_dataset
from agentworld.storage.trajectories import read_collected

pytestmark = pytest.mark.compute

COLLECTED = "sha256:abdcca5214506b6544368b5c0d9789fc400b96ed2d49338ee83c34d6573654dd"
POOLS = {
    "cpt": "sha256:c8d9f0fd5c06163585faba75ab3d6b4c43ae57ea3e51f4c5cdbbaec85a015338",
    "sft": "sha256:ca4ec13e05a93400fc37bf4a88de3a433f2390dbc2fe2b3f3aa5544aa5d50b2a",
    "rl": "sha256:921e131ba1d5e4ebc8d2f9127728028292fd5475aa4f4c8ddb5493501c471814",
    "held_out": "sha256:9de3478943e86fbe0972ac8ab7d375b782208429126ad6bddddd9203e5cdb066",
}
TOKENIZER = "4da9966b728444a74765b7a585b9204fcee9ef15fbc1377b5b6e86dec9bbdda1"
DRILLS = "5b601b514b4bfc56aa00dc92c915f9d7a003489eb62e848dbe97899b64b57136"
ROWS = "2bd2aadf6af011e98e1e7b792d88f7b05101a1cae716561942038912c43bc1dc"

_NUM_ROWS = 64


class SmokeData(NamedTuple):
    """The folders of the profile's first two steps."""

    collected: Path
    dataset: Path


class Encoded(NamedTuple):
    """Digests of the input of CPT."""

    tokenizer: str
    drills: str
    rows: str


@pytest.fixture(scope="module")
def smoke_data(tmp_path_factory) -> SmokeData:
    recipe = load_recipe(recipe_path("smoke"))
    folder = tmp_path_factory.mktemp("smoke")
    data = SmokeData(folder / "collected", folder / "dataset")
    data.collected.mkdir()
    collect(recipe.collect, data.collected, lambda *_: None)
    prepare(recipe.prepare, data.collected, data.dataset, lambda *_: None)
    return data


@pytest.fixture(scope="module")
def encoded(smoke_data: SmokeData, tmp_path_factory) -> Encoded:
    from agentworld.train import next_token

    recipe = load_recipe(recipe_path("smoke"))
    out = tmp_path_factory.mktemp("cpt")
    trainings = []

    def record(language_model, _recipe, rows, *_):
        trainings.append((language_model, rows))
        return {}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(next_token, "train_rows", record)
        patch.setattr(next_token, "save_checkpoint", lambda *_, **__: None)
        next_token.run(recipe.cpt, recipe.model, smoke_data.dataset, None, out, lambda *_: None)
    (language_model, drills), (_, rows) = trainings
    tokenizer = language_model.tokenizer.backend_tokenizer.to_str().encode()
    return Encoded(hashlib.sha256(tokenizer).hexdigest(), digest_rows(drills), digest_rows(rows))


def digest_rows(rows) -> str:
    """The first rows: their tokens, and which of them the loss counts."""
    digest = hashlib.sha256()
    for row in rows[:_NUM_ROWS]:
        for column in (row.input_ids.astype("<i4"), row.is_target.astype(np.uint8)):
            digest.update(len(column).to_bytes(4, "little") + column.tobytes())
    return digest.hexdigest()


def test_smoke_collects_the_same_chunks(smoke_data):
    collected = read_collected(smoke_data.collected)
    for name, digest in collected.chunks.items():
        assert digest_file(smoke_data.collected / name) == digest
    assert collected.digest == COLLECTED


def test_smoke_prepares_the_same_pools(smoke_data):
    pools = read_dataset(smoke_data.dataset).pools
    assert {pool: file.content for pool, file in pools.items()} == POOLS


def test_smoke_learns_the_same_tokenizer(encoded):
    assert encoded.tokenizer == TOKENIZER


def test_smoke_trains_on_the_same_rows(encoded):
    assert (encoded.drills, encoded.rows) == (DRILLS, ROWS)
