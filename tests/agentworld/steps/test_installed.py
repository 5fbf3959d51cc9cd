import pytest

import make
from agentworld.errors import InputError
from agentworld.steps.code import lock_digest
from agentworld.steps.installed import check_installed, installed

IMAGE = make.digest("image")


def made_with(**where):
    return make.manifest(engine={"kind": "vllm", "version": "vllm 1", **where})


def test_outside_of_a_container_an_engine_comes_from_the_lock():
    assert installed() == (None, lock_digest())
    check_installed(made_with(lock=lock_digest()))


def test_in_a_container_it_comes_from_the_image(monkeypatch):
    monkeypatch.setenv("AGENTWORLD_ENGINE_IMAGE", IMAGE)
    assert installed() == (IMAGE, None)
    check_installed(made_with(image=IMAGE))
    with pytest.raises(InputError, match=rf"pinned with lock .* and here is image {IMAGE}"):
        check_installed(made_with(lock=lock_digest()))


def test_an_engine_from_another_lock_is_not_the_pinned_one():
    other = make.digest("other constraints")
    with pytest.raises(InputError, match=rf"pinned with lock {other} and here is lock"):
        check_installed(made_with(lock=other))


def test_what_an_endpoint_runs_on_is_its_own():
    there = {"kind": "openai", "url": "http://127.0.0.1:8000", "model": "m"}
    check_installed(make.manifest(artifact=None, files={}, engine=there))


def test_an_image_without_a_digest_is_named(monkeypatch):
    monkeypatch.setenv("AGENTWORLD_ENGINE_IMAGE", "agentworld:latest")
    with pytest.raises(InputError, match="the environment is wrong at engine_image"):
        installed()
