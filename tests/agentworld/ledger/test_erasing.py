"""Retention erases texts, except those that other episodes use."""

import threading

import pytest

from agentworld.errors import Conflict, StoreError
from agentworld.ledger import Ledger
from agentworld.ledger.texts import Texts
from agentworld.records.episode import text_digest
from agentworld.storage.objects import ObjectStore
from make.ledger import OPENING, end, open_episode, taken


@pytest.mark.parametrize("times", [1, 3_000], ids=["in rows", "in the object store"])
def test_an_erased_episode_still_verifies(url, tmp_path, times):
    ledger = Ledger(url, ObjectStore(str(tmp_path / "objects")))
    episode = open_episode(ledger, initial_state="secret" * times)
    other = open_episode(ledger)
    ledger.write([*taken(episode, "secret" * times, "more"), *taken(other, "secret" * times)])
    ledger.write([end(ledger.episode(episode.id), 2)])
    ledger.erase_texts(episode.id)
    erased_episode = ledger.episode(episode.id)
    assert erased_episode.opening is None
    assert [(step.action, step.observation) for step in erased_episode.steps] == [(None, None)] * 2
    assert erased_episode.intact
    assert ledger.episode(other.id).steps[0].observation == "secret" * times
    assert len([path for path in (tmp_path / "objects").rglob("*") if path.is_file()]) == (
        times > 1
    )
    ledger.close()


def test_a_lost_long_text_is_not_treated_as_erased(url, tmp_path):
    objects = ObjectStore(str(tmp_path / "objects"))
    ledger, ledger_without_objects = Ledger(url, objects), Ledger(url)
    episode = open_episode(ledger)
    ledger.write(taken(episode, "long" * 3_000))
    with pytest.raises(StoreError, match="is missing and was not erased"):
        ledger_without_objects.episode(episode.id)
    objects.erase(text_digest("long" * 3_000))
    with pytest.raises(StoreError, match="is missing and was not erased"):
        ledger.episode(episode.id)
    ledger.close()
    ledger_without_objects.close()


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
    presence = []
    for episode in episodes:
        ledger.erase_texts(episode.id)
        presence.append(objects.has(text_digest("long" * 3_000)))
    assert presence == [True, True, False]
    ledger.close()


def test_an_erasure_keeps_a_runs_manifest_and_a_report_that_moved_an_alias(url, tmp_path):
    objects = ObjectStore(str(tmp_path / "objects"))
    ledger = Ledger(url, objects)
    manifest, report = (objects.put(text.encode() * 3_000) for text in ("manifest", "report"))
    ledger.aliases.set("world", manifest, "ada", report=report)
    run = ledger.open_run(OPENING, manifest).id
    episode = open_episode(ledger, run, manifest, initial_state="secret" * 3_000)
    ledger.write(taken(episode, "manifest" * 3_000, "report" * 3_000))
    ledger.write([end(ledger.episode(episode.id), 2)])
    ledger.erase_texts(episode.id)
    assert objects.digests() == sorted([manifest, report])
    assert ledger.episode(episode.id).steps[0].observation is None
    ledger.close()


class FailingStore(ObjectStore):
    """An object store whose second erasure fails."""

    num_erased = 0

    def erase(self, digest):
        self.num_erased += 1
        if self.num_erased == 2:
            raise StoreError("the bucket is gone")
        super().erase(digest)


def test_a_repeated_erasure_completes_an_interrupted_erasure(url, tmp_path):
    ledger = Ledger(url, FailingStore(str(tmp_path / "objects")))
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


class InterruptedStore(ObjectStore):
    """Calls a function once, right after a `put` or a `has`."""

    after = "put"
    then = staticmethod(lambda: None)

    def _interrupted(self, method):
        if method == self.after:
            action, self.then = self.then, lambda: None
            action()

    def put(self, data):
        digest = super().put(data)
        self._interrupted("put")
        return digest

    def has(self, digest):
        is_present = super().has(digest)
        self._interrupted("has")
        return is_present


@pytest.mark.waits
@pytest.mark.parametrize("method", ["put", "has"])
def test_an_erasure_keeps_a_text_that_another_episode_writes_concurrently(url, tmp_path, method):
    """The erasure begins before the row with the text is written, or before it is committed."""
    objects = InterruptedStore(str(tmp_path / "objects"))
    ledger, eraser = Ledger(url, objects), Ledger(url, ObjectStore(str(tmp_path / "objects")))
    erased_episode, other = open_episode(ledger), open_episode(ledger)
    ledger.write(taken(erased_episode, "long" * 3_000))
    ledger.write([end(ledger.episode(erased_episode.id), 1)])
    thread = threading.Thread(target=eraser.erase_texts, args=(erased_episode.id,))

    def erase():
        thread.start()
        thread.join(0.5)  # the erasure may have to wait for the write

    objects.after, objects.then = method, erase
    ledger.write(taken(other, "long" * 3_000))
    thread.join()
    assert ledger.episode(erased_episode.id).steps[0].observation is None
    assert ledger.episode(other.id).steps[0].observation == "long" * 3_000
    ledger.close()
    eraser.close()
