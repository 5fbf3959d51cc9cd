import errno
import os
import shutil
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentworld.errors import Conflict, InputError, NotFound, StoreError
from agentworld.records.base import digest_bytes
from agentworld.storage.objects import ObjectStore, WriteOnce
from make import records
from make.examples import examples
from waiting import DEADLINE

S3 = pytest.param("s3", marks=pytest.mark.waits)
KINDS = ["disk", "memory", S3]

PUTS_FOR_EVER = """
import os, sys, threading
from agentworld.storage.objects import ObjectStore
objects = ObjectStore(sys.argv[1])
def put():
    while True:
        digest = objects.put(os.urandom(16) * 500_000)
        os.write(1, digest.encode() + b"\\n")
for _ in range(4):
    threading.Thread(target=put).start()
"""

FILLS_THE_DISK = """
import os, sys
from agentworld.errors import StoreError
from agentworld.storage.objects import ObjectStore
objects, kept = ObjectStore(sys.argv[1]), []
try:
    while True:
        kept.append(objects.put(os.urandom(50_000)))
except StoreError as error:
    print(error)
files = [name for _, _, names in os.walk(sys.argv[1]) for name in names]
print(len(kept), len(files), all(map(objects.get, kept)))
"""


@pytest.fixture(scope="module", params=KINDS)
def new_url(request, tmp_path_factory):
    """A function that returns addresses of empty stores of one kind."""
    start = {
        "disk": lambda: str(tmp_path_factory.mktemp("stores")),
        "memory": lambda: "memory:/",
        "s3": lambda: request.getfixturevalue("bucket"),
    }[request.param]()
    return lambda: f"{start}/{uuid.uuid4()}"


@pytest.fixture
def url(new_url):
    return new_url()


@pytest.fixture(scope="module")
def shared_store(new_url):
    """One store for all examples of a property."""
    return ObjectStore(new_url())


def object_path(tmp_path, digest):
    return tmp_path / "store" / digest[7:9] / digest[7:]


@examples(20)
@example(b"\x00\xff\r\n\x00")
@given(st.binary())
def test_any_bytes_are_returned_by_their_digest(shared_store, data):
    digest = shared_store.put(data)
    assert digest == digest_bytes(data)
    assert shared_store.has(digest)
    assert shared_store.get(digest) == data


def test_the_same_bytes_are_stored_once(tmp_path):
    objects = ObjectStore(str(tmp_path / "store"))
    digest = objects.put(b"a")
    assert objects.put(b"a") == digest
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files == [object_path(tmp_path, digest)]


def test_a_file_is_synced_before_its_rename_and_its_folder_after(tmp_path, monkeypatch):
    objects, digest = ObjectStore(str(tmp_path / "store")), digest_bytes(b"a")
    file, events, fsync = object_path(tmp_path, digest), [], os.fsync

    def record_fsync(handle):
        path = Path(f"/proc/self/fd/{handle}").readlink()
        events.append((path.suffix or path.name, file.exists()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", record_fsync)
    objects.put(b"a")
    folders = [(tmp_path.name, False), ("store", False)]
    assert events == [*folders, (".draft", False), (file.parent.name, True)]


def test_another_store_of_the_same_address_returns_a_stored_object(url):
    assert ObjectStore(url).get(ObjectStore(url).put(b"a")) == b"a"


@pytest.mark.parametrize("start", ["", "file://"])
def test_a_path_and_its_file_url_are_one_store(tmp_path, start):
    digest = ObjectStore(str(tmp_path / "a" / "b")).put(b"a")
    assert ObjectStore(f"{start}{tmp_path}/a/b").get(digest) == b"a"


def test_a_store_lists_its_objects_and_no_other_files(url):
    objects = ObjectStore(url)
    assert objects.digests() == []
    digests = sorted(objects.put(data) for data in (b"a", b"b", b"c"))
    WriteOnce(url).put("ab/other", b"")
    WriteOnce(url).put(f"ab/{'0' * 64}", b"")
    assert objects.digests() == digests


def test_a_missing_object_is_reported(url):
    objects, digest = ObjectStore(url), records.digest("nobody")
    assert not objects.has(digest)
    with pytest.raises(NotFound, match=f"there is no object {digest}"):
        objects.get(digest)


def test_an_erased_object_is_missing_and_can_be_put_again(url):
    objects = ObjectStore(url)
    digest, other = objects.put(b"a"), objects.put(b"b")
    objects.erase(digest)
    objects.erase(digest)
    assert (objects.has(digest), objects.get(other)) == (False, b"b")
    assert objects.get(objects.put(b"a")) == b"a"


@pytest.mark.parametrize("damage", [b"", b"b", b"aa"])
def test_a_damaged_object_is_reported_and_repaired_by_a_new_put(tmp_path, damage):
    objects = ObjectStore(str(tmp_path / "store"))
    digest = objects.put(b"a")
    object_path(tmp_path, digest).write_bytes(damage)
    with pytest.raises(StoreError, match=f"{digest} in .*store is damaged") as error:
        objects.get(digest)
    assert not error.value.retryable
    objects.put(b"a")
    assert objects.get(digest) == b"a"


@pytest.mark.parametrize("digest", ["", "sha256:", "../../etc/passwd", "sha256:" + "A" * 64])
def test_an_invalid_digest_is_refused(url, digest):
    objects = ObjectStore(url)
    for operation in (objects.get, objects.has, objects.erase):
        with pytest.raises(InputError, match="is not a digest"):
            operation(digest)


def test_concurrent_threads_can_put_equal_and_different_objects(url):
    objects = ObjectStore(url)
    contents = []

    def work(worker):
        for number in range(5):
            digests = [objects.put(b"shared %d" % number), objects.put(b"%d %d" % (worker, number))]
            contents.extend(map(objects.get, digests))

    threads = [threading.Thread(target=work, args=[worker]) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(contents), len(set(contents))) == (80, 45)


@pytest.mark.waits
def test_a_killed_process_leaves_only_complete_objects_and_all_that_it_reported(tmp_path):
    digests = []
    for number in range(6):
        command = [sys.executable, "-c", PUTS_FOR_EVER, tmp_path / "store"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            digests += [process.stdout.readline().strip() for _ in range(number + 1)]
            process.kill()
    objects = ObjectStore(str(tmp_path / "store"))
    assert all(map(objects.get, digests))
    stored_digests = {"sha256:" + path.name for path in (tmp_path / "store").glob("??/[!.]*")}
    assert set(digests) <= stored_digests
    assert all(map(objects.get, stored_digests))
    shutil.rmtree(tmp_path)


@pytest.mark.waits
def test_a_full_disk_is_reported_and_leaves_no_partial_object(tmp_path):
    disk = f"--dev-bind / / --size {1 << 20} --tmpfs {tmp_path}".split()
    command = ["bwrap", *disk, sys.executable, "-c", FILLS_THE_DISK, str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE)
    problem, counts = result.stdout.splitlines()
    assert f"the object store {tmp_path} failed: No space left on device; check" in problem
    num_kept, num_files, are_whole = counts.split()
    assert int(num_kept) == int(num_files) > 10
    assert are_whole == "True"


def test_a_failing_store_is_reported_by_its_address(tmp_path):
    (tmp_path / "file").touch()
    objects = ObjectStore(str(tmp_path / "file"))
    for operation in (lambda: objects.put(b"a"), lambda: objects.get(records.digest("a"))):
        with pytest.raises(StoreError, match=r"the object store .*file failed: \w") as error:
            operation()
        assert error.value.retryable


@pytest.mark.parametrize("name", ["a", "run-1/000012.json", "Run_1/a/b.c"])
def test_a_write_once_file_is_read_back_unchanged(url, name):
    files = WriteOnce(url)
    files.put(name, b"\x00")
    files.put(name, b"\x00")
    assert WriteOnce(url).get(name) == b"\x00"


def test_a_write_once_file_is_never_changed(url):
    files = WriteOnce(url)
    files.put("a", b"first")
    with pytest.raises(Conflict, match=r"a in .* holds other bytes and is written once"):
        files.put("a", b"second")
    assert files.get("a") == b"first"


def test_names_are_sorted_and_filtered_by_a_prefix(url):
    files = WriteOnce(url)
    assert files.names() == []
    for name in ("b/2", "b/10", "a", "bc/1"):
        files.put(name, b"")
    assert files.names() == ["a", "b/10", "b/2", "bc/1"]
    assert files.names("b") == ["b/10", "b/2", "bc/1"]
    assert files.names("b/") == ["b/10", "b/2"]
    assert files.names("b/1") == ["b/10"]
    assert files.names("nobody/") == []


@pytest.mark.parametrize("prefix", ["/", "../", "a/../", "a/../b", ".", "b//", "b/ ", "b\n"])
def test_a_prefix_that_no_name_can_have_lists_nothing(url, prefix):
    files = WriteOnce(url)
    files.put("b/1", b"")
    assert files.names(prefix) == []


def test_a_prefix_that_leads_out_of_the_store_reads_no_file_there(tmp_path, monkeypatch):
    files = WriteOnce(str(tmp_path / "store"))
    files.put("run/1", b"")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "1").touch()
    monkeypatch.setattr(Path, "is_file", refuse)
    assert files.names("run/../../outside/") == []


def refuse(path):
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def test_a_name_that_was_never_written_is_missing(url):
    with pytest.raises(NotFound, match="there is no a/b"):
        WriteOnce(url).get("a/b")


@pytest.mark.parametrize("name", ["", "/a", "a/", "../a", "a/../b", ".a", "a//b", "a b", "a\n"])
def test_an_invalid_name_is_refused(url, name):
    for operation in (lambda: WriteOnce(url).put(name, b""), lambda: WriteOnce(url).get(name)):
        with pytest.raises(InputError, match="is not a valid name"):
            operation()


@pytest.mark.parametrize("new_url", ["disk", S3], indirect=True)
def test_one_of_many_writers_of_a_name_succeeds_and_the_others_get_a_conflict(url):
    files = WriteOnce(url)
    outcomes = []

    def write(writer):
        try:
            files.put("run/1", b"%d" % writer)
            outcomes.append(writer)
        except Conflict:
            outcomes.append(None)

    threads = [threading.Thread(target=write, args=[writer]) for writer in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [writer for writer in outcomes if writer is not None]
    assert files.get("run/1") == b"%d" % winner
    assert files.names() == ["run/1"]


def test_the_draft_of_a_killed_writer_is_not_listed(tmp_path):
    files = WriteOnce(str(tmp_path / "store"))
    files.put("run/1", b"")
    (tmp_path / "store" / "run" / ".0.draft").touch()
    assert files.names() == ["run/1"]
