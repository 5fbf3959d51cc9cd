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
def agent(tmp_path):
    """An agent that is in use only as `production`."""
    return copied(build_agent, tmp_path)


def build_agent(store):
    agent = make.agent.registered(store)
    agent.use()
    agent.use("trial")
    agent.retire("trial")
    agent.registry.remove_alias(agent.ref.name, "trial")
    return agent


def problems(agent):
    sources = agent.sources
    statement_problems = alias_problems(
        sources.ledger.aliases, sources.ledger.attestations, sources.evidence
    )
    return [*statement_problems, *registry_problems(sources)]


def labels_in_use(agent):
    sources = agent.sources
    changes = agent_changes(sources.ledger.attestations, sources.evidence)
    return [change.alias.partition("@")[2] for change in in_use(changes)]


def test_registry_aliases_that_match_the_signed_statements_have_no_problems(agent):
    assert labels_in_use(agent) == ["production"]
    assert problems(agent) == []


def test_agent_changes_reads_only_the_changes_of_the_given_name(agent):
    other = make.agent.registered(agent.store, agent.registry, "other", "shell-agent-2")
    other.use()
    agent.moved("stable", agent.simulator.digest)
    sources = agent.sources
    histories = [
        agent_changes(sources.ledger.attestations, sources.evidence, name)
        for name in ("", agent.ref.name, other.ref.name, "terminal")
    ]
    assert [len(history) for history in histories] == [4, 3, 1, 0]
    assert histories[1] == [
        change for change in histories[0] if change.alias.startswith("shell-agent@")
    ]


def test_an_alias_moved_in_the_registry_is_reported(agent):
    other = make.agent.registered(agent.store, agent.registry, "other")
    agent.registry.set_alias(other.ref, "production")
    assert problems(agent) == [
        "shell-agent: mirror differs in alias production: MLflow says 2, the signed statement"
        " says 1"
    ]


def test_an_alias_deleted_in_the_registry_is_reported(agent):
    agent.registry.remove_alias(agent.ref.name, "production")
    assert problems(agent) == [
        "shell-agent: mirror differs in alias production: MLflow says nothing, the signed statement"
        " says 1"
    ]


@pytest.mark.parametrize("alias", ["trial", "new"])
def test_an_unsigned_alias_in_the_registry_is_reported(agent, alias):
    agent.registry.set_alias(agent.ref, alias)
    assert problems(agent) == [
        f"shell-agent: mirror differs in alias {alias}: MLflow says 1, the signed statement says"
        " nothing"
    ]


def test_a_registry_alias_of_a_world_model_is_ignored(agent, tmp_path):
    world_model = WorldModel(stages=(agent.agent.checkpoint,), report=agent.agent.artifact)
    agent.registry.set_alias(
        agent.registry.register_world_model("worlds", world_model, tmp_path), "best"
    )
    assert problems(agent) == []


def statement_names(agent, label):
    """The names of an alias's statements, the newest last."""
    rows = agent.ledger.attestations.find("alias", subject=f"{agent.ref.name}@{label}")
    return [row.name for row in rows]


def test_a_deleted_alias_statement_is_reported_from_its_mirror_copy(agent):
    make.agent.lose(
        agent, "DELETE FROM attestations WHERE name = ?", statement_names(agent, "trial")[1]
    )
    assert problems(agent)[0].startswith(
        "the statement that alias 'shell-agent@trial' meant nothing from"
    )
    assert problems(agent)[0].endswith("is gone from the ledger; restore it")


@pytest.mark.parametrize(
    "change",
    [
        "simulator = 'sha256:00'",
        "at = '2020-01-01T00:00:00+00:00'",
        "envelope = (SELECT envelope FROM attestations WHERE subject LIKE '%trial')",
    ],
)
def test_a_changed_alias_statement_is_ignored_and_reported(agent, change):
    (name,) = statement_names(agent, "production")
    make.agent.lose(agent, f"UPDATE attestations SET {change} WHERE name = ?", name)
    assert labels_in_use(agent) == []
    assert "the statement of alias 'shell-agent@production' at" in problems(agent)[0]
    assert "does not verify" in problems(agent)[0]


@pytest.mark.parametrize(
    "change", ["version = 2", "artifact = 'sha256:00'", "run = 'x'", "reason = 'x'", "ended = 1"]
)
def test_a_changed_alias_history_row_is_reported(agent, change):
    statement = f"UPDATE aliases SET {change} WHERE alias = 'shell-agent@production'"
    make.agent.lose(agent, statement)
    (problem,) = problems(agent)
    assert "alias 'shell-agent@production'" in problem
    assert problem in verify_everything(agent.sources).problems


def test_verifying_everything_reports_alias_problems(agent):
    before = verify_everything(agent.sources).problems
    assert not [problem for problem in before if problem.startswith("run ")]
    agent.registry.set_alias(agent.ref, "shadow")
    (problem,) = problems(agent)
    assert set(verify_everything(agent.sources).problems) == {*before, problem}


class BusyRegistry(MemoryRegistry):
    """A registry whose aliases can change just before and just after they are read."""

    def __init__(self):
        super().__init__()
        self.before = self.after = lambda: None

    def aliases(self):
        before, self.before = self.before, lambda: None
        before()
        aliases = super().aliases()
        after, self.after = self.after, lambda: None
        after()
        return aliases


@pytest.fixture
def two_agents(tmp_path):
    """Two versions, of which the first is in use as `production`."""
    agent = make.agent.registered(tmp_path, BusyRegistry())
    agent.use()
    return agent, make.agent.registered(tmp_path, agent.registry, "other")


def end_use(agent):
    agent.retire()
    agent.registry.remove_alias(agent.ref.name, "production")


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    "change",
    [
        lambda _, other: other.use("shop"),
        lambda _, other: other.use(),
        lambda agent, _: end_use(agent),
        lambda agent, other: (other.use(), agent.use()),
        lambda agent, other: (agent.use("shop"), other.use("shop")),
    ],
    ids=["first used", "moved", "ended", "moved and moved back", "first used and moved"],
)
def test_signed_alias_changes_during_the_audit_are_no_problem(two_agents, moment, change):
    agent, other = two_agents
    setattr(agent.registry, moment, lambda: change(agent, other))
    assert problems(agent) == []
    assert problems(agent) == []


def test_an_unsigned_alias_change_during_the_audit_is_reported(two_agents):
    agent, other = two_agents
    agent.registry.before = lambda: agent.registry.set_alias(other.ref, "production")
    assert len(problems(agent)) == 1


def problems_of(agent):
    """The problems of only this agent's aliases."""
    agent_problems = {*verify_agent(agent.ref, agent.sources).problems}
    return agent_problems & {*problems(agent)}


def test_verifying_an_agent_reports_problems_of_aliases_that_point_to_its_version(agent):
    other = make.agent.registered(agent.store, agent.registry, "other")
    assert (problems_of(agent), problems_of(other)) == (set(), set())
    agent.registry.set_alias(other.ref, "production")
    assert problems_of(agent) == problems_of(other) == {*problems(agent)}
    agent.registry.remove_alias(agent.ref.name, "production")
    assert (problems_of(agent), problems_of(other)) == ({*problems(agent)}, set())
    assert problems_of(agent)


def test_verifying_an_agent_reports_alias_statement_problems_of_only_its_name(agent):
    hero = make.agent.registered(agent.store, agent.registry, "hero", "shell-agent-2")
    hero.use()
    (deleted_name,) = statement_names(agent, "production")
    (changed_name,) = statement_names(hero, "production")
    make.agent.lose(agent, "DELETE FROM attestations WHERE name = ?", deleted_name)
    make.agent.lose(agent, "UPDATE attestations SET at = '' WHERE name = ?", changed_name)
    own_alias, other_alias = "'shell-agent@production'", "'shell-agent-2@production'"
    assert any(
        f"alias {own_alias}" in problem and "is gone from" in problem
        for problem in problems_of(agent)
    )
    assert not any(other_alias in problem for problem in problems_of(agent))
    assert any(
        f"alias {other_alias} at" in problem and "does not verify" in problem
        for problem in problems_of(hero)
    )
    assert not any(own_alias in problem for problem in problems_of(hero))


def test_a_different_agent_registered_as_the_version_in_use_is_reported(agent):
    registry = MemoryRegistry()
    make.agent.registered(agent.store, registry, "other")
    registry.set_alias(agent.ref, "production")
    sources = agent.sources._replace(registry=registry)
    for verification in (verify_agent(agent.ref, sources), verify_everything(sources)):
        (problem,) = [
            problem for problem in verification.problems if "in use as production" in problem
        ]
        assert problem.startswith("shell-agent@1: mirror differs in agent in use as production: ")
        assert problem.endswith(f" says '{agent.agent.artifact} of run {agent.agent.run}'")


def test_unreadable_alias_statements_are_reported_and_versions_are_still_verified(agent):
    make.agent.lose(agent, "UPDATE attestations SET envelope = CAST(x'ff' AS TEXT)")
    verification = verify_everything(agent.sources)
    alias_sentences = [
        problem for problem in verification.problems if "of alias 'shell-agent@" in problem
    ]
    assert any(
        "does not verify: this is not an envelope of ours" in problem for problem in alias_sentences
    )
    assert [finding.subject for finding in verification.versions] == ["shell-agent@1"]
