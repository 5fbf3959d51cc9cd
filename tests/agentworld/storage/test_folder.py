import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from agentworld.errors import InputError, StoreError
from agentworld.storage.folder import Bucket, open_folder
from agentworld.storage.objects import ObjectStore
from make import records


class Unreachable(MemoryFileSystem):
    """Fails like the driver of a bucket without a network."""

    protocol = "unreachable"

    def unanswered(self, *_, **__):
        raise TimeoutError(f"no answer from {self.protocol}://anna:hidden@host")

    info = cat_file = pipe_file = rm_file = unanswered


@pytest.mark.parametrize("url", ["nosuch://bucket", "a/b://c"])
def test_an_invalid_address_is_refused(url):
    with pytest.raises(InputError, match="is not the address of a store"):
        open_folder(url)


def test_the_error_for_a_missing_bucket_driver_names_its_package():
    fsspec.register_implementation("far", "nosuchpackage.Far")
    with pytest.raises(InputError, match="far://bucket needs a package .*nosuchpackage"):
        open_folder("far://bucket")


def test_an_unreachable_bucket_raises_a_store_error_without_its_password():
    fsspec.register_implementation("unreachable", Unreachable, clobber=True)
    objects, digest = ObjectStore("unreachable://anna:hidden@bucket"), records.digest("a")
    for operation in (objects.has, objects.get, objects.erase, lambda _: objects.put(b"a")):
        with pytest.raises(StoreError, match="no answer") as error:
            operation(digest)
        assert "hidden" not in str(error.value)


def test_a_folder_of_a_bucket_lists_only_its_own_files():
    folder, bucket = open_folder("memory://shared/mine"), Bucket(MemoryFileSystem(), "/shared")
    folder.write("a", b"")
    bucket.write("b", b"")
    assert (folder.names(""), bucket.names("")) == (["a"], ["b", "mine/a"])
    assert not bucket.has("mine")


@pytest.mark.parametrize("url", ["{}", "memory://{}", pytest.param("s3", marks=pytest.mark.waits)])
def test_a_file_of_any_size_is_put_and_read_in_pieces(url, tmp_path, request):
    start = request.getfixturevalue("bucket") if url == "s3" else url.format(tmp_path / "store")
    folder, source = open_folder(f"{start}/{tmp_path.name}"), tmp_path / "source"
    for data in (b"a" * (3 << 20), b"less"):
        source.write_bytes(data)
        folder.put_file("in/a", source)
        with folder.open("in/a") as file:
            assert file.read(2) + file.read() == data
    with pytest.raises(FileNotFoundError), folder.open("in/b"):
        pass
