"""An undeclared erasure is distinguished from retention's."""

from collections import Counter
from datetime import UTC, datetime
from functools import partial

import pytest

from agentworld.audit.checks.ledger import verify_ledger
from agentworld.audit.checks.run import verify_run
from agentworld.records.statements.erasure import Erasure
from agentworld.records.statements.genesis import GENESIS
from agentworld.signing.keys import ensure_signer, load_trusted, rotate
from agentworld.statements.signer import StatementSigner
from agentworld.storage.objects import WriteOnce
from make.ledger import OPENING, SIMULATOR

pytestmark = pytest.mark.compute


def statement_signer_of(scene, store=None) -> StatementSigner:
    keys = scene.folder / "keys"
    signer, trusted = partial(ensure_signer, keys), partial(load_trusted, keys)
    mirror = store or scene.mirror
    return StatementSigner(scene.ledger, signer, mirror, trusted=trusted, step_keys=dict)


def erase(scene, episode, store=None):
    with statement_signer_of(scene, store).declaring("erasure", episode) as declare:
        scene.ledger.erase_texts(episode, "ada", declare)


@pytest.fixture
def erased_scene(scene):
    """The scene with `first` erased, and the erasure declared."""
    erase(scene, "first")
    return scene


def test_erasures_declared_before_and_after_a_key_rotation_verify(erased_scene):
    rotate(erased_scene.folder / "keys")
    erased_scene.play("third", "d")
    erased_scene.seal()
    erase(erased_scene, "third")
    assert (erased_scene.verify().grade, erased_scene.verify().problems) == ("verified", ())
    assert [erased_scene.verify_episode(name).erased for name in ("first", "third")] == [True, True]


def test_an_undeclared_erasure_is_reported(erased_scene):
    key = "(SELECT key FROM episodes WHERE id = 'second')"
    erased_scene.change(
        "UPDATE episodes SET erased = 1, opening = NULL WHERE id = 'second'",
        f"UPDATE steps SET action = NULL, observation = NULL WHERE episode = {key}",
    )
    problem = "episode second is erased without a declaration"
    assert problem in erased_scene.verify().problems
    assert problem in erased_scene.verify_episode("second").problems
    assert erased_scene.verify_episode("first").grade == "verified"


def test_an_episode_marked_erased_that_still_has_texts_is_garbled(erased_scene):
    erased_scene.change("UPDATE episodes SET erased = 1 WHERE id = 'second'")
    assert [
        problem
        for problem in erased_scene.verify().problems
        if "episode second is garbled" in problem
    ]


def test_missing_texts_of_an_episode_not_marked_erased_are_reported(erased_scene):
    erased_scene.change("UPDATE episodes SET erased = 0 WHERE id = 'first'")
    assert any(
        "is missing and was not erased" in problem for problem in erased_scene.verify().problems
    )


def test_restored_texts_of_an_erased_episode_are_reported(scene):
    original = scene.ledger.episode("first")
    erase(scene, "first")
    opening = original.opening.text.encode().hex()
    scene.change(f"UPDATE episodes SET erased = 0, opening = x'{opening}' WHERE id = 'first'")
    for step in original.steps:
        texts = step.action.encode().hex(), step.observation.encode().hex()
        scene.change(
            f"UPDATE steps SET action = x'{texts[0]}', observation = x'{texts[1]}'"
            f" WHERE episode = 1 AND number = {step.number}"
        )
    assert scene.ledger.episode("first") == original
    assert "episode first was erased, but its texts are present" in scene.verify().problems


def test_the_genesis_covers_only_undeclared_erasures_from_before_its_signing(scene):
    scene.ledger.erase_texts("first")
    assert scene.verify().problems == ()
    statement_signer_of(scene).copy_missing()
    assert scene.verify().problems == ()
    scene.play("third", "d")
    scene.seal()
    scene.ledger.erase_texts("third")
    assert scene.verify().problems == ("episode third is erased without a declaration",)
    erase(scene, "third")
    assert scene.verify().problems == ()


class BusyLedger:
    """A ledger in which an episode is erased after a number of reads."""

    def __init__(self, scene, num_looks):
        self.scene = scene
        self.left = num_looks

    @property
    def attestations(self):
        return CountedReads(self, self.scene.ledger.attestations)

    @property
    def logs(self):
        return CountedReads(self, self.scene.ledger.logs)

    @property
    def aliases(self):
        return self.scene.ledger.aliases

    @property
    def signing_keys(self):
        return self.scene.ledger.signing_keys

    def __getattr__(self, name):
        return getattr(CountedReads(self, self.scene.ledger), name)

    def look(self):
        self.left -= 1
        if self.left == 0:
            erase(self.scene, "first")


class CountedReads:
    def __init__(self, busy, target):
        self.busy = busy
        self.of = target

    def __getattr__(self, name):
        def read(*arguments, **keywords):
            result = getattr(self.of, name)(*arguments, **keywords)
            self.busy.look()
            return result

        return read


@pytest.mark.parametrize("num_looks", range(1, 15))
def test_an_episode_erased_during_the_audit_has_no_problems(scene, num_looks):
    statement_signer_of(scene).copy_missing()
    evidence = scene.evidence._replace(at=datetime.now(UTC))  # before the erasure is declared
    assert verify_run(scene.run, BusyLedger(scene, num_looks), evidence).problems == ()
    assert scene.verify().problems == ()


@pytest.mark.parametrize("has_genesis", [True, False])
@pytest.mark.parametrize("num_looks", [1, 2, 4, 6, 8, 12, 16])
def test_an_erasure_or_genesis_during_a_ledger_audit_is_no_problem(scene, num_looks, has_genesis):
    scene.ledger.open_run(OPENING, SIMULATOR)
    scene.seal()
    if has_genesis:
        statement_signer_of(scene).copy_missing()
    assert verify_ledger(BusyLedger(scene, num_looks), scene.evidence).problems == ()


class CountingMirror(WriteOnce):
    """An evidence mirror that counts reads of each name, and listings."""

    def __init__(self, url):
        super().__init__(url)
        self.read = Counter()

    def get(self, name):
        self.read[name] += 1
        return super().get(name)

    def names(self, prefix=""):
        self.read[prefix] += 1
        return super().names(prefix)


def test_the_number_of_genesis_reads_does_not_grow_with_the_number_of_runs(scene):
    scene.ledger.erase_texts("first")
    statement_signer_of(scene).copy_missing()

    def num_reads():
        mirror = CountingMirror(str(scene.folder / "mirror"))
        verification = verify_ledger(scene.ledger, scene.evidence._replace(mirror=mirror))
        assert verification.problems == ()
        return mirror.read[GENESIS]

    num_before = num_reads()
    for _ in range(5):
        scene.ledger.open_run(OPENING, SIMULATOR)
    scene.seal()
    assert num_reads() == num_before


def test_each_audit_reads_the_declarations_again(scene):
    evidence = scene.evidence
    scene.ledger.erase_texts("first")
    assert verify_ledger(scene.ledger, evidence).problems == ()
    statement_signer_of(scene).copy_missing()
    scene.play("third", "d")
    scene.seal()
    scene.ledger.erase_texts("third")
    (problem,) = verify_ledger(scene.ledger, evidence).problems
    assert problem == f"run {scene.run}: episode third is erased without a declaration"


def test_copying_an_erasure_to_the_mirror_does_not_list_other_erasures(erased_scene):
    mirror = CountingMirror(str(erased_scene.folder / "mirror"))
    erased_scene.play("third", "d")
    erased_scene.seal()
    erase(erased_scene, "third", mirror)
    assert mirror.read[f"{Erasure.folder}/{erased_scene.run}/"] == 0
    assert len(erased_scene.mirror.names(f"{Erasure.folder}/{erased_scene.run}/")) == 2
