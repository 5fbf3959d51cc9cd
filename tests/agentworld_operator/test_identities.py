import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentworld.cluster.names import short
from agentworld.cluster.records.simulator import Identity
from agentworld.errors import NotFound
from agentworld.records.base import digest_bytes
from agentworld.storage.folder import read_file
from agentworld_operator.identities import Identities
from agentworld_operator.policy.identity import SimulatorIdentity
from agentworld_operator.policy.problem import Problem
from make.simulator import pinned_manifest
from waiting import DEADLINE

MANIFEST = pinned_manifest()


def resource(name="one", uid="u1"):
    return {"metadata": {"name": name, "uid": uid}}


def inline(manifest=MANIFEST):
    return Identity(manifest=manifest)


def referenced(folder, data=MANIFEST.canonical):
    path = folder / "manifest.json"
    path.write_bytes(data)
    return Identity(reference={"url": f"file://{path}", "digest": digest_bytes(MANIFEST.canonical)})


def test_an_inline_manifest_is_the_identity():
    identity = Identities(read_file).learn(resource(), inline())
    assert identity == SimulatorIdentity(MANIFEST.digest, MANIFEST)


def test_a_referenced_manifest_is_read_only_once(tmp_path):
    identities, identity = Identities(read_file), referenced(tmp_path)
    assert isinstance(identities.learn(resource(), identity), SimulatorIdentity)
    (tmp_path / "manifest.json").unlink()
    assert isinstance(identities.learn(resource(), identity), SimulatorIdentity)


def test_a_refused_manifest_is_read_again(tmp_path):
    identities = Identities(read_file)
    assert isinstance(identities.learn(resource(), referenced(tmp_path, b"{}")), Problem)
    assert isinstance(identities.learn(resource(), referenced(tmp_path)), SimulatorIdentity)


def test_a_missing_manifest_file_is_named_in_the_error(tmp_path):
    with pytest.raises(NotFound, match=r"there is no file:.*manifest\.json"):
        read_file(f"file://{tmp_path}/manifest.json")


def test_manifests_are_read_at_once_and_in_threads_of_their_own(tmp_path):
    """Each read waits for the other one."""
    both_read = threading.Barrier(2)

    def read(url):
        both_read.wait(DEADLINE)
        return read_file(url)

    async def load_two():
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        identities, identity = Identities(read), referenced(tmp_path)
        loads = [identities.load(resource(uid=uid), identity) for uid in ("u1", "u2")]
        return await asyncio.gather(*loads)

    assert asyncio.run(load_two()) == [SimulatorIdentity(MANIFEST.digest, MANIFEST)] * 2


def test_objects_are_found_by_their_engine_until_they_are_forgotten():
    identities, engine = Identities(read_file), short(MANIFEST.digest)
    identities.learn(resource("one", "u1"), inline())
    identities.learn(resource("twin", "u2"), inline())
    assert sorted(identities.names(engine)) == ["one", "twin"]
    assert identities.engine(resource("one", "u1")) == engine
    identities.forget(resource("one", "u1"))
    assert identities.same(MANIFEST.digest) == ["twin"]
    assert identities.engine(resource("one", "u1")) is None
