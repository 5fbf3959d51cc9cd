import pytest

import make
from agentworld.errors import InputError, NotFound
from agentworld.lineage.base import WorldModel
from agentworld.steps.simulators import alias_history, find, set_alias, sheet, summaries


def test_a_simulator_is_found_by_its_alias_its_digest_and_the_start_of_it(tmp_path):
    simulator = make.pinned(tmp_path)
    set_alias("production", simulator.digest[7:12], tmp_path, "me")
    for name in ("production", simulator.digest, simulator.digest[7:12]):
        assert find(name, tmp_path) == simulator


def test_an_alias_means_what_it_was_set_to_last_and_tells_its_history(tmp_path):
    old, new = make.pinned(tmp_path), make.pinned(tmp_path, context_tokens=512)
    for simulator in (old, new):
        set_alias("production", simulator.digest, tmp_path, "me")
    assert find("production", tmp_path) == new
    history = alias_history(tmp_path, "production")
    assert [change.simulator for change in history] == [old.digest, new.digest]
    assert [sheet(each, tmp_path).aliases for each in (old, new)] == [(), ("production",)]


def test_a_name_for_nothing_is_refused_before_a_ledger_is_made(tmp_path):
    with pytest.raises(NotFound, match="there is no simulator"):
        set_alias("production", "00", tmp_path, "me")
    with pytest.raises(NotFound, match="there is no alias 'production'"):
        alias_history(tmp_path, "production")
    assert alias_history(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["Production", "a b", ""])
def test_a_name_that_is_none_is_refused(tmp_path, name):
    with pytest.raises(InputError, match="is no alias"):
        set_alias(name, make.pinned(tmp_path).digest, tmp_path, "me")


def test_a_simulator_is_validated_by_a_report(tmp_path):
    simulator = make.pinned(tmp_path)
    assert not sheet(simulator, tmp_path).validated
    report = make.agent_report(simulator=simulator.digest)
    simulator.attach(report)
    told = sheet(simulator, tmp_path)
    assert (told.validated, told.reports) == (True, (report.digest,))


def test_a_world_is_told_by_its_weights_or_by_who_answers(tmp_path):
    there = {"kind": "openai", "url": "http://127.0.0.1:8000", "model": "somebody/model"}
    ours = make.pinned(tmp_path)
    theirs = make.pinned(tmp_path, artifact=None, files={}, engine=there)
    told = {each.simulator: each for each in summaries(tmp_path)}
    assert told[ours.digest].world_model == ours.manifest.artifact
    assert told[theirs.digest].world_model == "somebody/model at http://127.0.0.1:8000"
    assert [told[each.digest].verifiable for each in (ours, theirs)] == [True, False]


@pytest.mark.slow
def test_a_registered_world_is_told_by_its_version(tmp_path, monkeypatch):
    from agentworld.steps.addresses import open_registry

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    simulator = make.pinned(tmp_path)
    stages = [make.checkpoint("rl", artifact=simulator.manifest.artifact)]
    what = WorldModel(stages=tuple(stages), report=make.digest("report"))
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"weights")
    open_registry(tmp_path).register_world_model("shell", what, tmp_path / "model")
    assert sheet(simulator, tmp_path).world_model == "shell@1"
