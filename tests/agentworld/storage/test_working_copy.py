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
    mine, yours = open_copy(url, tmp_path / "mine"), open_copy(url, tmp_path / "yours")
    write(mine, "steps/cpt/a/model/weights", "w" * 100_000)
    write(mine, "steps/cpt/b/other")
    mine.put(mine.root / "steps")
    yours.download(yours.root / "steps/cpt/a")
    assert (yours.root / "steps/cpt/a/model/weights").read_text() == "w" * 100_000
    assert not (yours.root / "steps/cpt/b").exists()


def test_downloading_a_folder_excludes_a_folder_with_the_same_prefix(url, tmp_path):
    mine, yours = open_copy(url, tmp_path / "mine"), open_copy(url, tmp_path / "yours")
    write(mine, "steps/rl/x")
    write(mine, "steps/rl2/x")
    mine.put(mine.root)
    yours.download(yours.root / "steps/rl")
    assert (yours.root / "steps/rl/x").exists()
    assert not (yours.root / "steps/rl2").exists()


def test_only_files_changed_locally_or_in_the_bucket_are_downloaded_again(url, tmp_path):
    mine, yours = (
        open_copy(url, tmp_path / "mine"),
        RecordedCopy(open_copy(url, tmp_path / "yours").root, url),
    )
    path, theirs = write(mine, "progress/cpt.json", "1 of 10"), yours.root / "progress/cpt.json"
    mine.put(path)
    yours.download(yours.root)
    path.write_text("2 of 10")  # S3 tells whole seconds: it is as old as the first, and as large
    mine.put(path)
    yours.download(yours.root)
    assert theirs.read_text() == "2 of 10"
    time.sleep(3)
    yours.download(yours.root)
    num_downloaded = len(yours.downloaded)
    assert num_downloaded >= 2
    yours.download(yours.root)
    assert len(yours.downloaded) == num_downloaded
    theirs.write_text("what a killed process left")
    yours.download(yours.root)
    assert theirs.read_text() == "2 of 10"


def test_uploaded_files_are_not_downloaded_again(url, tmp_path):
    mine = RecordedCopy(open_copy(url, tmp_path / "mine").root, url)
    mine.put(write(mine, "weights", "w" * 2_000_000))
    mine.download(mine.root)
    assert mine.downloaded == []


def test_only_files_that_match_the_pattern_are_downloaded(url, tmp_path):
    mine, yours = open_copy(url, tmp_path / "mine"), open_copy(url, tmp_path / "yours")
    write(mine, "steps/cpt/a/receipt.json")
    write(mine, "steps/cpt/a/model/config.json")
    mine.put(mine.root)
    yours.download(yours.root, only=re.compile(r"steps/[^/]+/[^/]+/[^/]+\.json"))
    found = [path.relative_to(yours.root).as_posix() for path in yours.root.rglob("*.json")]
    assert found == ["steps/cpt/a/receipt.json"]


def test_drafts_and_hidden_files_are_not_uploaded(url, tmp_path):
    mine = open_copy(url, tmp_path / "mine")
    for name in ("a/whole", "a/part.draft", "a/.hidden", "a/.cache/x"):
        write(mine, name)
    mine.put(mine.root)
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
    mine = RecordedCopy(open_copy(url, tmp_path / "mine").root, url)
    for name in ("a/receipt.json", "a/b/manifest.json", "a/b/x", "a/z"):
        write(mine, name)
    mine.put(mine.root)
    assert {"a/receipt.json", "a/b/manifest.json"} == set(mine.uploaded[-2:])
    gone: list[str] = []
    mine._system = Removes(mine._system, gone)
    for name in ("a/b/manifest.json", "a/b/x"):
        (mine.root / name).unlink()
    mine.prune(mine.root / "a")
    assert [name.rpartition("/")[2] for name in gone] == ["manifest.json", "x"]
    assert open_folder(url).names("") == ["a/receipt.json", "a/z"]


class Removes:
    """A driver of buckets that records deletions."""

    def __init__(self, system, gone):
        self._system = system
        self._gone = gone

    def __getattr__(self, name):
        return getattr(self._system, name)

    def rm_file(self, path):
        self._gone.append(path)
        self._system.rm_file(path)


def test_an_unchanged_file_is_not_uploaded_again(url, tmp_path):
    mine = RecordedCopy(open_copy(url, tmp_path / "mine").root, url)
    path = write(mine, "a")
    mine.put(path)
    open_folder(url).remove("a")
    mine.put(path)
    assert not open_folder(url).has("a")
    path.write_text("changed")
    mine.put(path)
    assert open_folder(url).read("a") == b"changed"


def test_an_object_name_outside_the_working_copy_is_refused(tmp_path):
    memory = fsspec.filesystem("memory")
    memory.store["/hostile/a/../../../escaped"] = memory.open("/x", "wb")
    mine = open_copy("memory://hostile", tmp_path / "mine")
    with pytest.raises(StoreError, match="has an object"):
        mine.download(mine.root)


@pytest.mark.usefixtures("bucket")
def test_uploading_to_a_missing_bucket_raises_a_store_error(tmp_path):
    mine = open_copy("s3://nobody-has-this/store", tmp_path / "mine")
    with pytest.raises(StoreError, match="s3://nobody-has-this/store failed"):
        mine.put(write(mine, "a"))


def test_downloaded_files_keep_the_modification_time_of_their_objects(url, tmp_path):
    mine, yours = open_copy(url, tmp_path / "mine"), open_copy(url, tmp_path / "yours")
    for name in ("first", "second"):
        mine.put(write(mine, f"a/{name}"))
        time.sleep(1.1)  # S3 tells whole seconds
    yours.download(yours.root)
    first, second = (yours.root / "a" / name for name in ("first", "second"))
    assert 1 <= second.stat().st_mtime - first.stat().st_mtime < 10
    assert abs(time.time() - second.stat().st_mtime) < 60


def test_a_folder_whose_origin_does_not_match_its_name_is_no_working_copy(tmp_path):
    for words in ("hello", "memory://elsewhere"):
        (tmp_path / ".origin").write_text(words)
        assert copy_of(tmp_path / "store/steps") is None


def test_a_working_copy_owned_by_another_user_is_refused(tmp_path):
    root = open_copy("memory://bucket", tmp_path).root
    os.chown(root, 65532, 65532)
    with pytest.raises(InputError, match="belongs to another user; set AGENTWORLD_SCRATCH"):
        open_copy("memory://bucket", tmp_path)


def test_addresses_and_local_paths_are_converted_into_each_other(url, tmp_path):
    mine = open_copy(url + "/", tmp_path / "mine")
    path = mine.root / "steps/cpt/a"
    assert mine.to_path(f"{url}/steps/cpt/a") == str(path)
    assert mine.to_address(str(path)) == address_of(str(path)) == f"{url}/steps/cpt/a"
    assert mine.to_path(url) == str(mine.root)
    assert mine.to_address(str(mine.root)) == url
    for word in ("demo", f"{url}2/steps", "/etc/recipe.yaml"):
        assert mine.to_path(word) == mine.to_address(word) == address_of(word) == word
    assert copy_of(path) is copy_of(mine.root)
    assert copy_of(tmp_path) is None


def test_two_processes_of_one_machine_share_a_copy(url, tmp_path):
    mine = open_copy(url, tmp_path / "mine")
    for number in range(20):
        write(mine, f"steps/a/{number}", "x" * 10_000)
    mine.put(mine.root)
    ours = tmp_path / "ours"
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        told = pool.starmap(_brought, [(url, ours)] * 4)
    assert told == [20 * 10_000] * 4


def _brought(url: str, scratch: Path) -> int:
    mine = open_copy(url, scratch)
    mine.download(mine.root / "steps")
    return sum(path.stat().st_size for path in (mine.root / "steps/a").iterdir())
