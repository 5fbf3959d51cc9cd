import asyncio

import pytest

import make.many
from agentworld.errors import EvidenceError, InputError, NotFound, StoreError
from agentworld.serving.simulators.base import SimulatorRequest
from make import records
from make.many import FIRST, SECOND, Catalogue


@pytest.fixture
def catalogue():
    return Catalogue()


@pytest.fixture
def simulators(tmp_path, catalogue):
    parts = make.many.parts(tmp_path, catalogue)
    yield parts.simulators
    parts.episode_store.ledger.close()


def test_concurrent_requests_connect_each_simulator_once(simulators, catalogue):
    async def work():
        searches = [simulators.find(digest) for digest in (FIRST.digest, SECOND.digest) * 20]
        return await asyncio.gather(*searches)

    services = asyncio.run(work())
    assert len(set(map(id, services))) == 2
    assert {service.digest for service in services} == set(simulators.connected)
    assert catalogue.num_found == {FIRST.digest: 1, SECOND.digest: 1}


def test_a_connection_failure_reaches_all_waiting_callers_and_is_retried_later(
    simulators, catalogue
):
    async def work():
        catalogue.failing = StoreError("the object store is gone")
        searches = [simulators.find(FIRST.digest) for _ in range(3)]
        failures = await asyncio.gather(*searches, return_exceptions=True)
        catalogue.failing = None
        return failures, await simulators.find(FIRST.digest)

    failures, service = asyncio.run(work())
    assert failures == [catalogue_error(failures)] * 3
    assert (service.digest, catalogue.num_found[FIRST.digest]) == (FIRST.digest, 2)


def catalogue_error(failures):
    assert isinstance(failures[0], StoreError)
    return failures[0]


def test_a_canceled_request_does_not_cancel_the_connection_for_others(simulators, catalogue):
    async def work():
        first, second = (asyncio.create_task(simulators.find(FIRST.digest)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert asyncio.run(work()).digest == FIRST.digest
    assert catalogue.num_found[FIRST.digest] == 1


def test_a_connection_failure_after_cancellation_is_not_logged(simulators, catalogue, caplog):
    async def work():
        catalogue.failing = StoreError("gone")
        task = asyncio.create_task(simulators.find(FIRST.digest))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0.05)

    asyncio.run(work())
    assert caplog.text == ""
    assert simulators.connected == {}


@pytest.mark.parametrize("manifest", [SECOND, records.manifest(renderer="another")])
def test_a_mismatched_or_unsupported_manifest_is_not_served(simulators, catalogue, manifest):
    digest = FIRST.digest if manifest is SECOND else manifest.digest
    catalogue.manifests[digest] = manifest
    catalogue.engines[digest] = engine = make.many.Closing("wrong")
    catalogue.states[digest] = {}
    with pytest.raises((EvidenceError, InputError), match="was found as|pins renderer"):
        asyncio.run(simulators.find(digest))
    assert engine.is_closed
    assert simulators.connected == {}


def test_a_simulator_name_must_be_a_known_alias_or_digest(simulators):
    def resolve(name):
        return asyncio.run(simulators.resolve(SimulatorRequest(name, "run", "acme")))

    assert resolve("canary") == SECOND.digest
    assert resolve(FIRST.digest) == FIRST.digest
    with pytest.raises(InputError, match="by an alias or by its digest"):
        resolve("")
    for name in ("gone", "sha256:../../secret", "sha256:"):
        with pytest.raises(NotFound):
            resolve(name)


def test_closing_closes_connected_engines_and_cancels_pending_connections(simulators, catalogue):
    async def work():
        await simulators.find(FIRST.digest)
        task = asyncio.create_task(simulators.find(SECOND.digest))
        await asyncio.sleep(0)
        await simulators.close()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    assert catalogue.engines[FIRST.digest].is_closed
    assert list(simulators.connected) == [FIRST.digest]
