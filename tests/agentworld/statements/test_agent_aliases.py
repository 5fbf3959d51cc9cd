"""Signed uses of agents, with services killed at any point."""

import shutil

import pytest

import make.agent
from agentworld.errors import InputError, NotFound
from agentworld.records.episode import new_name
from agentworld.records.run import RunClosing, RunOpening
from agentworld.records.statements.alias import AliasMove
from agentworld.records.statements.edge import Claim
from agentworld.storage.objects import WriteOnce
from agentworld.storage.stores import Stores
from make import records


@pytest.fixture
def made(tmp_path):
    return make.agent.registered(tmp_path)


def kept(made):
    return [each.name for each in made.ledger.attestations.find("alias")]


def copies(made):
    return WriteOnce(Stores.of(made.store).mirror_url).names("alias-changes/")


def test_an_agent_alias_is_signed_with_the_simulator_of_the_agents_edge(made):
    used = made.use()
    assert (used.target, used.alias, used.kind) == (
        "shell-agent@1",
        "shell-agent@production",
        "agent",
    )
    assert (used.simulator, used.run, used.ended) == (made.simulator.digest, made.agent.run, False)
    assert made.ledger.aliases.history() == [used]
    assert kept(made) == copies(made)


def test_repeating_an_alias_move_is_not_signed_again(made):
    first = made.use()
    assert made.signed(by="bob", reason="again") == first
    assert len(kept(made)) == 1


@pytest.mark.compute
def test_moving_an_alias_back_to_an_earlier_version_is_signed_again(made):
    other = make.agent.registered(made.store, made.registry, "other")
    assert [each.use().target[-1] for each in (made, other, made)] == ["1", "2", "1"]
    assert len(kept(made)) == 3


@pytest.mark.compute
def test_an_ended_alias_keeps_its_version_and_can_be_moved_again(made):
    made.use()
    ended = made.retire(by="bob")
    assert (ended.target, ended.ended, ended.set_by) == ("shell-agent@1", True, "bob")
    assert made.retire() == ended
    assert not made.use().ended
    assert len(kept(made)) == 3


def test_ending_a_missing_alias_is_refused(made):
    with pytest.raises(NotFound, match="there is no alias 'shell-agent@production'"):
        made.retire()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("another-agent", {}),
        (make.agent.NAME, {"artifact": records.digest("another")}),
        (make.agent.NAME, {"run": "another"}),
    ],
    ids=["name", "artifact", "run"],
)
def test_an_alias_of_an_agent_without_a_signed_edge_is_refused(made, name, told):
    with pytest.raises(NotFound, match="no signed statement says which simulator made"):
        made.moves.move(
            f"{name}@shop", made.move(agent=made.version(**told)), None, new_name(), dry_run=False
        )
    assert kept(made) == copies(made) == []


def test_an_alias_name_of_another_kind_is_refused(made):
    simulator = AliasMove(kind="simulator", simulator=made.simulator.digest, by="ada")
    for alias, move in (("shop", made.move()), ("shell-agent@shop", simulator)):
        with pytest.raises(InputError, match="is not an alias of"):
            made.moves.move(alias, move, None, new_name(), dry_run=False)
    made.use()
    with pytest.raises(NotFound):
        made.ledger.aliases.resolve("shell-agent@production")


@pytest.mark.compute
def test_alias_names_are_case_sensitive(made):
    other = make.agent.registered(made.store, made.registry, name=make.agent.NAME.upper())
    assert made.use() != other.use()
    other.retire()
    ended = [each.ended for each in made.ledger.aliases.history("shell-agent@production")]
    assert ended == [False]


@pytest.mark.parametrize("follows", ["the same", "another"])
def test_the_next_alias_change_writes_a_missing_copy(made, follows):
    made.use()
    shutil.rmtree(made.store / "mirror/alias-changes")
    assert copies(made) == []
    if follows == "the same":
        made.use()
    else:
        made.retire()
    assert sorted(kept(made)) == copies(made)


def test_an_evaluation_in_another_simulator_does_not_dispute_the_edge(made):
    """For it ends with the weights that it began with."""
    opening = RunOpening(agent="a", starting_weights=made.agent.artifact, purpose="evaluation")
    ledger = made.ledger
    elsewhere = ledger.open_run(opening, records.digest("next simulator"))
    ledger.close_run(elsewhere.id, RunClosing(final_weights=made.agent.artifact))
    told = {"starting_weights": make.agent.STARTED, "simulator": made.simulator.digest}
    claim = Claim(agent=made.ref.name, artifact=made.agent.artifact, **told)
    assert made.statement_signer.edge(ledger.run(made.agent.run), claim).edge.grade == "observed"


def test_a_training_in_another_simulator_disputes_the_edge(made):
    ledger = made.ledger
    opening = RunOpening(agent="a", starting_weights=make.agent.STARTED)
    elsewhere = ledger.open_run(opening, records.digest("another simulator"))
    ledger.close_run(elsewhere.id, RunClosing(final_weights=made.agent.artifact))
    told = {"starting_weights": make.agent.STARTED, "simulator": made.simulator.digest}
    claim = Claim(agent=made.ref.name, artifact=made.agent.artifact, **told)
    edge = made.statement_signer.edge(ledger.run(made.agent.run), claim).edge
    assert (edge.grade, edge.reasons) == (
        "disputed",
        (f"run {elsewhere.id} made the same weights in another simulator",),
    )
