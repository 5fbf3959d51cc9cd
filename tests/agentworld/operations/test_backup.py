import shutil
import uuid
from itertools import count
from typing import NamedTuple

import pytest

from agentworld.errors import Conflict, InputError, NotFound, StoreError
from agentworld.operations.backup import begin_backup, finish_backup
from agentworld.operations.restore_backup import newest_backup, restore_backup, verify_backup
from agentworld.records.base import digest_bytes
from agentworld.records.statements.genesis import GENESIS
from agentworld.storage.backups import BackupStore, text_path
from agentworld.storage.folder import Bucket, Disk
from agentworld.storage.lease import Lease
from agentworld.storage.objects import ObjectStore, WriteOnce

S3 = pytest.param("s3", marks=pytest.mark.waits)
COPY = "run/000000000001.dsse.json"
_LEASE_SECONDS = 0.02


class Killed(BaseException):
    """An exception that no code catches."""


class Place(NamedTuple):
    """A store with texts and signed copies, and a destination for its backups."""

    store: object
    work: object
    url: str

    @property
    def objects(self):
        return ObjectStore(str(self.store / "objects"))

    @property
    def mirror(self):
        return WriteOnce(str(self.store / "mirror"))

    @property
    def backups(self):
        return BackupStore(self.url)

    def begin(self):
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()
        begin_backup(self.url, self.store, self.work)
        (self.work / "ledger.dump").write_bytes(uuid.uuid4().bytes)

    def finish(self, keep=3):
        return finish_backup(self.url, self.store, self.work, keep)

    def back_up(self, keep=3):
        self.begin()
        return self.finish(keep)

    def verify(self, name=""):
        return verify_backup(self.url, name or newest_backup(self.url))

    def restore(self, name=""):
        return restore_backup(self.url, name or newest_backup(self.url), self.store, self.work)


@pytest.fixture(autouse=True)
def short_lease(monkeypatch):
    monkeypatch.setenv("AGENTWORLD_LEASE_SECONDS", str(_LEASE_SECONDS))


def place_at(url, folder):
    place = Place(folder / "store", folder / "work", url)
    place.objects.put(b"a text")
    place.mirror.put(COPY, b"{}")
    return place


@pytest.fixture
def place(tmp_path):
    return place_at(str(tmp_path / "backups"), tmp_path)


@pytest.mark.parametrize("kind", ["disk", "memory", S3])
def test_a_lost_store_is_restored_from_its_newest_backup(tmp_path, kind, request):
    url = {
        "disk": lambda: str(tmp_path / "backups"),
        "memory": lambda: f"memory://{uuid.uuid4()}",
        "s3": lambda: f"{request.getfixturevalue('bucket')}/{uuid.uuid4()}",
    }[kind]()
    place = place_at(url, tmp_path)
    place.back_up()
    digest = place.objects.put(b"another text")
    result = place.back_up()
    dump = (place.work / "ledger.dump").read_bytes()
    assert (result.backup.num_texts, result.backup.num_copies) == (2, 1)
    assert place.verify() == []
    shutil.rmtree(place.store)
    shutil.rmtree(place.work)
    place.work.mkdir()
    restoration = place.restore()
    assert (restoration.num_texts, restoration.num_copies, restoration.other_copies) == (2, 1, ())
    assert [path.read_bytes() for path in restoration.dumps] == [dump]
    assert place.objects.get(digest) == b"another text"
    assert place.mirror.get(COPY) == b"{}"


def test_a_dump_of_another_backup_is_refused(place):
    place.back_up()
    with pytest.raises(Conflict, match="ledger.dump is of another backup"):
        begin_backup(place.url, place.store, place.work)


def test_a_complete_backup_is_not_overwritten(place):
    place.back_up()
    (place.work / "ledger.dump").write_bytes(b"another dump")
    with pytest.raises(Conflict, match="is complete already; begin another one"):
        place.finish()
    assert place.verify() == []


def kill_after(monkeypatch, num_changes):
    """Kills the next process after this number of changes of the destination."""
    num_left = num_changes

    def limit(change):
        def method(self, name, *arguments):
            nonlocal num_left
            if name == "lease":  # renewed at any time
                return change(self, name, *arguments) if num_left else None
            if num_left:
                num_left -= 1
                return change(self, name, *arguments)
            raise Killed

        return method

    for name in ("write", "create", "put_file", "remove"):
        monkeypatch.setattr(Bucket, name, limit(getattr(Bucket, name)))


@pytest.mark.waits
def test_a_backup_killed_at_any_point_leaves_only_complete_backups(tmp_path):
    place = place_at(f"memory://{uuid.uuid4()}", tmp_path)
    place.back_up()
    for num_changes in count():
        digest = place.objects.put(f"text {num_changes}".encode())
        place.mirror.put(f"run/{num_changes + 2:012}.dsse.json", b"{}")
        with pytest.MonkeyPatch.context() as patch:
            kill_after(patch, num_changes)
            try:
                place.back_up(keep=1)
                is_killed = False
            except Killed:
                is_killed = True
        assert place.backups.names()
        for name in place.backups.names():
            assert place.verify(name) == []
        place.objects.erase(digest)
        if not is_killed:
            break
        result = place.back_up(keep=1)
        assert place.backups.names() == [result.name]
        assert place.verify() == []
        assert set(place.backups.texts.digests()) == set(place.objects.digests())
    assert num_changes >= 8


@pytest.mark.parametrize("method", ["put_file", "write", "create"])
def test_a_file_that_reads_differently_than_written_fails_the_backup(place, monkeypatch, method):
    """The methods write a dump, a text, and a signed copy."""
    original = getattr(Disk, method)

    def damage(disk, name, data):
        original(disk, name, data)
        with (disk._root / name).open("ab") as file:
            file.write(b"more")

    monkeypatch.setattr(Disk, method, damage)
    with pytest.raises(StoreError, match="damaged|differs from what was written"):
        place.back_up()
    assert place.backups.names() == []


def test_a_text_erased_after_the_dump_is_in_that_dumps_backup(place):
    digest = place.objects.put(b"erased")
    place.begin()
    place.objects.erase(digest)
    result = place.finish()
    assert text_path(digest) in place.backups.files(result.name)
    assert place.verify() == []
    place.restore()
    assert place.objects.get(digest) == b"erased"


def test_an_erased_text_is_kept_until_the_older_backups_are_removed(place):
    digest = place.objects.put(b"erased")
    place.back_up(keep=2)
    place.objects.erase(digest)
    backups = [place.back_up(keep=2)]
    assert place.backups.texts.has(digest)
    backups.append(place.back_up(keep=2))
    assert not place.backups.texts.has(digest)
    assert place.backups.names() == [backup.name for backup in backups]
    assert [place.verify(backup.name) for backup in backups] == [[], []]


def test_an_old_backup_is_removed_only_after_the_new_backup_is_complete(place, monkeypatch):
    old_backup = place.back_up(keep=1)

    def refuse(_self, _keep):
        raise Killed

    monkeypatch.setattr(BackupStore, "prune", refuse)
    with pytest.raises(Killed):
        place.back_up(keep=1)
    assert place.backups.names()[0] == old_backup.name
    assert len(place.backups.names()) == 2


@pytest.mark.parametrize("step", ["begin", "finish"])
def test_a_destination_with_backups_of_another_ledger_is_refused(place, step):
    place.mirror.put(GENESIS, b"this")
    place.back_up()
    place.begin()
    shutil.rmtree(place.store / "mirror")
    place.mirror.put(GENESIS, b"another")
    with pytest.raises(Conflict, match="has backups of another ledger; name a destination"):
        getattr(place, step)()


def test_copies_missing_from_the_mirror_stay_in_backups_and_are_reported(place):
    place.back_up()
    shutil.rmtree(place.store / "mirror")
    result = place.back_up(keep=1)
    assert result.lost_copies == (COPY,)
    assert place.verify() == []
    place.restore()
    assert place.mirror.get(COPY) == b"{}"


def test_a_copy_that_the_destination_lost_is_copied_again(place):
    place.back_up()
    find_file(place, "mirror/*/*").unlink()
    result = place.back_up()
    assert (result.backup.num_copies, result.lost_copies) == (1, ())
    assert place.verify() == []


def test_a_copy_that_neither_place_has_is_reported_and_blocks_no_backup(place):
    place.back_up()
    find_file(place, "mirror/*/*").unlink()
    shutil.rmtree(place.store / "mirror")
    assert place.back_up().lost_copies == (COPY,)
    assert place.verify() == [f"mirror/{COPY} is missing"]


def test_a_damaged_text_is_reported_and_the_other_texts_are_backed_up(place):
    digest = place.objects.put(b"whole")
    [file] = place.store.glob(f"objects/*/{digest.removeprefix('sha256:')}")
    file.write_bytes(b"other")
    result = place.back_up()
    assert result.backup.damaged == (digest,)
    assert result.backup.num_texts == 1
    assert place.verify() == []


def find_file(place, pattern):
    [file] = [path for path in (place.store.parent / "backups").glob(pattern) if path.is_file()]
    return file


def test_missing_or_damaged_backup_files_are_reported_and_not_restored(place):
    place.back_up()
    find_file(place, "objects/*/*").unlink()
    find_file(place, "mirror/*/*").write_bytes(b"[]")
    find_file(place, "backups/*/ledger.dump").write_bytes(b"less")
    digest = digest_bytes(b"a text")
    name = newest_backup(place.url)
    assert sorted(place.verify()) == [
        f"backups/{name}/ledger.dump is damaged",
        f"mirror/{COPY} is damaged",
        f"{text_path(digest)} is missing",
    ]
    with pytest.raises(StoreError, match=r"ledger\.dump in .* is damaged: .*use another backup"):
        place.restore()


def test_a_damaged_copy_is_not_restored_into_the_mirror(place):
    place.back_up()
    find_file(place, "mirror/*/*").write_bytes(b"[]")
    shutil.rmtree(place.store / "mirror")
    with pytest.raises(StoreError, match=f"the copy {COPY} in .* is damaged; use another backup"):
        place.restore()
    assert place.mirror.names() == []


def test_a_restore_repairs_damaged_texts_and_changes_no_existing_copy(place):
    place.back_up()
    [text] = [path for path in place.store.glob("objects/*/*") if path.is_file()]
    text.write_bytes(b"damaged")
    (place.store / "mirror" / COPY).write_bytes(b"changed")
    restoration = place.restore()
    assert (restoration.num_texts, restoration.num_copies) == (1, 0)
    assert restoration.other_copies == (COPY,)
    assert text.read_bytes() == b"a text"
    assert place.mirror.get(COPY) == b"changed"


@pytest.mark.parametrize("file", ["files.sha256", "manifest.json"])
def test_a_damaged_backup_manifest_or_file_list_is_a_store_error(place, file):
    place.back_up()
    find_file(place, f"backups/*/{file}").write_bytes(b"{}")
    with pytest.raises(StoreError, match=rf"{file} in .* is damaged: .*; use another backup"):
        place.verify()


def test_a_damaged_list_of_the_newest_backup_blocks_no_backup_and_removes_no_text(place, caplog):
    digest = place.objects.put(b"erased")
    damaged_backup = place.back_up()
    find_file(place, "backups/*/files.sha256").write_bytes(b"")
    place.objects.erase(digest)
    result = place.back_up()
    assert result.backup.num_copies == 1
    assert place.verify() == []
    assert place.backups.texts.has(digest)
    assert "old texts stay in" in caplog.text
    place.back_up(keep=1)
    assert damaged_backup.name not in place.backups.names()
    assert not place.backups.texts.has(digest)


def test_while_another_process_finishes_a_backup_nothing_is_written(place, monkeypatch):
    def refuse(lease):
        raise StoreError(lease._busy)

    place.begin()
    monkeypatch.setattr(Lease, "take", refuse)
    with pytest.raises(StoreError, match="another backup to .* is being finished; wait until"):
        place.finish()
    assert not list((place.store.parent / "backups").glob("backups/*"))


def test_a_backup_with_a_lost_lease_is_not_completed(place, monkeypatch):
    def lose(_lease):
        raise StoreError("lost")

    place.begin()
    monkeypatch.setattr(Lease, "check", lose)
    with pytest.raises(StoreError, match="lost"):
        place.finish()
    assert place.backups.names() == []


def test_a_backup_fails_if_another_backup_removed_one_of_its_texts(place):
    digest = place.objects.put(b"erased")
    place.begin()
    place.objects.erase(digest)
    place.backups.texts.erase(digest)
    with pytest.raises(StoreError, match=f"1 texts, such as {digest}, are gone .* begin this one"):
        place.finish()
    assert place.backups.names() == []


def test_finishing_a_backup_requires_its_beginning_and_a_valid_dump(place):
    place.work.mkdir()
    with pytest.raises(InputError, match="no backup was begun in"):
        place.finish()
    place.begin()
    (place.work / "ledger.dump").rename(place.work / "Ledger 1.dump")
    with pytest.raises(InputError, match=r"'Ledger 1\.dump' is not a dump's name"):
        place.finish()
    (place.work / "Ledger 1.dump").unlink()
    with pytest.raises(InputError, match=r"has no NAME\.dump; dump the ledger's database"):
        place.finish()


def test_the_error_for_a_missing_backup_lists_the_existing_backups(place):
    with pytest.raises(NotFound, match="has no backup; check the address"):
        newest_backup(place.url)
    result = place.back_up()
    with pytest.raises(NotFound, match=f"has no backup 'x'; its backups are {result.name}"):
        place.verify("x")
