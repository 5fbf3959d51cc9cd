import os
import subprocess
import sys
import threading

import pytest

from agentworld.errors import InputError, NotFound
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.storage import shared_model
from agentworld.storage.shared_model import share_model
from waiting import DEADLINE

FILES = {"begin": b"a" * 100, "end/of": b"b" * 50}


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def artifact(source):
    return ArtifactManifest.of(source)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache" / "world"


def share(source, artifact, folder):
    return share_model(f"file://{source}", artifact, folder)


def test_only_the_first_pod_reads_the_source(source, artifact, folder, tmp_path):
    assert share(source, artifact, folder) == "fetched"
    source.rename(tmp_path / "gone")
    assert share(source, artifact, folder) == "unchanged"
    assert ArtifactManifest.of(folder) == artifact


def test_a_rewritten_file_is_hashed_and_not_fetched_again(source, artifact, folder, tmp_path):
    share(source, artifact, folder)
    source.rename(tmp_path / "gone")
    (folder / "begin").write_bytes(FILES["begin"])
    assert share(source, artifact, folder) == "hashed"
    assert share(source, artifact, folder) == "unchanged"


@pytest.mark.parametrize("change", ["other", "missing", "more"])
def test_a_changed_folder_is_fetched_again(source, artifact, folder, change):
    share(source, artifact, folder)
    if change == "other":
        (folder / "begin").write_bytes(b"c" * 100)
    elif change == "missing":
        (folder / "begin").unlink()
    else:
        (folder / "more").write_bytes(b"")
    assert share(source, artifact, folder) == "fetched"
    assert ArtifactManifest.of(folder) == artifact


def test_a_change_with_a_restored_modification_time_is_detected(source, artifact, folder):
    share(source, artifact, folder)
    status = (folder / "begin").stat()
    (folder / "begin").write_bytes(b"c" * 100)
    os.utime(folder / "begin", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert share(source, artifact, folder) == "fetched"


def test_the_mark_of_another_model_is_ignored(source, artifact, folder):
    share(source, artifact, folder)
    (source / "begin").write_bytes(b"c" * 100)
    assert share(source, ArtifactManifest.of(source), folder) == "fetched"


def test_a_file_that_does_not_match_the_manifest_is_refused_and_leaves_no_folder(
    source, artifact, folder
):
    (source / "begin").write_bytes(b"c" * 100)
    with pytest.raises(InputError, match="begin at .* does not match the manifest"):
        share(source, artifact, folder)
    assert not folder.exists()
    (source / "begin").write_bytes(FILES["begin"])
    assert share(source, artifact, folder) == "fetched"


def test_a_missing_file_is_reported_and_leaves_no_folder(source, artifact, folder):
    (source / "begin").unlink()
    with pytest.raises(NotFound, match="there is no begin at"):
        share(source, artifact, folder)
    assert not folder.exists()


def test_a_file_name_outside_the_folder_is_refused_and_changes_no_other_model(
    source, artifact, folder
):
    other_folder = folder.with_name("other")
    share(source, artifact, other_folder)
    files = {**artifact.files, "../other/begin": artifact.files["begin"]}
    with pytest.raises(InputError, match="outside its folder"):
        share(source, ArtifactManifest(files=files), folder)
    assert share(source, artifact, other_folder) == "unchanged"


_KILLED = """
import os, sys
from pathlib import Path
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.storage import shared_model
def kill(path):
    os.kill(os.getpid(), 9)
shared_model.sync = kill
shared_model.share_model(sys.argv[1], ArtifactManifest.of(Path(sys.argv[2])), Path(sys.argv[3]))
"""


@pytest.mark.waits
def test_files_of_a_killed_pod_are_fetched_again(source, artifact, folder):
    command = [sys.executable, "-c", _KILLED, f"file://{source}", source, folder]
    process = subprocess.run(command, check=False)
    assert process.returncode == -9
    assert folder.exists()
    (folder / "begin").write_bytes(b"half")
    assert share(source, artifact, folder) == "fetched"
    assert ArtifactManifest.of(folder) == artifact


def test_a_pod_waits_for_another_pod_that_fetches_the_same_model(
    source, artifact, folder, monkeypatch, caplog
):
    started, proceed, fetches = threading.Event(), threading.Event(), []
    fetch = shared_model.fetch_files

    def slow_fetch(*arguments):
        fetches.append(arguments)
        started.set()
        assert proceed.wait(DEADLINE)
        fetch(*arguments)

    monkeypatch.setattr(shared_model, "fetch_files", slow_fetch)
    results = []

    def run():
        results.append(share(source, artifact, folder))

    threads = [threading.Thread(target=run) for _ in range(2)]
    threads[0].start()
    assert started.wait(DEADLINE)
    threads[1].start()
    while "waiting for a pod that fetches the same model" not in caplog.text:
        assert threads[1].is_alive()
    proceed.set()
    for thread in threads:
        thread.join(DEADLINE)
    assert (sorted(results), len(fetches)) == (["fetched", "unchanged"], 1)
