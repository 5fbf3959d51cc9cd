"""A registry behind an MLflow server that is real, and does not always answer."""

import threading
import traceback
from pathlib import Path

import pytest

from agentworld.engine.process import LOOPBACK, free_port
from agentworld.errors import StoreError
from agentworld.lineage.base import WorldModel
from agentworld.records.base import digest_bytes
from machines.mlflow_server import Door, MlflowServer, counted
from make import records

pytestmark = pytest.mark.waits


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    (folder / "nested").mkdir(parents=True)
    (folder / "weights").write_bytes(b"weights")
    (folder / "nested/config").write_text("{}")
    return folder


def world_model(seed: str) -> WorldModel:
    stage = records.checkpoint("rl", artifact=digest_bytes(seed.encode()))
    return WorldModel(
        stages=(stage,), report=records.digest("report"), metrics={"exact_match": 0.5}
    )


def test_a_lost_response_registers_nothing_twice(before: Door, model: Path) -> None:
    from agentworld.lineage.mlflow import MlflowRegistry

    registry = MlflowRegistry(before.url)
    registry.register_world_model("counted", world_model("counted"), model)
    num_requests = len(before.asked)
    assert num_requests > 10
    before.asked.clear()
    for wanted in range(num_requests):
        what, first = world_model(f"counted {wanted}"), len(before.asked)
        before.loses = (first + wanted).__eq__
        ref = registry.register_world_model("counted", what, model)
        assert registry.world_model(ref) == what
        found = counted(before.url, what.artifact)
        assert found == {"versions": 1, "runs": 1, "models": 1, "values": 1}, before.asked[first:]


@pytest.mark.parametrize("status", [429, 500, 502, 504])
def test_a_temporary_server_error_is_retried(before: Door, model: Path, status: int) -> None:
    from agentworld.lineage.mlflow import MlflowRegistry

    before.status = lambda number: status * (number < 2)
    what = world_model(f"waited {status}")
    ref = MlflowRegistry(before.url).register_world_model(f"waited-{status}", what, model)
    assert ref.version == 1


@pytest.mark.parametrize(
    ("status", "how"), [(400, "failed"), (401, "refused"), (403, "refused"), (413, "failed")]
)
def test_a_refusal_is_raised_without_a_retry(
    before: Door, model: Path, status: int, how: str
) -> None:
    from agentworld.lineage.mlflow import MlflowRegistry

    before.status = lambda _number: status
    with pytest.raises(StoreError, match=f"the registry {before.url} {how}: .*{status}"):
        MlflowRegistry(before.url).register_world_model("refused", world_model("refused"), model)
    assert len(before.asked) == 1


def test_refused_artifact_files_are_a_store_error(before: Door, model: Path) -> None:
    from agentworld.lineage.mlflow import MlflowRegistry

    before.status = lambda number: 403 * ("mlflow-artifacts" in before.asked[number])
    with pytest.raises(StoreError, match=f"the registry {before.url} refused: 403"):
        MlflowRegistry(before.url).register_world_model("refused", world_model("files"), model)


def test_a_fetch_retries_temporarily_unavailable_files(
    before: Door, model: Path, tmp_path: Path
) -> None:
    from agentworld.lineage.mlflow import MlflowRegistry

    registry = MlflowRegistry(before.url)
    ref = registry.register_world_model("fetched", world_model("fetched"), model)
    registry.fetch(ref, tmp_path / "first")
    before.asked.clear()
    registry.fetch(ref, tmp_path / "whole")
    for wanted in range(len(before.asked)):
        first = len(before.asked)
        before.status = lambda number, at=first + wanted: 503 * (number == at)
        registry.fetch(ref, tmp_path / str(wanted))
        assert (tmp_path / str(wanted) / "nested/config").read_text() == "{}"
        assert len(before.asked) > first + wanted + 1


def test_an_unreachable_server_is_retried_for_patience_seconds(caplog) -> None:
    from agentworld.lineage.mlflow import MlflowRegistry

    url = f"http://{LOOPBACK}:{free_port()}"
    gone = rf"the registry {url} did not respond for [2-9] s: .*; check"
    with pytest.raises(StoreError, match=gone):
        MlflowRegistry(url, patience_seconds=3).agents_of("run")
    (line,) = (line for line in caplog.messages if line.startswith("the registry"))
    assert line.startswith(f"the registry {url} does not respond; waiting 3 s: ")


def test_a_server_that_restarts_during_a_registration_has_one_version(
    server: MlflowServer, before: Door, tmp_path: Path, model: Path
) -> None:
    from agentworld.lineage.mlflow import MlflowRegistry

    def die(number: int) -> int:
        if not restarts and "model-versions/create" in before.asked[number]:
            server.kill()
            restarts.append(threading.Timer(3, server.start))
            restarts[0].start()
        return 0

    restarts: list[threading.Timer] = []
    before.status = die
    what = world_model(str(tmp_path))
    registry = MlflowRegistry(before.url)
    try:
        ref = registry.register_world_model("died", what, model)
    finally:
        for restart in restarts:
            restart.join()
            server.wait()  # the next tests ask it too
    assert restarts
    assert registry.world_model(ref) == what
    assert counted(before.url, what.artifact) == dict.fromkeys(
        ("versions", "runs", "models", "values"), 1
    )
    registry.fetch(ref, tmp_path / "copy")
    assert (tmp_path / "copy/nested/config").read_text() == "{}"


def test_a_password_in_the_address_is_in_no_log_error_or_record(
    before: Door, model: Path, caplog, capfd
) -> None:
    from agentworld.lineage.mlflow import MlflowRegistry

    url = before.url.replace("//", "//anna:hidden@")
    registry = MlflowRegistry(url, patience_seconds=2)
    ref = registry.register_world_model("secret", world_model("secret"), model)
    told = [ref.canonical, *vars(registry.world_model(ref)).values()]
    for status in (403, 503):
        before.status = lambda _number, status=status: status
        with pytest.raises(StoreError, match=r"the registry http://anna:\*\*\*@") as failed:
            registry.world_model(ref)
        told.append("".join(traceback.format_exception(failed.value)))
    assert any("does not respond" in line for line in caplog.messages)
    assert "hidden" not in "".join(map(str, [*told, caplog.text, *capfd.readouterr()]))
