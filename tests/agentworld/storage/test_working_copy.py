import multiprocessing
import os
import re
import time
from pathlib import Path

import fsspec
import pytest

from agentworld.errors import InputError, StoreError
from agentworld.storage.folder import open_folder
from agentworld.storage.working_copy import WorkingCopy, address_of, copy_of, open_copy

pytestmark = pytest.mark.waits  # a server of buckets; each scratch folder is another pod's


@pytest.fixture
def url(bucket: str, tmp_path: Path) -> str:
    return f"{bucket}/{tmp_path.name}"


def write(copy: WorkingCopy, name: str, text: str = "text") -> Path:
    path = copy.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_files_that_one_pod_uploads_are_downloaded_by_another_pod(url, tmp_path):
    source, target = open_copy(url, tmp_path / "mine"), open_copy(url, tmp_path / "yours")
    write(source, "steps/cpt/a/model/weights", "w" * 100_000)
    write(source, "steps/cpt/b/other")
    source.put(source.root / "steps")
    target.download(target.root / "steps/cpt/a")
    assert (target.root / "steps/cpt/a/model/weights").read_text() == "w" * 100_000
    assert not (target.root / "steps/cpt/b").exists()


def test_downloading_a_folder_excludes_a_folder_with_the_same_prefix(url, tmp_path):
    source, target = open_copy(url, tmp_path / "mine"), open_copy(url, tmp_path / "yours")
    write(source, "steps/rl/x")
    write(source, "steps/rl2/x")
    source.put(source.root)
    target.download(target.root / "steps/rl")
    assert (target.root / "steps/rl/x").exists()
    assert not (target.root / "steps/rl2").exists()


def test_only_files_changed_locally_or_in_the_bucket_are_downloaded_again(url, tmp_path):
    source, target = (
        open_copy(url, tmp_path / "mine"),
        RecordedCopy(open_copy(url, tmp_path / "yours").root, url),
    )
    path, replica = write(source, "progress/cpt.json", "1 of 10"), target.root / "progress/cpt.json"
    source.put(path)
    target.download(target.root)
    path.write_text("2 of 10")  # S3 reports whole seconds: time and size are unchanged
    source.put(path)
    target.download(target.root)
    assert replica.read_text() == "2 of 10"
    time.sleep(3)
    target.download(target.root)
    num_downloaded = len(target.downloaded)
    assert num_downloaded >= 2
    target.download(target.root)
    assert len(target.downloaded) == num_downloaded
    replica.write_text("what a killed process left")
    target.download(target.root)
    assert replica.read_text() == "2 of 10"


def test_uploaded_files_are_not_downloaded_again(url, tmp_path):
    copy = RecordedCopy(open_copy(url, tmp_path / "mine").root, url)
    copy.put(write(copy, "weights", "w" * 2_000_000))
    copy.download(copy.root)
    assert copy.downloaded == []


def test_only_files_that_match_the_pattern_are_downloaded(url, tmp_path):
    source, target = open_copy(url, tmp_path / "mine"), open_copy(url, tmp_path / "yours")
    write(source, "steps/cpt/a/receipt.json")
    write(source, "steps/cpt/a/model/config.json")
    source.put(source.root)
    target.download(target.root, only=re.compile(r"steps/[^/]+/[^/]+/[^/]+\.json"))
    paths = [path.relative_to(target.root).as_posix() for path in target.root.rglob("*.json")]
    assert paths == ["steps/cpt/a/receipt.json"]


def test_drafts_and_hidden_files_are_not_uploaded(url, tmp_path):
    copy = open_copy(url, tmp_path / "mine")
    for name in ("a/whole", "a/part.draft", "a/.hidden", "a/.cache/x"):
        write(copy, name)
    copy.put(copy.root)
    assert open_folder(url).names("") == ["a/whole"]


class RecordedCopy(WorkingCopy):
    """Records the names of uploaded and downloaded files, in their order."""

    def __init__(self, root: Path, url: str) -> None:
        super().__init__(root, url)
        self.uploaded: list[str] = []
        self.downloaded: list[str] = []

    def _put(self, name: str) -> None:
        super()._put(name)
        self.uploaded.append(name)

    def _download(self, name: str, info) -> None:
        super()._download(name, info)
        self.downloaded.append(name)


def test_receipts_and_manifests_are_uploaded_last_and_manifests_deleted_first(url, tmp_path):
    copy = RecordedCopy(open_copy(url, tmp_path / "mine").root, url)
    for name in ("a/receipt.json", "a/b/manifest.json", "a/b/x", "a/z"):
        write(copy, name)
    copy.put(copy.root)
    assert {"a/receipt.json", "a/b/manifest.json"} == set(copy.uploaded[-2:])
    deletions: list[str] = []
    copy._system = RecordedDeletions(copy._system, deletions)
    for name in ("a/b/manifest.json", "a/b/x"):
        (copy.root / name).unlink()
    copy.prune(copy.root / "a")
    assert [name.rpartition("/")[2] for name in deletions] == ["manifest.json", "x"]
    assert open_folder(url).names("") == ["a/receipt.json", "a/z"]


class RecordedDeletions:
    """A driver of buckets that records deletions."""

    def __init__(self, system, deletions):
        self._system = system
        self._gone = deletions

    def __getattr__(self, name):
        return getattr(self._system, name)

    def rm_file(self, path):
        self._gone.append(path)
        self._system.rm_file(path)


def test_an_unchanged_file_is_not_uploaded_again(url, tmp_path):
    copy = RecordedCopy(open_copy(url, tmp_path / "mine").root, url)
    path = write(copy, "a")
    copy.put(path)
    open_folder(url).remove("a")
    copy.put(path)
    assert not open_folder(url).has("a")
    path.write_text("changed")
    copy.put(path)
    assert open_folder(url).read("a") == b"changed"


def test_an_object_name_outside_the_working_copy_is_refused(tmp_path):
    memory = fsspec.filesystem("memory")
    memory.store["/hostile/a/../../../escaped"] = memory.open("/x", "wb")
    copy = open_copy("memory://hostile", tmp_path / "mine")
    with pytest.raises(StoreError, match="has an object"):
        copy.download(copy.root)


@pytest.mark.usefixtures("bucket")
def test_uploading_to_a_missing_bucket_raises_a_store_error(tmp_path):
    copy = open_copy("s3://nobody-has-this/store", tmp_path / "mine")
    with pytest.raises(StoreError, match="s3://nobody-has-this/store failed"):
        copy.put(write(copy, "a"))


def test_downloaded_files_keep_the_modification_time_of_their_objects(url, tmp_path):
    source, target = open_copy(url, tmp_path / "mine"), open_copy(url, tmp_path / "yours")
    for name in ("first", "second"):
        source.put(write(source, f"a/{name}"))
        time.sleep(1.1)  # S3 reports whole seconds
    target.download(target.root)
    first, second = (target.root / "a" / name for name in ("first", "second"))
    assert 1 <= second.stat().st_mtime - first.stat().st_mtime < 10
    assert abs(time.time() - second.stat().st_mtime) < 60


def test_a_folder_whose_origin_does_not_match_its_name_is_no_working_copy(tmp_path):
    for origin in ("hello", "memory://elsewhere"):
        (tmp_path / ".origin").write_text(origin)
        assert copy_of(tmp_path / "store/steps") is None


def test_a_working_copy_owned_by_another_user_is_refused(tmp_path):
    root = open_copy("memory://bucket", tmp_path).root
    os.chown(root, 65532, 65532)
    with pytest.raises(InputError, match="belongs to another user; set AGENTWORLD_SCRATCH"):
        open_copy("memory://bucket", tmp_path)


def test_addresses_and_local_paths_are_converted_into_each_other(url, tmp_path):
    copy = open_copy(url + "/", tmp_path / "mine")
    path = copy.root / "steps/cpt/a"
    assert copy.to_path(f"{url}/steps/cpt/a") == str(path)
    assert copy.to_address(str(path)) == address_of(str(path)) == f"{url}/steps/cpt/a"
    assert copy.to_path(url) == str(copy.root)
    assert copy.to_address(str(copy.root)) == url
    for value in ("demo", f"{url}2/steps", "/etc/recipe.yaml"):
        assert copy.to_path(value) == copy.to_address(value) == address_of(value) == value
    assert copy_of(path) is copy_of(copy.root)
    assert copy_of(tmp_path) is None


def test_two_processes_of_one_machine_share_a_copy(url, tmp_path):
    copy = open_copy(url, tmp_path / "mine")
    for number in range(20):
        write(copy, f"steps/a/{number}", "x" * 10_000)
    copy.put(copy.root)
    scratch = tmp_path / "ours"
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        sizes = pool.starmap(_download_size, [(url, scratch)] * 4)
    assert sizes == [20 * 10_000] * 4


def _download_size(url: str, scratch: Path) -> int:
    copy = open_copy(url, scratch)
    copy.download(copy.root / "steps")
    return sum(path.stat().st_size for path in (copy.root / "steps/a").iterdir())
