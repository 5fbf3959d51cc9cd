"""A judge that finds nothing may be blind: each of these is a failure that it has to see."""

import ast
from pathlib import Path

import pytest

from agentworld.engine.names import engine_name
from faults_operator.api_proxy import Written
from faults_operator.built import otherwise
from faults_operator.chaos import deck
from faults_operator.honest import FIRST, OTHER, world
from faults_operator.judge import judge
from faults_operator.mistakes import mistakes
from faults_operator.report import diverged
from faults_operator.seen import CHILDREN
from faults_operator.usurping import Stop, usurped

ENGINE = engine_name(FIRST)


def kinds(seen):
    return {finding.kind for finding in judge(seen)}


def condition(found, type_):
    return next(each for each in found["status"]["conditions"] if each["type"] == type_)


def test_nothing_is_found_where_all_is_as_it_should_be():
    assert judge(world()) == []
    assert list(otherwise(world())) == []


@pytest.mark.parametrize("name", ["judge", "seen", "finding", "usurping"])
def test_the_judge_knows_no_line_of_the_operator(name):
    nodes = ast.walk(ast.parse(Path(__file__).with_name(f"{name}.py").read_text()))
    imported = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert not {module for module in imported if str(module).startswith("agentworld")}


@pytest.mark.parametrize("kind", ["ConfigMap", "Service", "Deployment", "PodDisruptionBudget"])
def test_a_child_that_is_not_there_is_found(kind):
    seen = world()
    del seen.children[kind][ENGINE]
    assert kinds(seen) == {"missing"}


@pytest.mark.parametrize("kind", ["ConfigMap", "Service", "Deployment", "PodDisruptionBudget"])
@pytest.mark.parametrize(
    "spoiled",
    [{"ownerReferences": []}, {"ownerReferences": [{"uid": "another"}]}, {"labels": {}}],
    ids=["nobody's", "another one's", "without a label"],
)
def test_a_child_of_another_owner_or_without_its_label_is_found(kind, spoiled):
    seen = world()
    seen.children[kind][ENGINE]["metadata"] |= spoiled
    assert kinds(seen) == {"otherwise"}


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("Deployment", "spec.replicas", 3),
        ("Deployment", "spec.progressDeadlineSeconds", 1),
        ("Deployment", "spec.template.spec.automountServiceAccountToken", True),
        ("Service", "spec.selector", {}),
        ("PodDisruptionBudget", "spec.maxUnavailable", 2),
        ("ConfigMap", "data", {}),
    ],
)
def test_a_child_with_another_field_is_found(kind, path, value):
    seen = world()
    *parents, last = path.split(".")
    part = seen.children[kind][ENGINE]
    for name in parents:
        part = part[name]
    part[last] = value
    assert kinds(seen) == {"otherwise"}
    assert [finding.about for finding in otherwise(seen)] == [f"{kind} {ENGINE}"]


def test_an_image_of_another_digest_is_found():
    seen = world()
    pod = seen.children["Deployment"][ENGINE]["spec"]["template"]["spec"]
    pod["containers"][0]["image"] = "registry.example/vllm:latest"
    assert kinds(seen) == {"otherwise"}


def test_a_field_that_only_the_builder_knows_is_found_by_its_word():
    seen = world()
    pod = seen.children["Deployment"][ENGINE]["spec"]["template"]["spec"]
    pod["securityContext"]["runAsNonRoot"] = False
    assert [finding.kind for finding in otherwise(seen)] == ["otherwise"]


def test_what_a_simulator_that_is_gone_left_over_is_found():
    seen = world()
    del seen.simulators["idle"]
    told = {finding.about for finding in judge(seen) if finding.kind == "left over"}
    assert f"Deployment {engine_name(OTHER)}" in told
    assert len(told) == 4


def test_what_somebody_took_from_its_owner_before_that_went_is_not_left_over():
    seen = world()
    del seen.simulators["idle"]
    for kind in CHILDREN:
        seen.children[kind][engine_name(OTHER)]["metadata"]["ownerReferences"] = []
    assert judge(seen) == []


@pytest.mark.parametrize("status", [{}, {"readyReplicas": 3}])
def test_a_replica_too_many_or_too_few_is_found(status):
    seen = world()
    seen.children["Deployment"][ENGINE]["status"] = status
    assert kinds(seen) == {"unrun"}


@pytest.mark.parametrize(
    "field", ["observedGeneration", "digest", "replicas", "readyReplicas", "openEpisodes"]
)
def test_a_status_that_says_something_else_is_found(field):
    seen = world()
    seen.simulators["one"]["status"][field] = "another"
    assert kinds(seen) == {"untrue"}


@pytest.mark.parametrize("name", ["one", "idle"])
@pytest.mark.parametrize("type_", ["Verified", "EngineReady", "Ready", "Degraded"])
def test_a_condition_that_is_not_so_is_found(name, type_):
    seen = world()
    condition(seen.simulators[name], type_)["status"] = "Nobody knows"
    assert kinds(seen) == {"untrue"}


def test_one_that_was_never_judged_is_found():
    seen = world()
    del seen.simulators["one"]["status"]
    assert kinds(seen) == {"untrue"}


def test_a_rival_that_is_called_served_is_found():
    seen = world()
    condition(seen.simulators["rival"], "Ready").update(status="True", reason="Serving")
    assert kinds(seen) == {"untrue"}


def test_one_that_waits_for_a_rival_that_is_gone_is_found():
    seen = world()
    del seen.simulators["one"]
    assert {"otherwise", "untrue"} <= kinds(seen)


def test_a_rival_that_is_told_to_be_another_ones_is_found():
    seen = world()
    condition(seen.simulators["rival"], "Ready")["message"] = "idle is the same simulator"
    assert kinds(seen) == {"untrue"}


@pytest.mark.parametrize("field", ["observedGeneration", "digest"])
def test_a_name_that_says_something_else_is_found(field):
    seen = world()
    seen.aliases["stable"]["status"][field] = "another"
    assert kinds(seen) == {"untrue"}


@pytest.mark.parametrize("type_", ["Resolved", "Recorded"])
def test_a_condition_of_a_name_that_is_not_so_is_found(type_):
    seen = world()
    condition(seen.aliases["stable"], type_)["status"] = "Nobody knows"
    assert kinds(seen) == {"untrue"}


def test_a_name_of_nothing_that_is_called_resolved_is_found():
    seen = world()
    seen.aliases["stable"]["spec"]["simulator"] = "nobody"
    assert kinds(seen) == {"untrue"}


@pytest.mark.parametrize(
    "spoiled",
    [{"simulator": OTHER}, {"ended": 1}, {"canary": OTHER, "percent": 5}],
    ids=["another", "ended", "a canary"],
)
def test_a_name_whose_meaning_the_ledger_tells_otherwise_is_found(spoiled):
    seen = world()
    seen.rows[0] |= spoiled
    assert kinds(seen) == {"unrecorded"}


def test_a_move_that_was_done_and_is_not_recorded_is_found():
    seen = world()
    seen.rows[0]["override"] = None
    assert kinds(seen) == {"unrecorded"}


@pytest.mark.parametrize("number", [0, 1], ids=["done", "not known"])
def test_a_move_that_is_recorded_twice_is_found(number):
    seen = world()
    seen.rows.insert(0, dict(seen.rows[number]))
    assert kinds(seen) == {"recorded twice"}


def test_several_findings_about_one_object_are_one_object():
    seen = world()
    del seen.simulators["one"]["status"]
    assert len(judge(seen)) > 1
    assert diverged(judge(seen)) == 1


def lease(replica, sent):
    return Written(replica, sent, "PUT lease", "lease", holds=True)


def write(replica, sent):
    return Written(replica, sent, "PATCH it", "write")


def test_who_renews_may_write_and_so_may_the_next_one():
    written = [lease("a", 0), write("a", 3), lease("a", 4), write("a", 8), lease("b", 20)]
    assert usurped([*written, write("b", 21)], [], 5.0) == []


def test_who_did_not_renew_and_who_never_led_may_not_write():
    late, never = write("a", 10), write("b", 1)
    assert usurped([lease("a", 0), late, never], [], 5.0) == [never, late]


def test_who_was_stopped_may_end_a_call_and_no_more():
    stops = [Stop("a", 2.0, 30.0)]
    call, later = write("a", 30.5), write("a", 40.0)
    assert usurped([lease("a", 0), call, later], stops, 5.0) == [later]


def test_a_traceback_of_ours_is_found_and_one_that_kopf_outlives_is_not(tmp_path):
    def traceback(file, error):
        return f'Traceback (most recent call last):\n  File "/x/{file}"\n{error}\n2026 INFO\n'

    theirs = traceback("kopf/a.py", "KeyError: agentworld.dev/operators")
    ours = traceback("operators/agentworld_operator/a.py", "KeyError: 1")
    for name, text in (("first", theirs), ("second", theirs + ours), ("service", "")):
        (tmp_path / f"{name}.log").write_text(text)
    assert [finding.seen for finding in mistakes(tmp_path)] == ["KeyError: 1"]


def test_a_deck_has_every_kind_and_is_the_same_for_a_seed():
    assert deck(50, "a") == deck(50, "a") != deck(50, "b")
    assert len(set(deck(50, "a"))) == 18
    assert len(deck(120, "a")) == 120
