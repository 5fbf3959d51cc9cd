import pytest

import make.agent
from agentworld.audit.checks.alias_history import agent_changes, alias_problems, in_use
from agentworld.audit.checks.alias_mirror import registry_problems
from agentworld.audit.checks.store import verify_agent, verify_everything
from agentworld.lineage.base import WorldModel
from agentworld.lineage.memory import MemoryRegistry
from make.template import copied

pytestmark = pytest.mark.compute


@pytest.fixture
def made(tmp_path):
    """In use as `production`, and as nothing else any more."""
    return copied(in_production, tmp_path)


def in_production(store):
    made = make.agent.registered(store)
    made.use()
    made.use("trial")
    made.retire("trial")
    made.registry.remove_alias(made.ref.name, "trial")
    return made


def problems(made):
    told = made.sources
    signed = alias_problems(told.ledger.aliases, told.ledger.attestations, told.evidence)
    return [*signed, *registry_problems(told)]


def used(made):
    told = made.sources
    changes = agent_changes(told.ledger.attestations, told.evidence)
    return [each.alias.partition("@")[2] for each in in_use(changes)]


def test_registry_aliases_that_match_the_signed_statements_have_no_problems(made):
    assert used(made) == ["production"]
    assert problems(made) == []


def test_agent_changes_reads_only_the_changes_of_the_given_name(made):
    other = make.agent.registered(made.store, made.registry, "other", "shell-agent-2")
    other.use()
    made.moved("stable", made.simulator.digest)
    told = made.sources
    read = [
        agent_changes(told.ledger.attestations, told.evidence, name)
        for name in ("", made.ref.name, other.ref.name, "terminal")
    ]
    assert [len(each) for each in read] == [4, 3, 1, 0]
    assert read[1] == [each for each in read[0] if each.alias.startswith("shell-agent@")]


def test_an_alias_moved_in_the_registry_is_reported(made):
    other = make.agent.registered(made.store, made.registry, "other")
    made.registry.set_alias(other.ref, "production")
    assert problems(made) == [
        "shell-agent: mirror differs in alias production: MLflow says 2, the signed statement"
        " says 1"
    ]


def test_an_alias_deleted_in_the_registry_is_reported(made):
    made.registry.remove_alias(made.ref.name, "production")
    assert problems(made) == [
        "shell-agent: mirror differs in alias production: MLflow says nothing, the signed statement"
        " says 1"
    ]


@pytest.mark.parametrize("alias", ["trial", "new"])
def test_an_unsigned_alias_in_the_registry_is_reported(made, alias):
    made.registry.set_alias(made.ref, alias)
    assert problems(made) == [
        f"shell-agent: mirror differs in alias {alias}: MLflow says 1, the signed statement says"
        " nothing"
    ]


def test_a_registry_alias_of_a_world_model_is_ignored(made, tmp_path):
    what = WorldModel(stages=(made.agent.checkpoint,), report=made.agent.artifact)
    made.registry.set_alias(made.registry.register_world_model("worlds", what, tmp_path), "best")
    assert problems(made) == []


def names(made, label):
    """The names of an alias's statements, the newest last."""
    rows = made.ledger.attestations.find("alias", subject=f"{made.ref.name}@{label}")
    return [row.name for row in rows]


def test_a_deleted_alias_statement_is_reported_from_its_mirror_copy(made):
    make.agent.lose(made, "DELETE FROM attestations WHERE name = ?", names(made, "trial")[1])
    assert problems(made)[0].startswith(
        "the statement that alias 'shell-agent@trial' meant nothing from"
    )
    assert problems(made)[0].endswith("is gone from the ledger; restore it")


@pytest.mark.parametrize(
    "change",
    [
        "simulator = 'sha256:00'",
        "at = '2020-01-01T00:00:00+00:00'",
        "envelope = (SELECT envelope FROM attestations WHERE subject LIKE '%trial')",
    ],
)
def test_a_changed_alias_statement_is_ignored_and_reported(made, change):
    (name,) = names(made, "production")
    make.agent.lose(made, f"UPDATE attestations SET {change} WHERE name = ?", name)
    assert used(made) == []
    assert "the statement of alias 'shell-agent@production' at" in problems(made)[0]
    assert "does not verify" in problems(made)[0]


@pytest.mark.parametrize(
    "change", ["version = 2", "artifact = 'sha256:00'", "run = 'x'", "reason = 'x'", "ended = 1"]
)
def test_a_changed_alias_history_row_is_reported(made, change):
    statement = f"UPDATE aliases SET {change} WHERE alias = 'shell-agent@production'"
    make.agent.lose(made, statement)
    (problem,) = problems(made)
    assert "alias 'shell-agent@production'" in problem
    assert problem in verify_everything(made.sources).problems


def test_verifying_everything_reports_alias_problems(made):
    before = verify_everything(made.sources).problems
    assert not [each for each in before if each.startswith("run ")]
    made.registry.set_alias(made.ref, "shadow")
    (problem,) = problems(made)
    assert set(verify_everything(made.sources).problems) == {*before, problem}


class Busy(MemoryRegistry):
    """Aliases that change while they are read: before and after."""

    def __init__(self):
        super().__init__()
        self.before = self.after = lambda: None

    def aliases(self):
        before, self.before = self.before, lambda: None
        before()
        found = super().aliases()
        after, self.after = self.after, lambda: None
        after()
        return found


@pytest.fixture
def busy(tmp_path):
    """Two versions, of which the first is in use as `production`."""
    made = make.agent.registered(tmp_path, Busy())
    made.use()
    return made, make.agent.registered(tmp_path, made.registry, "other")


def ended(made):
    made.retire()
    made.registry.remove_alias(made.ref.name, "production")


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    "work",
    [
        lambda _, other: other.use("shop"),
        lambda _, other: other.use(),
        lambda made, _: ended(made),
        lambda made, other: (other.use(), made.use()),
        lambda made, other: (made.use("shop"), other.use("shop")),
    ],
    ids=["first used", "moved", "ended", "moved and moved back", "first used and moved"],
)
def test_signed_alias_changes_during_the_audit_are_no_problem(busy, moment, work):
    made, other = busy
    setattr(made.registry, moment, lambda: work(made, other))
    assert problems(made) == []
    assert problems(made) == []


def test_an_unsigned_alias_change_during_the_audit_is_reported(busy):
    made, other = busy
    made.registry.before = lambda: made.registry.set_alias(other.ref, "production")
    assert len(problems(made)) == 1


def of(made):
    """The problems of this agent's uses alone."""
    told = {*verify_agent(made.ref, made.sources).problems}
    return told & {*problems(made)}


def test_verifying_an_agent_reports_problems_of_aliases_that_point_to_its_version(made):
    other = make.agent.registered(made.store, made.registry, "other")
    assert (of(made), of(other)) == (set(), set())
    made.registry.set_alias(other.ref, "production")
    assert of(made) == of(other) == {*problems(made)}
    made.registry.remove_alias(made.ref.name, "production")
    assert (of(made), of(other)) == ({*problems(made)}, set())
    assert of(made)


def test_verifying_an_agent_reports_alias_statement_problems_of_only_its_name(made):
    hero = make.agent.registered(made.store, made.registry, "hero", "shell-agent-2")
    hero.use()
    (gone,) = names(made, "production")
    (changed,) = names(hero, "production")
    make.agent.lose(made, "DELETE FROM attestations WHERE name = ?", gone)
    make.agent.lose(made, "UPDATE attestations SET at = '' WHERE name = ?", changed)
    own, others = "'shell-agent@production'", "'shell-agent-2@production'"
    assert any(f"alias {own}" in each and "is gone from" in each for each in of(made))
    assert not any(others in problem for problem in of(made))
    assert any(f"alias {others} at" in each and "does not verify" in each for each in of(hero))
    assert not any(own in problem for problem in of(hero))


def test_a_different_agent_registered_as_the_version_in_use_is_reported(made):
    registry = MemoryRegistry()
    make.agent.registered(made.store, registry, "other")
    registry.set_alias(made.ref, "production")
    sources = made.sources._replace(registry=registry)
    for found in (verify_agent(made.ref, sources), verify_everything(sources)):
        (problem,) = [problem for problem in found.problems if "in use as production" in problem]
        assert problem.startswith("shell-agent@1: mirror differs in agent in use as production: ")
        assert problem.endswith(f" says '{made.agent.artifact} of run {made.agent.run}'")


def test_unreadable_alias_statements_are_reported_and_versions_are_still_verified(made):
    make.agent.lose(made, "UPDATE attestations SET envelope = CAST(x'ff' AS TEXT)")
    found = verify_everything(made.sources)
    uses = [problem for problem in found.problems if "of alias 'shell-agent@" in problem]
    assert any("does not verify: this is not an envelope of ours" in problem for problem in uses)
    assert [each.subject for each in found.versions] == ["shell-agent@1"]
