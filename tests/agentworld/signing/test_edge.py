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

SIMULATOR, MADE, STARTED = (
    records.digest("simulator"),
    records.digest("made"),
    records.digest("started"),
)
CLAIM = Claim(
    agent="a",
    artifact=MADE,
    starting_weights=STARTED,
    simulator=SIMULATOR,
    world_model=records.digest("weights"),
    data=(records.digest("data"),),
)
AT = "2026-03-01T12:00:00.000+00:00"


def run(signature: str | None = "signed", **fields: object) -> AgentRun:
    opening = RunOpening(agent="a", starting_weights=STARTED)
    closing = RunClosing(final_weights=MADE, signature=signature)
    told = {"id": "r", "opening": opening, "simulator": SIMULATOR, "closing": closing}
    return AgentRun.model_validate({**told, "log_length": 5, **fields})


def checkpoint(**fields: object) -> RunCheckpoint:
    traffic = Traffic(num_episodes=1, num_steps=2)
    told = {"run": "r", "simulator": SIMULATOR, "length": 5, "root": records.digest("root")}
    return RunCheckpoint.model_validate({**told, "traffic": traffic, **fields})


WHOLE = RunEvidence(run(), checkpoint())


def test_an_edge_with_both_ends_signed_is_proven():
    edge = join(CLAIM, WHOLE, AT)
    assert (edge.grade, edge.reasons, edge.traffic.num_steps) == ("proven", (), 2)


def test_an_edge_with_unsigned_final_weights_is_observed():
    assert join(CLAIM, WHOLE._replace(run=run(None)), AT).grade == "observed"


@pytest.mark.parametrize(
    ("seen", "claim", "words"),
    [
        (WHOLE, {"artifact": records.digest("x")}, "is registered"),
        (WHOLE, {"simulator": records.digest("x")}, "was served by"),
        (WHOLE, {"starting_weights": records.digest("x")}, "the run began with"),
        (WHOLE._replace(run=run(closing=None)), {}, "the run is open"),
        (WHOLE._replace(run=run(log_length=6)), {}, "end of the run's log is not signed"),
        (WHOLE._replace(checkpoint=None), {}, "end of the run's log is not signed"),
        (WHOLE._replace(checkpoint=checkpoint(traffic=Traffic())), {}, "answered no step"),
        (
            WHOLE._replace(checkpoint=checkpoint(traffic=Traffic(num_copied=2))),
            {},
            "answered no step",
        ),
        (WHOLE._replace(problems=("a key is unknown",)), {}, "a key is unknown"),
        (WHOLE._replace(contradicting=("run q made the same",)), {}, "run q made the same"),
    ],
)
def test_an_edge_with_contradicting_or_missing_evidence_is_disputed(seen, claim, words):
    edge = join(CLAIM.model_copy(update=claim), seen, AT)
    assert edge.grade == "disputed"
    assert any(words in reason for reason in edge.reasons)


def test_an_edge_of_an_evaluation_run_is_disputed():
    opening = RunOpening(agent="a", starting_weights=STARTED, purpose="evaluation")
    assert join(CLAIM, WHOLE._replace(run=run(opening=opening)), AT).grade == "disputed"


def test_a_signed_edge_is_an_in_toto_statement_with_artifact_and_materials(tmp_path):
    edge = join(CLAIM, WHOLE, AT)
    envelope = attest(edge, ensure_signer(tmp_path)).envelope
    assert verify_envelope(envelope, Edge, load_trusted(tmp_path)) == edge
    statement = json.loads(sealed(envelope))
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["subject"][0]["digest"] == {"sha256": MADE.removeprefix("sha256:")}
    materials = [each["name"] for each in statement["predicate"]["materials"]]
    assert materials == ["simulator", "starting-weights", "world-model", "data"]


def test_signed_traffic_contains_num_copied_only_with_a_fork(tmp_path):
    signer = ensure_signer(tmp_path)
    plain = json.loads(sealed(sign_checkpoint(checkpoint(), signer)))["predicate"]["traffic"]
    assert plain == {
        "num_episodes": 1,
        "num_steps": 2,
        "controls": {},
        "other_controls": 0,
        "first_at": "",
        "last_at": "",
    }
    forked = checkpoint(traffic=Traffic(num_episodes=1, num_steps=2, num_copied=3))
    envelope = sign_checkpoint(forked, signer)
    assert json.loads(sealed(envelope))["predicate"]["traffic"] == {**plain, "num_copied": 3}
    assert verify_checkpoint(envelope, load_trusted(tmp_path)) == forked
    edge = join(CLAIM, WHOLE._replace(checkpoint=forked), AT)
    assert (
        verify_envelope(
            attest(edge, signer).envelope, Edge, load_trusted(tmp_path)
        ).traffic.num_copied
        == 3
    )


def test_an_edge_of_an_unknown_key_or_with_other_materials_is_refused(tmp_path):
    edge, signer = join(CLAIM, WHOLE, AT), ensure_signer(tmp_path / "own")
    ensure_signer(tmp_path / "other")
    with pytest.raises(EvidenceError, match="not trusted"):
        verify_envelope(attest(edge, signer).envelope, Edge, load_trusted(tmp_path / "other"))
    told = Statement.parse(sealed(attest(edge, signer).envelope))
    changed = told.model_copy(update={"predicate": {**told.predicate, "materials": []}})
    with pytest.raises(EvidenceError, match="differs from this edge"):
        verify_envelope(sign(changed, signer), Edge, load_trusted(tmp_path / "own"))
    nothing = told.model_copy(update={"predicate": {"edge": {}}})
    with pytest.raises(EvidenceError, match="is not of kind edge"):
        verify_envelope(sign(nothing, signer), Edge, load_trusted(tmp_path / "own"))


def sealed(envelope: bytes) -> bytes:

    return base64.b64decode(json.loads(envelope)["payload"])


entries = st.one_of(
    st.builds(
        lambda control, copied: {
            "kind": "episode-opened",
            "control": records.digest(str(control)),
            **({"num_copied": copied} if copied else {}),
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


@given(st.lists(entries, max_size=300))
def test_traffic_is_the_sum_of_the_log_entries(told):
    count = TrafficCount()
    for place, fields in enumerate(told):
        count.add({**fields, "at": f"{place:03}"})
    opened = [fields for fields in told if fields.get("control", "").startswith("sha256:")]
    found = count.total
    assert found.num_episodes == len(opened)
    num_steps = sum(max(0, fields.get("num_steps", 0)) for fields in told)
    copied = [fields.get("num_copied", 0) for fields in opened]
    num_copied = sum(each for each in copied if isinstance(each, int) and each > 0)
    assert found.num_copied == min(num_copied, num_steps)
    assert found.num_steps + found.num_copied == num_steps
    assert sum(found.controls.values()) + found.other_controls == len(opened)
    assert len(found.controls) <= MOST_CONTROLS
    assert (found.first_at, found.last_at) == (("000", f"{len(told) - 1:03}") if told else ("", ""))
