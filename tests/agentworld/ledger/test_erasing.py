"""Retention erases texts, except those that other episodes use."""

import threading

import pytest

from agentworld.errors import Conflict, StoreError
from agentworld.ledger import Ledger
from agentworld.ledger.texts import Texts
from agentworld.records.episode import text_digest
from agentworld.storage.objects import ObjectStore
from make.ledger import end, open_episode, taken


@pytest.mark.parametrize("times", [1, 3_000], ids=["in rows", "in the object store"])
def test_an_erased_episode_still_verifies(url, tmp_path, times):
    ledger = Ledger(url, ObjectStore(str(tmp_path / "objects")))
    episode = open_episode(ledger, initial_state="secret" * times)
    other = open_episode(ledger)
    ledger.write([*taken(episode, "secret" * times, "more"), *taken(other, "secret" * times)])
    ledger.write([end(ledger.episode(episode.id), 2)])
    ledger.erase_texts(episode.id)
    found = ledger.episode(episode.id)
    assert found.opening is None
    assert [(step.action, step.observation) for step in found.steps] == [(None, None)] * 2
    assert found.intact
    assert ledger.episode(other.id).steps[0].observation == "secret" * times
    assert len([path for path in (tmp_path / "objects").rglob("*") if path.is_file()]) == (
        times > 1
    )
    ledger.close()


def test_a_lost_long_text_is_not_treated_as_erased(url, tmp_path):
    objects = ObjectStore(str(tmp_path / "objects"))
    ledger, blind = Ledger(url, objects), Ledger(url)
    episode = open_episode(ledger)
    ledger.write(taken(episode, "long" * 3_000))
    with pytest.raises(StoreError, match="is missing and was not erased"):
        blind.episode(episode.id)
    objects.erase(text_digest("long" * 3_000))
    with pytest.raises(StoreError, match="is missing and was not erased"):
        ledger.episode(episode.id)
    ledger.close()
    blind.close()


def test_a_long_text_with_a_changed_digest_is_reported_as_missing(tmp_path):
    texts = Texts(ObjectStore(str(tmp_path / "objects")))
    with pytest.raises(StoreError, match="the text sha256:< is missing and was not erased"):
        texts.read(None, "sha256:<")


def test_erasing_the_last_episode_with_a_long_text_deletes_the_text(url, tmp_path):
    objects = ObjectStore(str(tmp_path / "objects"))
    ledger = Ledger(url, objects)
    episodes = [open_episode(ledger) for _ in range(3)]
    for episode in episodes:
        ledger.write(taken(episode, "long" * 3_000))
        ledger.write([end(ledger.episode(episode.id), 1)])
    left = []
    for episode in episodes:
        ledger.erase_texts(episode.id)
        left.append(objects.has(text_digest("long" * 3_000)))
    assert left == [True, True, False]
    ledger.close()


class Failing(ObjectStore):
    """A bucket that takes away one object and then fails."""

    num_erased = 0

    def erase(self, digest):
        self.num_erased += 1
        if self.num_erased == 2:
            raise StoreError("the bucket is gone")
        super().erase(digest)


def test_a_repeated_erasure_completes_an_interrupted_erasure(url, tmp_path):
    ledger = Ledger(url, Failing(str(tmp_path / "objects")))
    episode = open_episode(ledger, initial_state="tree" * 3_000)
    ledger.write(taken(episode, "long" * 3_000, "other" * 3_000))
    ledger.write([end(ledger.episode(episode.id), 2)])
    with pytest.raises(StoreError, match="is gone"):
        ledger.erase_texts(episode.id)
    assert ledger.episode(episode.id).intact
    ledger.erase_texts(episode.id)
    assert not [path for path in (tmp_path / "objects").rglob("*") if path.is_file()]
    ledger.close()


def test_an_erasure_with_the_wrong_object_store_is_refused(url, tmp_path):
    ledger = Ledger(url, ObjectStore(str(tmp_path / "objects")))
    other = Ledger(url, ObjectStore(str(tmp_path / "other")))
    episode = open_episode(ledger)
    ledger.write(taken(episode, "long" * 3_000))
    ledger.write([end(ledger.episode(episode.id), 1)])
    with pytest.raises(StoreError, match="restore the object store, or name it"):
        other.erase_texts(episode.id)
    assert ledger.episode(episode.id).steps[0].observation == "long" * 3_000
    ledger.close()
    other.close()


def test_an_open_episode_is_not_erased(ledger):
    episode = open_episode(ledger)
    with pytest.raises(Conflict, match="is open; close it"):
        ledger.erase_texts(episode.id)
    assert ledger.episode(episode.id).opening == episode.opening


class Interrupted(ObjectStore):
    """Does something else once, right after a `put` or a `has`."""

    after = "put"
    then = staticmethod(lambda: None)

    def _interrupted(self, call):
        if call == self.after:
            then, self.then = self.then, lambda: None
            then()

    def put(self, data):
        digest = super().put(data)
        self._interrupted("put")
        return digest

    def has(self, digest):
        found = super().has(digest)
        self._interrupted("has")
        return found


@pytest.mark.waits
@pytest.mark.parametrize("after", ["put", "has"])
def test_an_erasure_keeps_a_text_that_another_episode_writes_concurrently(url, tmp_path, after):
    """Before the row that names it is written, and before that row is committed."""
    objects = Interrupted(str(tmp_path / "objects"))
    ledger, eraser = Ledger(url, objects), Ledger(url, ObjectStore(str(tmp_path / "objects")))
    erased, other = open_episode(ledger), open_episode(ledger)
    ledger.write(taken(erased, "long" * 3_000))
    ledger.write([end(ledger.episode(erased.id), 1)])
    thread = threading.Thread(target=eraser.erase_texts, args=(erased.id,))

    def erase():
        thread.start()
        thread.join(0.5)  # where it has to wait for us, it does so

    objects.after, objects.then = after, erase
    ledger.write(taken(other, "long" * 3_000))
    thread.join()
    assert ledger.episode(erased.id).steps[0].observation is None
    assert ledger.episode(other.id).steps[0].observation == "long" * 3_000
    ledger.close()
    eraser.close()
