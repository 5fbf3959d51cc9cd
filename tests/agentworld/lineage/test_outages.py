"""A registry on a real MLflow server that does not always answer."""

import threading
import traceback
from pathlib import Path

import pytest

from agentworld.engine.process import LOOPBACK, free_port
from agentworld.errors import StoreError
from agentworld.lineage.base import WorldModel
from agentworld.records.base import digest_bytes
from machines.mlflow_server import MlflowServer, Proxy, counted
from make import records

pytestmark = pytest.mark.waits


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    (folder / "nested").mkdir(parents=True)
    (folder / "weights").write_bytes(b"weights")
    (folder / "nested/config").write_text("{}")
    return folder


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request is retried after 50 ms."""
    monkeypatch.setattr("agentworld.lineage.server._FIRST_WAIT_SECONDS", 0.05)


def world_model(seed: str) -> WorldModel:
    stage = records.checkpoint("rl", artifact=digest_bytes(seed.encode()))
    return WorldModel(
        stages=(stage,), report=records.digest("report"), metrics={"exact_match": 0.5}
    )


@pytest.mark.usefixtures("quick_retries")
def test_a_lost_response_registers_nothing_twice(proxy: Proxy, model: Path, tmp_path: Path) -> None:
    from agentworld.lineage.mlflow import MlflowRegistry

    registry = MlflowRegistry(proxy.url)
    registry.register_world_model("counted", world_model(str(tmp_path)), model)
    num_requests = len(proxy.requests)
    assert num_requests > 10
    proxy.requests.clear()
    for index in range(num_requests):
        world, start = world_model(f"{tmp_path} {index}"), len(proxy.requests)
        proxy.loses = (start + index).__eq__
        ref = registry.register_world_model("counted", world, model)
        assert registry.world_model(ref) == world
        counts = counted(proxy.url, world.artifact)
        assert counts == {"versions": 1, "runs": 1, "models": 1, "values": 1}, proxy.requests[
            start:
        ]


@pytest.mark.parametrize("status", [429, 500, 502, 504])
def test_a_temporary_server_error_is_retried(proxy: Proxy, model: Path, status: int) -> None:
    from agentworld.lineage.mlflow import MlflowRegistry

    proxy.status = lambda number: status * (number < 2)
    world = world_model(f"waited {status}")
    ref = MlflowRegistry(proxy.url).register_world_model(f"waited-{status}", world, model)
    assert ref.version == 1


@pytest.mark.parametrize(
    ("status", "verb"), [(400, "failed"), (401, "refused"), (403, "refused"), (413, "failed")]
)
def test_a_refusal_is_raised_without_a_retry(
    proxy: Proxy, model: Path, status: int, verb: str
) -> None:
    from agentworld.lineage.mlflow import MlflowRegistry

    proxy.status = lambda _number: status
    with pytest.raises(StoreError, match=f"the registry {proxy.url} {verb}: .*{status}"):
        MlflowRegistry(proxy.url).register_world_model("refused", world_model("refused"), model)
    assert len(proxy.requests) == 1


def test_refused_artifact_files_are_a_store_error(proxy: Proxy, model: Path) -> None:
    from agentworld.lineage.mlflow import MlflowRegistry

    proxy.status = lambda number: 403 * ("mlflow-artifacts" in proxy.requests[number])
    with pytest.raises(StoreError, match=f"the registry {proxy.url} refused: 403"):
        MlflowRegistry(proxy.url).register_world_model("refused", world_model("files"), model)


@pytest.mark.usefixtures("quick_retries")
def test_a_fetch_retries_temporarily_unavailable_files(
    proxy: Proxy, model: Path, tmp_path: Path
) -> None:
    from agentworld.lineage.mlflow import MlflowRegistry

    registry = MlflowRegistry(proxy.url)
    ref = registry.register_world_model("fetched", world_model("fetched"), model)
    registry.fetch(ref, tmp_path / "first")
    proxy.requests.clear()
    registry.fetch(ref, tmp_path / "whole")
    for index in range(len(proxy.requests)):
        start = len(proxy.requests)
        proxy.status = lambda number, failing=start + index: 503 * (number == failing)
        registry.fetch(ref, tmp_path / str(index))
        assert (tmp_path / str(index) / "nested/config").read_text() == "{}"
        assert len(proxy.requests) > start + index + 1


def test_an_unreachable_server_is_retried_for_patience_seconds(caplog) -> None:
    from agentworld.lineage.mlflow import MlflowRegistry

    url = f"http://{LOOPBACK}:{free_port()}"
    message = rf"the registry {url} did not respond for ([2-9]|\d\d) s: .*; check"
    with pytest.raises(StoreError, match=message):
        MlflowRegistry(url, patience_seconds=3).agents_of("run")
    (line,) = (line for line in caplog.messages if line.startswith("the registry"))
    assert line.startswith(f"the registry {url} does not respond; waiting 3 s: ")


def test_a_server_that_restarts_during_a_registration_has_one_version(
    server: MlflowServer, proxy: Proxy, tmp_path: Path, model: Path
) -> None:
    from agentworld.lineage.mlflow import MlflowRegistry

    def die(number: int) -> int:
        if not restarts and "model-versions/create" in proxy.requests[number]:
            server.kill()
            restarts.append(threading.Timer(3, server.start))
            restarts[0].start()
        return 0

    restarts: list[threading.Timer] = []
    proxy.status = die
    world = world_model(str(tmp_path))
    registry = MlflowRegistry(proxy.url)
    try:
        ref = registry.register_world_model("died", world, model)
    finally:
        for restart in restarts:
            restart.join()
            server.wait()  # the next tests use it too
    assert restarts
    assert registry.world_model(ref) == world
    assert counted(proxy.url, world.artifact) == dict.fromkeys(
        ("versions", "runs", "models", "values"), 1
    )
    registry.fetch(ref, tmp_path / "copy")
    assert (tmp_path / "copy/nested/config").read_text() == "{}"


def test_a_password_in_the_address_is_in_no_log_error_or_record(
    proxy: Proxy, model: Path, caplog, capfd
) -> None:
    from agentworld.lineage.mlflow import MlflowRegistry

    url = proxy.url.replace("//", "//anna:hidden@")
    registry = MlflowRegistry(url, patience_seconds=2)
    ref = registry.register_world_model("secret", world_model("secret"), model)
    texts = [ref.canonical, *vars(registry.world_model(ref)).values()]
    for status in (403, 503):
        proxy.status = lambda _number, status=status: status
        with pytest.raises(StoreError, match=r"the registry http://anna:\*\*\*@") as error:
            registry.world_model(ref)
        texts.append("".join(traceback.format_exception(error.value)))
    assert any("does not respond" in line for line in caplog.messages)
    assert "hidden" not in "".join(map(str, [*texts, caplog.text, *capfd.readouterr()]))
