"""Likely attacks: each is found and named, or the threat model explains why not."""

import json
from contextlib import closing

import pytest

import make.ledger
from agentworld.audit.checks.edges import edge_to
from agentworld.audit.checks.run import verify_run
from agentworld.audit.checks.store import verify_everything
from agentworld.ledger.writes import EpisodeOpened, NewStep
from agentworld.lineage.base import VersionRef
from agentworld.records.episode import Episode, EpisodeOpening
from agentworld.records.statements.base import statement_kinds
from agentworld.records.statements.edge import Edge
from agentworld.signing.checkpoint import sign_checkpoint, verify_checkpoint
from agentworld.signing.envelope import attest, verify_envelope
from agentworld.signing.keys import public_pem
from agentworld.statements.mounted_keys import read_trusted_keys
from campaigns.tamper.mutation import changed, inserted, removed, stranger
from campaigns.tamper.player import Player
from campaigns.tamper.removed import cut

pytestmark = pytest.mark.compute


def problems(world, registry=None, evidence=None) -> list[str]:
    """The findings of `audit verify`."""
    with closing(world.ledger()) as ledger:
        sources = world.sources(ledger)
        sources = sources._replace(
            registry=registry or sources.registry, evidence=evidence or sources.evidence
        )
        return [*verify_everything(sources).problems]


def has_finding(world, *words: str) -> bool:
    """Whether a finding has all of these words."""
    findings = problems(world)
    assert any(all(word in problem for word in words) for problem in findings), findings
    return True


def attack(world, *statements) -> None:
    with world.database.hand() as hand:
        for statement, values in statements:
            assert hand.run(statement, values)


def rows(world, statement, *values):
    with world.database.hand() as hand:
        return hand.rows(statement, *values)


def open_run(world) -> str:
    """An open run whose whole log is signed."""
    query = "SELECT id FROM runs WHERE final_weights IS NULL ORDER BY id DESC"
    return str(rows(world, query)[0]["id"])


def read_agents(world) -> list[dict]:
    return [json.loads(line) for line in world.agents.read_text().splitlines()]


def write_agents(world, agents) -> None:
    world.agents.write_text("".join(f"{json.dumps(agent)}\n" for agent in agents))


def positions(world, name) -> list[int]:
    """The positions of a name's versions among all registered ones."""
    return [
        position for position, version in enumerate(read_agents(world)) if version["name"] == name
    ]


def test_an_unattacked_world_has_no_problem(world):
    assert problems(world) == []


def test_an_agent_with_the_signed_evidence_of_another_agent_is_found(world):
    agents = read_agents(world)
    own_index, other_index = positions(world, "agent-1")[0], positions(world, "agent-3")[0]
    agents[own_index] = {**agents[other_index], "name": "agent-1"}
    write_agents(world, agents)
    assert has_finding(world, "agent-1@1: what was signed is the record", "as agent-3")
    assert has_finding(world, "agent-1: mirror differs in edge of run", "MLflow says nothing")


def test_swapped_version_numbers_of_an_agent_in_use_are_found(world):
    agents, (first, _, third, *_) = read_agents(world), positions(world, "agent-0")
    agents[first], agents[third] = agents[third], agents[first]
    write_agents(world, agents)
    assert has_finding(world, "agent-0@3: ", "mirror differs in agent in use as production")
    assert has_finding(world, "agent-0@1: ", "mirror differs in agent in use as shop")


def test_an_older_agent_record_in_place_of_a_newer_record_is_found(world):
    agents, (first, *_, newest) = read_agents(world), positions(world, "agent-0")
    assert agents[first]["agent"]["run"] == agents[newest]["agent"]["run"]
    agents[newest] = agents[first]
    write_agents(world, agents)
    run = agents[first]["agent"]["run"]
    assert has_finding(
        world, f"agent-0: mirror differs in edge of run {run}", "MLflow says 'sha256:"
    )


def test_reordered_rows_do_not_make_an_older_edge_the_newest(world):
    agent = read_agents(world)[positions(world, "agent-0")[0]]["agent"]
    edges = "SELECT sequence FROM attestations WHERE kind = 'edge' AND run = ? ORDER BY sequence"
    old, new = rows(world, edges, agent["run"])
    attack(
        world,
        changed("attestations", old, sequence=-1),
        changed("attestations", new, sequence=old["sequence"]),
        changed("attestations", {"sequence": -1}, sequence=new["sequence"]),
    )
    with closing(world.ledger()) as ledger:
        sources = world.sources(ledger)
        agent = sources.registry.agent(VersionRef(name="agent-0", version=1))
        audit = edge_to("agent-0", agent, sources)
    assert audit
    assert audit.edge
    assert len(audit.edge.claim.data) == 2  # as in the newer edge


def test_an_older_alias_move_in_place_of_the_newest_move_is_found(world):
    query = "SELECT * FROM attestations WHERE kind = 'alias' ORDER BY at"
    *_, before, newest = [row for row in rows(world, query) if row["subject"] == "shell-stable"]
    (move,) = rows(world, "SELECT sequence FROM aliases WHERE at = ?", newest["at"])
    attack(world, removed("attestations", newest), removed("aliases", move))
    assert has_finding(world, "'shell-stable'", newest["at"], "is gone from the ledger")
    attack(world, inserted("attestations", newest, envelope=before["envelope"]))
    assert has_finding(world, "'shell-stable'", "does not verify")


def test_an_older_use_of_an_agent_inserted_as_the_newest_use_is_found(world):
    query = "SELECT * FROM attestations WHERE subject = 'agent-0@production' ORDER BY sequence"
    first, *_, newest = rows(world, query)
    name = f"{newest['name'].rpartition('/')[0]}/{'0' * 64}.dsse.json"
    attack(world, inserted("attestations", first, name=name))
    assert has_finding(world, f"alias 'agent-0@production' at {first['at']} does not verify")


def test_a_checkpoint_of_another_run_in_the_mirror_is_found(world):
    """The mirror is out of an attacker's reach."""
    store = world.folder / "mirror"
    own_folder, other_folder = [path for path in sorted(store.iterdir()) if path.name.isalnum()][:2]
    first, second = sorted(own_folder.iterdir())[0], sorted(other_folder.iterdir())[0]
    first.write_bytes(second.read_bytes())
    assert has_finding(
        world, f"run {own_folder.name}: the checkpoint {own_folder.name}/", "does not verify"
    )


def test_a_wrong_copy_in_the_mirror_is_found_for_every_kind_of_statement(world):
    mirror = world.folder / "mirror"
    files = sorted(path for path in mirror.rglob("*") if path.is_file())
    before = {path: path.read_bytes() for path in files}
    names_by_kind = {}
    for kind in statement_kinds().values():
        statement = rows(world, "SELECT name, subject FROM attestations WHERE kind = ?", kind.kind)[
            0
        ]
        other_file = next(path for path in files if kind.folder not in path.parts)
        (mirror / statement["name"]).write_bytes(before[other_file])
        special_names = {"alias": f"alias {statement['subject']!r}", "genesis": "held unsigned"}
        names_by_kind[kind.kind] = special_names.get(kind.kind, statement["name"])
    matching = [problem for problem in problems(world) if "differs in the evidence" in problem]
    assert not [
        kind
        for kind, special_names in names_by_kind.items()
        if not any(special_names in item for item in matching)
    ]


def test_a_run_and_its_edge_signed_again_with_an_untrusted_key_are_found(world):
    trusted = world.evidence.trusted
    edge = rows(world, "SELECT * FROM attestations WHERE kind = 'edge'")[0]
    run = edge["run"]
    checkpoints = rows(world, "SELECT * FROM checkpoints WHERE run = ?", run)
    forged = [
        sign_checkpoint(verify_checkpoint(row["envelope"], trusted), stranger())
        for row in checkpoints
    ]
    forged_edge = attest(verify_envelope(edge["envelope"], Edge, trusted), stranger())
    values = {"envelope": forged_edge.envelope, "name": forged_edge.name}
    attack(
        world,
        *(
            changed("checkpoints", row, envelope=new)
            for row, new in zip(checkpoints, forged, strict=True)
        ),
        changed("attestations", edge, **values),
    )
    key = stranger().public_key.keyid
    assert has_finding(world, f"run {run}: the checkpoint", f"the key '{key}' is not trusted")
    assert has_finding(world, f"the edge {values['name']} does not verify", key)
    assert has_finding(world, f"the edge {edge['name']} is gone from the ledger")


def test_an_attackers_key_in_the_ledger_is_found_by_an_auditor_with_keys(world):
    """An auditor without keys trusts the ledger's list of signers, and only finds differences to
    copies.
    """
    key = stranger().public_key
    values = {"key": key.keyid, "public": public_pem(key).decode(), "since": "2026-01-01"}
    attack(world, inserted("signing_keys", values))
    assert has_finding(world, f"the ledger's key {key.keyid} is not trusted")
    with closing(world.ledger()) as ledger:
        trusting_evidence = world.evidence._replace(trusted=read_trusted_keys(ledger.signing_keys))
    assert problems(world, evidence=trusting_evidence) == []
    edge = rows(world, "SELECT * FROM attestations WHERE kind = 'edge'")[0]
    forged = attest(verify_envelope(edge["envelope"], Edge, trusting_evidence.trusted), stranger())
    values = {"envelope": forged.envelope, "name": forged.name}
    attack(world, changed("attestations", edge, **values))
    assert f"the edge {edge['name']} is gone from the ledger; restore it" in problems(
        world, evidence=trusting_evidence
    )


def test_a_rollback_of_ledger_and_registry_to_an_older_day_is_found(world):
    snapshot = world.snapshots[-2]
    with world.database.hand(snapshot) as old_hand:
        old_runs = {row["id"] for row in old_hand.rows("SELECT id FROM runs")}
    current_runs = {row["id"] for row in rows(world, "SELECT id FROM runs")}
    write_agents(world, [item for item in read_agents(world) if item["agent"]["run"] in old_runs])
    world.database.put_back(snapshot)
    findings = problems(world)
    for run in current_runs - old_runs:
        assert any(item.startswith(f"run {run} is missing") for item in findings), run


def test_a_log_end_deleted_with_its_checkpoint_is_found(world):
    run = open_run(world)
    (checkpoint,) = rows(world, "SELECT max(length) AS length FROM checkpoints WHERE run = ?", run)
    (row,) = rows(world, "SELECT log_length FROM runs WHERE id = ?", run)
    assert row["log_length"] == checkpoint["length"]
    _cut(world, run, row["log_length"] - 1)
    assert has_finding(
        world, f"run {run}: a checkpoint covers {row['log_length']} entries", "is cut off"
    )


@pytest.mark.parametrize("is_signed_again", [False, True])
def test_forged_log_entries_in_place_of_signed_entries_are_found(world, is_signed_again):
    run, length = _forged(world)
    if is_signed_again:  # by a service, over the forged entries
        Player(world).log_signer.seal_all()
    assert has_finding(world, f"run {run}: the first {length} entries of the log are not those")


def test_a_changed_unsigned_step_breaks_the_chain_of_its_episode(world):
    """A value cannot be changed without the heads."""
    run, episode = _unsigned(world, "a")
    attack(world, ("UPDATE steps SET reward = 1.0 WHERE episode = ?", (_key(world, episode),)))
    assert has_finding(world, f"run {run}: the steps of episode {episode} do not follow")


def test_a_rewritten_unsigned_part_of_a_log_is_reported_only_as_unsigned(world):
    """Everything that refers to the log is rewritten, too; the threat model names this case."""
    run, _ = _unsigned(world, "a")
    with closing(world.ledger()) as ledger:
        verification = verify_run(run, ledger, world.evidence)
        assert (verification.grade, verification.signed_length < verification.log_length) == (
            "unsigned",
            True,
        )
        _cut(world, run, verification.signed_length)
    _unsigned(world, "b", run)
    with closing(world.ledger()) as ledger:
        verification = verify_run(run, ledger, world.evidence)
        assert (verification.grade, verification.problems) == ("unsigned", ())


def test_a_use_declared_lost_and_inserted_again_is_found(world):
    with world.database.hand(world.lost) as old_hand:
        old_rows = old_hand.rows("SELECT * FROM attestations WHERE subject = 'agent-3@production'")
    current_names = {row["name"] for row in rows(world, "SELECT name FROM attestations")}
    (lost_row,) = [row for row in old_rows if row["name"] not in current_names]
    attack(world, inserted("attestations", lost_row))
    assert has_finding(world, f"the statement {lost_row['name']} was declared lost but is present")


def test_deleting_a_statement_without_a_copy_is_not_detected(world):
    """A copy is missing for milliseconds after signing, or until a killed service restarts."""
    player = Player(world)
    old_files = {path for path in (world.folder / "mirror").rglob("*") if path.is_file()}
    player.use(VersionRef(name="agent-2", version=2), "kiosk")
    (copy,) = {p for p in (world.folder / "mirror").rglob("*") if p.is_file()} - old_files
    copy.unlink()
    assert problems(world) == []
    for table, alias in (("attestations", "subject"), ("aliases", "alias")):
        attack(world, (f"DELETE FROM {table} WHERE {alias} = 'agent-2@kiosk'", ()))
    assert problems(world) == []


def test_a_run_closed_with_the_signature_of_another_run_is_found(world):
    query = "SELECT id, signature FROM runs WHERE signature IS NOT NULL"
    own_run, other_run, *_ = rows(world, query)
    attack(world, changed("runs", own_run, signature=other_run["signature"]))
    assert has_finding(world, f"run {own_run['id']}: the run was not closed as the log says")


def test_a_missing_report_of_an_alias_move_is_found(world):
    (move, *_) = rows(world, "SELECT at, report FROM aliases WHERE report IS NOT NULL")
    name = move["report"].removeprefix("sha256:")
    (world.objects / name[:2] / name).unlink()
    assert has_finding(
        world, f"alias 'shell-stable' moved at {move['at']} by a report that is missing"
    )


def test_unreadable_evidence_does_not_prevent_other_findings(world):
    """SQLite stores a text in a numeric column."""
    alias, edge = (
        rows(world, "SELECT * FROM attestations WHERE kind = ?", kind)[0]
        for kind in ("alias", "edge")
    )
    run = open_run(world)
    update = "UPDATE steps SET entry = 'none' WHERE episode = ?"
    (episode, *_) = rows(world, "SELECT key FROM episodes WHERE run = ?", run)
    attack(
        world,
        changed("attestations", alias, name=b"\xff"),
        removed("attestations", edge),
        (update, (episode["key"],)),
    )
    assert has_finding(
        world, f"alias {alias['subject']!r} meant", f"from {alias['at']} on", "is gone"
    )
    assert has_finding(world, f"the edge {edge['name']} is gone")
    assert has_finding(world, f"run {run}: the ", "steps under entry 0 are not those that it names")


def _key(world, episode) -> int:
    return int(rows(world, "SELECT key FROM episodes WHERE id = ?", episode)[0]["key"])


def _cut(world, run, length) -> None:
    """Deletes all entries after a length, with all that refers to them."""
    with world.database.hand() as hand:
        for statement, values in cut(hand, run, length):
            hand.run(statement, values)


def _forged(world) -> tuple[str, int]:
    """Replaces the last, signed entry of an open run; returns its earlier length."""
    run = open_run(world)
    (run_row,) = rows(world, "SELECT log_length FROM runs WHERE id = ?", run)
    _cut(world, run, run_row["log_length"] - 1)
    with closing(world.ledger()) as ledger:
        for _ in range(2):
            make.ledger.open_episode(ledger, run, ledger.run(run).simulator)
    return run, run_row["log_length"]


def _unsigned(world, observation, run=None) -> tuple[str, str]:
    """An unsigned episode with one step, in an open run."""
    run = run or open_run(world)
    with closing(world.ledger()) as ledger:
        simulator = ledger.run(run).simulator
        episode = Episode.new(f"late{observation}", simulator, EpisodeOpening(run=run))
        (step,) = make.ledger.steps(episode, observation)
        ledger.write([EpisodeOpened(episode), NewStep(run, step)])
    return run, episode.id
