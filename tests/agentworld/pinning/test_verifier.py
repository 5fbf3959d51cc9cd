import json
from pathlib import Path

import pytest
from fsspec.core import url_to_fs

from agentworld.errors import StoreError
from agentworld.pinning import verifier
from agentworld.records.base import digest_file
from agentworld.records.checkpoint import ArtifactManifest
from make import records
from make.weights import weights


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(weights())
    (folder / "config.json").write_text("{}")
    return folder


@pytest.fixture
def inputs(tmp_path, model, monkeypatch):
    """Sets the environment; returns the manifest and the path of the engine arguments."""
    artifact = ArtifactManifest.of(model)
    manifest = records.manifest(artifact=artifact.digest, files=artifact.files)
    manifest.write(tmp_path / "manifest.json")
    arguments_path = tmp_path / "verified" / "arguments"
    monkeypatch.setenv("AGENTWORLD_MANIFEST", str(tmp_path / "manifest.json"))
    monkeypatch.setenv("AGENTWORLD_MODEL_FOLDER", str(model))
    monkeypatch.setenv("AGENTWORLD_ENGINE_ARGUMENTS", str(arguments_path))
    return manifest, arguments_path


def test_the_served_model_name_is_the_manifest_digest(inputs):
    manifest, arguments_path = inputs
    assert verifier.main() == 0
    assert arguments_path.read_text() == f"--served-model-name {manifest.digest}"


def test_a_changed_byte_is_reported_and_no_engine_arguments_are_written(inputs, model, capsys):
    (model / "model.safetensors").write_bytes(weights("weightz"))
    assert verifier.main() == 2
    assert "model.safetensors does not match the manifest" in capsys.readouterr().err
    assert not inputs[1].exists()


def test_files_at_a_weights_url_are_fetched_and_verified(inputs, model, tmp_path, monkeypatch):
    destination = tmp_path / "fetched"
    monkeypatch.setenv("AGENTWORLD_MODEL_FOLDER", str(destination))
    monkeypatch.setenv("AGENTWORLD_WEIGHTS_URL", f"file://{model}")
    assert verifier.main() == 0
    assert digest_file(destination / "model.safetensors") == inputs[0].files["model.safetensors"]


def io_bytes() -> dict[str, int]:
    """The bytes that this process has read and written, by all system calls of all its threads."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return {name: int(count) for name, count in (line.split(": ") for line in lines)}


@pytest.mark.parametrize(("shared", "times_of_second"), [(False, 1), (True, 0)])
def test_a_pod_reads_and_writes_each_byte_once_and_shared_files_not_again(
    model, tmp_path, shared, times_of_second
):
    """The source is a folder, so hashing the written file would be a second read."""
    num_bytes = 8 << 20
    (model / "model.safetensors").write_bytes(weights(values=[num_bytes // 4]))
    artifact = ArtifactManifest.of(model)
    manifest = records.manifest(artifact=artifact.digest, files=artifact.files)
    manifest.write(tmp_path / "manifest.json")
    settings = verifier.VerifierSettings(
        manifest=tmp_path / "manifest.json",
        model_folder=tmp_path / "cache" / "world",
        weights_url=f"file://{model}",
        weights_shared=shared,
        engine_arguments=tmp_path / "arguments",
    )
    for times in (1, times_of_second):
        before = io_bytes()
        verifier.verify(settings)
        after = io_bytes()
        for counter in ("rchar", "wchar"):
            assert after[counter] - before[counter] == pytest.approx(times * num_bytes, abs=500_000)


def test_shared_files_are_fetched_by_only_one_pod(inputs, model, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("AGENTWORLD_MODEL_FOLDER", str(tmp_path / "cache" / "world"))
    monkeypatch.setenv("AGENTWORLD_WEIGHTS_URL", f"file://{model}")
    monkeypatch.setenv("AGENTWORLD_WEIGHTS_SHARED", "true")
    assert verifier.main() == 0
    model.rename(tmp_path / "gone")
    assert verifier.main() == 0
    first, second = capsys.readouterr().out.splitlines()
    assert "fetched and checked in" in first
    assert "unchanged since their check" in second
    assert inputs[1].read_text() == f"--served-model-name {inputs[0].digest}"


def test_a_manifest_whose_files_contradict_its_artifact_is_refused(
    inputs, model, monkeypatch, capsys
):
    manifest = inputs[0].model_copy(update={"artifact": records.digest("another")})
    manifest.write(model.parent / "manifest.json")
    assert verifier.main() == 2
    assert "pin again" in capsys.readouterr().err
    monkeypatch.setenv("AGENTWORLD_WEIGHTS_URL", f"file://{model}")
    monkeypatch.setenv("AGENTWORLD_MODEL_FOLDER", str(model.parent / "fetched"))
    assert verifier.main() == 2


@pytest.mark.waits
def test_files_in_a_bucket_are_fetched_and_verified(inputs, model, tmp_path, monkeypatch, bucket):
    system, root = url_to_fs(f"{bucket}/models/world")
    for name in inputs[0].files:
        system.put_file(str(model / name), f"{root}/{name}")
    monkeypatch.setenv("AGENTWORLD_MODEL_FOLDER", str(tmp_path / "fetched"))
    monkeypatch.setenv("AGENTWORLD_WEIGHTS_URL", f"{bucket}/models/world")
    assert verifier.main() == 0
    system.pipe_file(f"{root}/model.safetensors", weights("weightz"))
    assert verifier.main() == 2


def test_a_file_missing_at_the_weights_url_is_reported(inputs, model, monkeypatch, capsys):
    (model / "config.json").unlink()
    monkeypatch.setenv("AGENTWORLD_MODEL_FOLDER", str(inputs[1].parent / "fetched"))
    monkeypatch.setenv("AGENTWORLD_WEIGHTS_URL", f"file://{model}")
    assert verifier.main() == 2
    assert "there is no config.json at" in capsys.readouterr().err


@pytest.mark.usefixtures("inputs")
def test_an_outage_of_the_store_has_another_exit_status_than_wrong_weights(monkeypatch, capsys):
    def fetch_files(*_):
        raise StoreError("s3://models does not answer")

    monkeypatch.setattr(verifier, "fetch_files", fetch_files)
    monkeypatch.setenv("AGENTWORLD_WEIGHTS_URL", "s3://models/world")
    assert verifier.main() == 1
    assert capsys.readouterr().err == "s3://models does not answer\n"


def test_an_adapter_is_served_under_the_manifest_digest(inputs, model, tmp_path):
    adapter = model / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text(json.dumps({"r": 8}))
    artifact = ArtifactManifest.of(model)
    manifest = records.manifest(artifact=artifact.digest, files=artifact.files)
    manifest.write(tmp_path / "manifest.json")
    assert verifier.main() == 0
    assert f"--lora-modules {manifest.digest}={adapter}" in inputs[1].read_text()


def test_a_missing_setting_is_reported(monkeypatch, capsys):
    monkeypatch.delenv("AGENTWORLD_MANIFEST", raising=False)
    assert verifier.main() == 2
    assert "manifest" in capsys.readouterr().err
