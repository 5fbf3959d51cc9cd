import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.errors import EvidenceError
from agentworld.records.run import AgentRun, RunClosing, RunOpening
from agentworld.records.statements.edge import Claim, Edge, Traffic
from agentworld.signing.checkpoint import RunCheckpoint, sign_checkpoint, verify_checkpoint
from agentworld.signing.edge import RunEvidence, join
from agentworld.signing.envelope import Statement, attest, sign, verify_envelope
from agentworld.signing.keys import ensure_signer, load_trusted
from agentworld.signing.traffic import MOST_CONTROLS, TrafficCount
from make import records

SIMULATOR, FINAL, STARTING = (
    records.digest("simulator"),
    records.digest("made"),
    records.digest("started"),
)
CLAIM = Claim(
    agent="a",
    artifact=FINAL,
    starting_weights=STARTING,
    simulator=SIMULATOR,
    world_model=records.digest("weights"),
    data=(records.digest("data"),),
)
AT = "2026-03-01T12:00:00.000+00:00"


def run(signature: str | None = "signed", **fields: object) -> AgentRun:
    opening = RunOpening(agent="a", starting_weights=STARTING)
    closing = RunClosing(final_weights=FINAL, signature=signature)
    defaults = {"id": "r", "opening": opening, "simulator": SIMULATOR, "closing": closing}
    return AgentRun.model_validate({**defaults, "log_length": 5, **fields})


def checkpoint(**fields: object) -> RunCheckpoint:
    traffic = Traffic(num_episodes=1, num_steps=2)
    defaults = {"run": "r", "simulator": SIMULATOR, "length": 5, "root": records.digest("root")}
    return RunCheckpoint.model_validate({**defaults, "traffic": traffic, **fields})


EVIDENCE = RunEvidence(run(), checkpoint())


def test_an_edge_with_both_ends_signed_is_proven():
    edge = join(CLAIM, EVIDENCE, AT)
    assert (edge.grade, edge.reasons, edge.traffic.num_steps) == ("proven", (), 2)


def test_an_edge_with_unsigned_final_weights_is_observed():
    assert join(CLAIM, EVIDENCE._replace(run=run(None)), AT).grade == "observed"


@pytest.mark.parametrize(
    ("evidence", "claim", "message"),
    [
        (EVIDENCE, {"artifact": records.digest("x")}, "is registered"),
        (EVIDENCE, {"simulator": records.digest("x")}, "was served by"),
        (EVIDENCE, {"starting_weights": records.digest("x")}, "the run began with"),
        (EVIDENCE._replace(run=run(closing=None)), {}, "the run is open"),
        (EVIDENCE._replace(run=run(log_length=6)), {}, "end of the run's log is not signed"),
        (EVIDENCE._replace(checkpoint=None), {}, "end of the run's log is not signed"),
        (EVIDENCE._replace(checkpoint=checkpoint(traffic=Traffic())), {}, "answered no step"),
        (
            EVIDENCE._replace(checkpoint=checkpoint(traffic=Traffic(num_copied=2))),
            {},
            "answered no step",
        ),
        (EVIDENCE._replace(problems=("a key is unknown",)), {}, "a key is unknown"),
        (EVIDENCE._replace(contradicting=("run q made the same",)), {}, "run q made the same"),
    ],
)
def test_an_edge_with_contradicting_or_missing_evidence_is_disputed(evidence, claim, message):
    edge = join(CLAIM.model_copy(update=claim), evidence, AT)
    assert edge.grade == "disputed"
    assert any(message in reason for reason in edge.reasons)


def test_an_edge_of_an_evaluation_run_is_disputed():
    opening = RunOpening(agent="a", starting_weights=STARTING, purpose="evaluation")
    assert join(CLAIM, EVIDENCE._replace(run=run(opening=opening)), AT).grade == "disputed"


def test_a_signed_edge_is_an_in_toto_statement_with_artifact_and_materials(tmp_path):
    edge = join(CLAIM, EVIDENCE, AT)
    envelope = attest(edge, ensure_signer(tmp_path)).envelope
    assert verify_envelope(envelope, Edge, load_trusted(tmp_path)) == edge
    statement = json.loads(payload_of(envelope))
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["subject"][0]["digest"] == {"sha256": FINAL.removeprefix("sha256:")}
    materials = [material["name"] for material in statement["predicate"]["materials"]]
    assert materials == ["simulator", "starting-weights", "world-model", "data"]


def test_signed_traffic_contains_num_copied_only_with_a_fork(tmp_path):
    signer = ensure_signer(tmp_path)
    traffic = json.loads(payload_of(sign_checkpoint(checkpoint(), signer)))["predicate"]["traffic"]
    assert traffic == {
        "num_episodes": 1,
        "num_steps": 2,
        "controls": {},
        "other_controls": 0,
        "first_at": "",
        "last_at": "",
    }
    fork_checkpoint = checkpoint(traffic=Traffic(num_episodes=1, num_steps=2, num_copied=3))
    envelope = sign_checkpoint(fork_checkpoint, signer)
    assert json.loads(payload_of(envelope))["predicate"]["traffic"] == {**traffic, "num_copied": 3}
    assert verify_checkpoint(envelope, load_trusted(tmp_path)) == fork_checkpoint
    edge = join(CLAIM, EVIDENCE._replace(checkpoint=fork_checkpoint), AT)
    assert (
        verify_envelope(
            attest(edge, signer).envelope, Edge, load_trusted(tmp_path)
        ).traffic.num_copied
        == 3
    )


def test_an_edge_of_an_unknown_key_or_with_other_materials_is_refused(tmp_path):
    edge, signer = join(CLAIM, EVIDENCE, AT), ensure_signer(tmp_path / "own")
    ensure_signer(tmp_path / "other")
    with pytest.raises(EvidenceError, match="not trusted"):
        verify_envelope(attest(edge, signer).envelope, Edge, load_trusted(tmp_path / "other"))
    statement = Statement.parse(payload_of(attest(edge, signer).envelope))
    changed = statement.model_copy(update={"predicate": {**statement.predicate, "materials": []}})
    with pytest.raises(EvidenceError, match="differs from this edge"):
        verify_envelope(sign(changed, signer), Edge, load_trusted(tmp_path / "own"))
    empty_statement = statement.model_copy(update={"predicate": {"edge": {}}})
    with pytest.raises(EvidenceError, match="is not of kind edge"):
        verify_envelope(sign(empty_statement, signer), Edge, load_trusted(tmp_path / "own"))


def payload_of(envelope: bytes) -> bytes:

    return base64.b64decode(json.loads(envelope)["payload"])


ENTRIES = st.one_of(
    st.builds(
        lambda control, num_copied: {
            "kind": "episode-opened",
            "control": records.digest(str(control)),
            **({"num_copied": num_copied} if num_copied else {}),
        },
        st.integers(0, 2 * MOST_CONTROLS),
        st.integers(0, 3),
    ),
    st.builds(lambda num: {"kind": "steps", "num_steps": num}, st.integers(0, 100)),
    st.sampled_from(
        [
            {},
            {"kind": "steps"},
            {"kind": "steps", "num_steps": -3},
            {"kind": "episode-opened"},
            {"kind": "episode-opened", "control": "no digest"},
            {"kind": "episode-opened", "num_copied": 3},
            {"kind": "episode-opened", "control": records.digest("0"), "num_copied": -3},
            {"kind": "episode-opened", "control": records.digest("0"), "num_copied": "3"},
            {"kind": 3},
        ]
    ),
)


@given(st.lists(ENTRIES, max_size=300))
def test_traffic_is_the_sum_of_the_log_entries(entries):
    count = TrafficCount()
    for index, fields in enumerate(entries):
        count.add({**fields, "at": f"{index:03}"})
    openings = [fields for fields in entries if fields.get("control", "").startswith("sha256:")]
    total = count.total
    assert total.num_episodes == len(openings)
    num_steps = sum(max(0, fields.get("num_steps", 0)) for fields in entries)
    copies = [fields.get("num_copied", 0) for fields in openings]
    num_copied = sum(num for num in copies if isinstance(num, int) and num > 0)
    assert total.num_copied == min(num_copied, num_steps)
    assert total.num_steps + total.num_copied == num_steps
    assert sum(total.controls.values()) + total.other_controls == len(openings)
    assert len(total.controls) <= MOST_CONTROLS
    assert (total.first_at, total.last_at) == (
        ("000", f"{len(entries) - 1:03}") if entries else ("", "")
    )
