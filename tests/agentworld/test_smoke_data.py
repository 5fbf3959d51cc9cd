"""The profile `smoke` collects, prepares and trains on the same bytes as before.

A change that moves or renames code keeps these digests. A change to the data itself replaces
them, and its decision note gives the reason.
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

COLLECTED_DIGEST = "sha256:7d1bddeac5fed125f17e3a491bdc5bc67daebebab2f702893d0c9e7bd6bc45a1"
POOL_DIGESTS = {
    "cpt": "sha256:14c2ecdd2283904d4c2aa17d962f95d12de4ce8946f92027c58db8e6442d7129",
    "sft": "sha256:84ac3b35756dce5e262065b91b9aad9340925a211c5dd30fa486416c35444ad4",
    "rl": "sha256:85bdf979a94708f7b06192d753c272e502c4d50f3f42d9038c089902e60bef28",
    "held_out": "sha256:c7dd5b4eeb023a66aa0b350c968b6d1f665c1a280b583e69abf3586688bc1d68",
}
TOKENIZER_DIGEST = "6c723eb964d487bde96a4e761d5ed1ce0e4441c8b6b6a861fac6dc0d05ba49a4"
WARM_UP_DIGEST = "b67a90442e2b32ff1c8023902ac50ba59a598dbe2c86d0c468107b1e8879302f"
ROWS_DIGEST = "f87d2b427f57dc4f73ad9e96cee6bb753db4ea96a7ff9ad13fa016ec6d25a1e4"

_NUM_ROWS = 64


class SmokeData(NamedTuple):
    """The folders of the profile's first two steps."""

    collected: Path
    dataset: Path


class Digests(NamedTuple):
    """Digests of the input of CPT."""

    tokenizer: str
    warm_up: str
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
def digests(smoke_data: SmokeData, tmp_path_factory) -> Digests:
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
    (language_model, warm_up), (_, rows) = trainings
    tokenizer = language_model.tokenizer.backend_tokenizer.to_str().encode()
    return Digests(hashlib.sha256(tokenizer).hexdigest(), digest_rows(warm_up), digest_rows(rows))


def digest_rows(rows) -> str:
    """The digest of the first rows: their tokens, and which of these the loss counts."""
    digest = hashlib.sha256()
    for row in rows[:_NUM_ROWS]:
        for column in (row.input_ids.astype("<i4"), row.is_target.astype(np.uint8)):
            digest.update(len(column).to_bytes(4, "little") + column.tobytes())
    return digest.hexdigest()


def test_smoke_collects_the_same_chunks(smoke_data):
    collected = read_collected(smoke_data.collected)
    for name, digest in collected.chunks.items():
        assert digest_file(smoke_data.collected / name) == digest
    assert collected.digest == COLLECTED_DIGEST


def test_smoke_prepares_the_same_pools(smoke_data):
    pools = read_dataset(smoke_data.dataset).pools
    assert {pool: file.content for pool, file in pools.items()} == POOL_DIGESTS


def test_smoke_learns_the_same_tokenizer(digests):
    assert digests.tokenizer == TOKENIZER_DIGEST


def test_smoke_trains_on_the_same_rows(digests):
    assert (digests.warm_up, digests.rows) == (WARM_UP_DIGEST, ROWS_DIGEST)
