"""Tests of the judge: each of these is a failure that the judge must find."""

import ast
import re
import threading
from pathlib import Path

import pytest

from agentworld.cluster.names import engine_name
from campaigns.harness.finding import mistakes
from campaigns.operator.api_proxy import Written
from campaigns.operator.built import otherwise
from campaigns.operator.campaign import diverged
from campaigns.operator.honest import FIRST, OTHER, world
from campaigns.operator.judge import judge
from campaigns.operator.snapshot import CHILDREN
from campaigns.operator.stalls import Stall, read_stalls, watch_stalls
from campaigns.operator.usurping import OURS, usurped

ENGINE = engine_name(FIRST)
DELETED = object()
CONDITIONS = ("Verified", "EngineReady", "Ready", "Degraded")
FIELDS = ("observedGeneration", "digest", "replicas", "readyReplicas", "openEpisodes")
IMAGE = "spec/template/spec/containers/0/image"
SERVED = {"type": "Ready", "status": "True", "reason": "Serving", "message": ""}

# The judge's finding, where the world is spoiled, and the replacement.
SPOILED = [
    *(("missing", f"children/{kind}/{ENGINE}", DELETED) for kind in CHILDREN),
    *(
        ("otherwise", f"children/{kind}/{ENGINE}/metadata/{field}", value)
        for kind in CHILDREN
        for field, value in [
            ("ownerReferences", []),
            ("ownerReferences", [{"uid": "another"}]),
            ("labels", {}),
        ]
    ),
    ("otherwise", f"children/Deployment/{ENGINE}/spec/replicas", 3),
    ("otherwise", f"children/Deployment/{ENGINE}/spec/progressDeadlineSeconds", 1),
    (
        "otherwise",
        f"children/Deployment/{ENGINE}/spec/template/spec/automountServiceAccountToken",
        True,
    ),
    ("otherwise", f"children/Deployment/{ENGINE}/{IMAGE}", "registry.example/vllm:latest"),
    ("otherwise", f"children/Service/{ENGINE}/spec/selector", {}),
    ("otherwise", f"children/PodDisruptionBudget/{ENGINE}/spec/maxUnavailable", 2),
    ("otherwise", f"children/ConfigMap/{ENGINE}/data", {}),
    ("unrun", f"children/Deployment/{ENGINE}/status", {}),
    ("unrun", f"children/Deployment/{ENGINE}/status", {"readyReplicas": 3}),
    *(("untrue", f"simulators/one/status/{field}", "another") for field in FIELDS),
    *(
        ("untrue", f"simulators/{name}/status/conditions/{type_}/status", "Nobody knows")
        for name in ("one", "idle")
        for type_ in CONDITIONS
    ),
    ("untrue", "simulators/one/status", DELETED),
    ("untrue", "simulators/rival/status/digest", "another"),
    ("untrue", "simulators/rival/status/observedGeneration", "another"),
    ("untrue", "simulators/rival/status/conditions/Ready/status", "True"),
    ("untrue", "simulators/rival/status/conditions/Ready", SERVED),
    ("untrue", "simulators/rival/status/conditions/Ready/message", "idle is the same simulator"),
    ("untrue", "aliases/stable/status/observedGeneration", "another"),
    ("untrue", "aliases/stable/status/digest", "another"),
    ("untrue", "aliases/stable/status/canaryDigest", "another"),
    ("untrue", "aliases/stable/status/conditions/Resolved/status", "Nobody knows"),
    ("untrue", "aliases/stable/status/conditions/Recorded/status", "Nobody knows"),
    ("untrue", "aliases/stable/spec/simulator", "nobody"),
    ("unrecorded", "rows/0/simulator", OTHER),
    ("unrecorded", "rows/0/ended", 1),
    ("unrecorded", "rows/0/canary", OTHER),
    ("unrecorded", "rows/0/canary_percent", 5),
    ("unrecorded", "rows/0/override", None),
    ("unrecorded", "rows/0/request", "uid-stable/1"),
    ("unrecorded", "rows/3/ended", 0),
]


def spoil(snapshot, path, value):
    *parents, last = path.split("/")
    part = snapshot._asdict()
    for name in parents:
        part = part[index_of(part, name)]
    if value is DELETED:
        del part[last]
    else:
        part[index_of(part, last)] = value


def index_of(part, name):
    """An index of a list, or the type of a condition in it."""
    if isinstance(part, dict):
        return name
    return int(name) if name.isdigit() else [item["type"] for item in part].index(name)


def kinds(snapshot):
    return {finding.kind for finding in judge(snapshot)}


def test_the_judge_finds_nothing_in_a_correct_snapshot():
    assert judge(world()) == []
    assert list(otherwise(world())) == []


@pytest.mark.parametrize("module", ["operator/judge", "operator/snapshot", "operator/usurping"])
def test_the_judge_imports_nothing_of_the_operator(module):
    path = Path(__file__).parents[1] / f"{module}.py"
    imports = [node for node in ast.walk(ast.parse(path.read_text())) if "module" in dir(node)]
    assert imports
    assert not [node.module for node in imports if str(node.module).startswith("agentworld")]


@pytest.mark.parametrize(("kind", "path", "value"), SPOILED)
def test_the_judge_finds_every_divergence(kind, path, value):
    snapshot = world()
    spoil(snapshot, path, value)
    assert kinds(snapshot) == {kind}


@pytest.mark.parametrize(
    "path", [path for _, path, _ in SPOILED if re.match(r"children/\w+/[^/]+/(spec|data)", path)]
)
def test_a_changed_child_is_found_by_comparison_with_the_builder(path):
    snapshot = world()
    spoil(snapshot, path, {})
    _, kind, name, *_ = path.split("/")
    assert {finding.subject for finding in otherwise(snapshot)} == {f"{kind} {name}"}


def test_a_changed_field_known_only_to_the_builder_is_found():
    snapshot = world()
    field = "template/spec/securityContext/runAsNonRoot"
    spoil(snapshot, f"children/Deployment/{ENGINE}/spec/{field}", False)
    assert [finding.kind for finding in otherwise(snapshot)] == ["otherwise"]


def test_leftover_children_of_a_deleted_simulator_are_found():
    snapshot = world()
    del snapshot.simulators["idle"]
    subjects = {finding.subject for finding in judge(snapshot) if finding.kind == "left over"}
    assert subjects == {f"{kind} {engine_name(OTHER)}" for kind in CHILDREN}


def test_children_orphaned_before_the_deletion_are_not_left_over():
    snapshot = world()
    del snapshot.simulators["idle"]
    for kind in CHILDREN:
        snapshot.children[kind][engine_name(OTHER)]["metadata"]["ownerReferences"] = []
    assert judge(snapshot) == []


def test_a_simulator_that_waits_for_a_deleted_rival_is_found():
    snapshot = world()
    del snapshot.simulators["one"]
    assert {"otherwise", "untrue"} <= kinds(snapshot)


@pytest.mark.parametrize("number", [0, 1], ids=["done", "not known"])
def test_a_move_that_is_recorded_twice_is_found(number):
    snapshot = world()
    snapshot.rows.insert(0, dict(snapshot.rows[number]))
    assert kinds(snapshot) == {"recorded twice"}


def add_restored_change(snapshot, **fields):
    """The operator restores the previous target of `stable`, or sets another one."""
    restored_fields = {
        "set_by": "the operator (by comparing lists; nobody asked)",
        "override": "refused",
    }
    snapshot.rows.append(
        snapshot.rows[0] | {"simulator": OTHER, "override": "move 3", "request": "u/1"}
    )
    snapshot.rows.append(snapshot.rows[0] | restored_fields | fields)
    condition = {"type": "Recorded", "status": "True", "reason": "Returned", "message": ""}
    spoil(snapshot, "aliases/stable/status/conditions/Recorded", condition)
    return snapshot


def test_an_alias_restored_after_a_refusal_is_correct():
    snapshot = add_restored_change(world())
    assert judge(snapshot) == []
    snapshot.aliases["stable"]["status"]["conditions"][1]["reason"] = "AsAsked"
    assert kinds(snapshot) == {"untrue"}


@pytest.mark.parametrize("fields", [{"simulator": OTHER}, {"canary": OTHER}, {"request": "u/2"}])
def test_an_unrequested_alias_change_by_the_operator_is_found(fields):
    assert "unasked" in kinds(add_restored_change(world(), **fields))


def test_several_findings_about_one_object_count_as_one_object():
    snapshot = world()
    del snapshot.simulators["one"]["status"]
    assert len(judge(snapshot)) > 1
    assert diverged(judge(snapshot)) == 1


def lease(replica, sent):
    return Written(replica, sent, "PUT lease", "lease", holds=True)


def write(replica, sent):
    return Written(replica, sent, "PATCH it", "write")


def test_a_renewing_leader_and_its_successor_may_write():
    writes = [lease("a", 0), write("a", 3), lease("a", 4), write("a", 8), lease("b", 20)]
    assert usurped([*writes, write("b", 21)], [], 5.0) == []


def test_a_replica_without_a_renewed_lease_may_not_write():
    late_write, early_write = write("a", 10), write("b", 1)
    assert usurped([lease("a", 0), late_write, early_write], [], 5.0) == [early_write, late_write]


@pytest.mark.parametrize("process", ["a", OURS])
def test_a_stalled_replica_may_only_finish_its_active_call(process):
    active_write, later_write, other_stall = (
        write("a", 30.5),
        write("a", 40.0),
        Stall("b", 30.0, 50.0),
    )
    stalls = [Stall(process, 2.0, 30.0), other_stall]
    assert usurped([lease("a", 0), active_write, later_write], stalls, 5.0) == [later_write]


def test_a_stall_of_a_process_is_recorded(tmp_path):
    journal, stop_event, times = tmp_path / "stalls", threading.Event(), iter([0.0, 0.1, 5.1, 5.2])

    def clock():
        now = next(times, None)
        if now is None:
            stop_event.set()
        return now or 5.2

    watch_stalls("a", journal, stop_event, clock)
    assert stop_event.wait(60)
    assert read_stalls(journal) == [Stall("a", 0.1, 5.1)]


def test_only_tracebacks_through_the_given_paths_are_found(tmp_path):
    def traceback(file, error):
        return f'Traceback (most recent call last):\n  File "/x/{file}"\n{error}\n2026 INFO\n'

    log = tmp_path / "first.log"
    log.write_text(traceback("kopf/a.py", "KeyError: a") + traceback("ours/a.py", "KeyError: 1"))
    assert [mistake.problem for mistake in mistakes([log], ["ours/"])] == [
        "first.log has KeyError: 1"
    ]
    assert len([*mistakes([log])]) == 2
