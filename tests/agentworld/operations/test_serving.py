"""The choice of the engine for a store's simulator."""

import asyncio

import pytest

from agentworld.operations.import_world import import_world
from agentworld.operations.serving import open_client
from agentworld.recipes import Recipe
from agentworld.records.progress import ignore_progress

pytestmark = pytest.mark.compute


def test_a_locally_served_simulator_has_its_pinned_manifest(tiny_model, tmp_path):
    recipe = Recipe(
        name="r",
        engine={"batch_tokens": 64, "cache_blocks": 256},
        simulate={"sampling": {"max_tokens": 40}},
    )
    simulator = import_world(recipe, tmp_path, tiny_model, ignore_progress)

    async def manifest(client):
        try:
            return await client.manifest()
        finally:
            await client.close()

    with open_client(simulator.digest, 2, tmp_path, tmp_path / "logs") as client:
        assert asyncio.run(manifest(client)) == simulator.manifest
