"""What is signed of agents in use, whoever is killed on the way."""

import shutil
from functools import partial

import pytest

import make.agent
from agentworld.errors import Conflict, NotFound
from agentworld.records.run import RunClosing, RunOpening
from agentworld.records.statements.edge import Claim
from agentworld.signing.keys import SIMULATOR_KEYS, load_signer, load_trusted
from agentworld.statements.signer import StatementSigner
from agentworld.storage.objects import WriteOnce
from agentworld.storage.stores import Stores
from make import records


@pytest.fixture
def made(tmp_path):
    return make.agent.registered(tmp_path)


def kept(made):
    return [each.name for each in made.ledger.attestations.find("agent-use")]


def copies(made):
    return WriteOnce(Stores.of(made.store).mirror_url).names("agent-uses/")


def test_an_agent_in_use_is_signed_with_the_simulator_that_its_edge_names(made):
    used = made.use()
    assert (used.agent, used.alias, used.number) == ("shell-agent@1", "production", 1)
    assert (used.simulator, used.run, used.ended) == (made.simulator.digest, made.agent.run, False)
    assert kept(made) == copies(made)


def test_the_same_again_is_signed_once_whoever_says_it(made):
    first = made.use()
    again = made.statement_signer.start_agent_use(
        made.ref.name, "production", made.move(by="bob", reason="again")
    )
    assert again == first
    assert len(kept(made)) == 1


def test_what_is_used_again_after_another_is_signed_again(made):
    other = make.agent.registered(made.store, made.registry, "other")
    numbers = [each.use().number for each in (made, other, made)]
    assert numbers == [1, 2, 3]


def test_what_is_taken_out_of_use_was_this_version_and_stays_so(made):
    made.use()
    ended = made.statement_signer.end_agent_use(made.ref.name, "production", "bob", "an outage")
    assert (ended.version, ended.number, ended.ended, ended.by) == (1, 2, True, "bob")
    again = made.statement_signer.end_agent_use(made.ref.name, "production", "ada", None)
    assert again == ended
    assert made.use().number == 3


def test_what_was_never_in_use_is_not_taken_out_of_it(made):
    with pytest.raises(NotFound, match="no shell-agent was ever in use as 'production'"):
        made.statement_signer.end_agent_use(made.ref.name, "production", "ada", None)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("another-agent", {}),
        (make.agent.NAME, {"artifact": records.digest("another")}),
        (make.agent.NAME, {"run": "another"}),
    ],
    ids=["name", "artifact", "run"],
)
def test_an_agent_that_no_simulator_signed_for_is_not_used(made, name, told):
    with pytest.raises(NotFound, match="nobody signed which simulator made"):
        made.statement_signer.start_agent_use(name, "production", made.move(**told))
    assert kept(made) == copies(made) == []


def test_names_that_differ_by_their_case_are_two(made):
    other = make.agent.registered(made.store, made.registry, name=make.agent.NAME.upper())
    assert (made.use().number, other.use().number) == (1, 1)
    assert (
        other.statement_signer.end_agent_use(other.ref.name, "production", "ada", None).number == 2
    )
    assert made.use().number == 1


@pytest.mark.parametrize("follows", ["the same", "another"])
def test_a_copy_that_a_kill_left_out_is_made_by_who_comes_next(made, follows):
    made.use()
    shutil.rmtree(made.store / "mirror/agent-uses")
    assert copies(made) == []
    if follows == "the same":
        made.use()
    else:
        made.statement_signer.end_agent_use(made.ref.name, "production", "ada", None)
    assert kept(made) == copies(made)


def test_where_an_old_ledger_was_restored_no_number_is_given_twice(made):
    made.use()
    make.agent.lose(made, "DELETE FROM attestations WHERE kind = 'agent-use'")
    assert kept(made) == []
    assert made.use().number == 2


def test_of_two_replicas_that_sign_the_same_number_one_is_told_so(made):
    class Overtaken(WriteOnce):
        """Another replica is faster, just before the row is written."""

        def names(self, prefix=""):
            found = super().names(prefix)
            made.use()
            return found

    slow = Overtaken(Stores.of(made.store).mirror_url)
    keys = Stores.of(made.store).keys / SIMULATOR_KEYS
    signer, trusted = partial(load_signer, keys), partial(load_trusted, keys)
    slower = StatementSigner(made.ledger, signer, slow, trusted=trusted, step_keys=dict)
    with pytest.raises(Conflict):
        slower.start_agent_use(made.ref.name, "production", made.move())
    assert len(kept(made)) == len(copies(made)) == 1


def test_an_evaluation_in_another_simulator_contradicts_no_edge(made):
    """For it ends with the weights that it began with."""
    opening = RunOpening(agent="a", starting_weights=made.agent.artifact, purpose="evaluation")
    ledger = made.ledger
    elsewhere = ledger.open_run(opening, records.digest("next simulator"))
    ledger.close_run(elsewhere.id, RunClosing(final_weights=made.agent.artifact))
    told = {"starting_weights": make.agent.STARTED, "simulator": made.simulator.digest}
    claim = Claim(agent=made.ref.name, artifact=made.agent.artifact, **told)
    assert made.statement_signer.edge(ledger.run(made.agent.run), claim).edge.grade == "observed"


def test_a_training_in_another_simulator_contradicts_it(made):
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
