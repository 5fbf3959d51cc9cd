"""The judge: compares the cluster's state with the specs, independent of the operator's code.

It knows the resources' fields, the names derived from digests, and the meaning of conditions. A
Deployment states its number of replicas; its pods, and the removal of a deleted one's, are
Kubernetes' own, whose collector may take minutes after an API server died.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

import rfc8785

from campaigns.harness.finding import Finding
from campaigns.operator.snapshot import CHILDREN, Object, Snapshot

_LABEL = "agentworld.dev/simulator"

PROMISES = {
    "missing": "a child that is not there",
    "left over": "a child of nobody",
    "otherwise": "a child that is not as its Simulator's spec wants it",
    "unrun": "a Deployment that has not the replicas that it wants",
    "untrue": "a status that does not say what is so, or says it of an older spec",
    "unrecorded": "a name whose meaning, or whose move, the ledger does not know",
    "recorded twice": "a move that somebody asked for once",
    "unasked": "a meaning that nobody asked for",
    "restless": "a write while nothing changes",
    "usurped": "a write of who did not lead any more",
    "blind": "a kind that the leader does not watch",
    "mistaken": "a failure that our own code did not expect",
}
"""The broken promise of each kind of finding."""


def judge(snapshot: Snapshot) -> list[Finding]:
    """All findings."""
    served_simulators = [
        simulator for simulator in snapshot.simulators.values() if is_served(simulator, snapshot)
    ]
    return [
        *(child for item in served_simulators for child in _children(item, snapshot)),
        *(item for item in served_simulators for item in _status_findings(item, snapshot)),
        *(
            item
            for simulator in snapshot.simulators.values()
            for item in _refused(simulator, snapshot)
        ),
        *_left_over([engine_name(digest_of(item)) for item in served_simulators], snapshot),
        *(alia for alias in snapshot.aliases.values() for alia in _alias(alias, snapshot)),
        *_names(snapshot),
        *_moves(snapshot),
    ]


def unlike(kind: str, subject: str, expected: object, actual: object) -> Finding:
    """`subject` is an object, as kind and name, optionally followed by a comma and a part of it."""
    problem = f"{subject} should be {expected!r} and is {actual!r}"
    return Finding(kind, problem, subject.partition(",")[0])


def digest_of(simulator: Object) -> str:
    """SHA-256 of the manifest's canonical form."""
    canonical = rfc8785.dumps(simulator["spec"]["identity"]["manifest"])
    return f"sha256:{hashlib.sha256(canonical).hexdigest()}"


def engine_name(digest: str) -> str:
    """The name of all children for a digest."""
    return f"engine-{digest.removeprefix('sha256:')[:32]}"


def wanted_replicas(simulator: Object, open_episodes: int) -> int:
    """The number once no more are needed for the time that its bounds state."""
    serving = simulator["spec"]["serving"]
    bounds = serving.get("bounds")
    if serving.get("suspend"):
        return 0
    if not bounds:
        return int(serving.get("replicas", 1))
    needed = math.ceil(open_episodes / bounds["episodesPerReplica"])
    return int(max(bounds["min"], min(bounds["max"], needed)))


def is_served(simulator: Object, snapshot: Snapshot) -> bool:
    """Whether it is the oldest Simulator with its digest."""
    return _rival(simulator, snapshot) is None


def _rival(simulator: Object, snapshot: Snapshot) -> str | None:
    """The older Simulator with its digest, which is served instead."""
    twins = [
        item for item in snapshot.simulators.values() if digest_of(item) == digest_of(simulator)
    ]
    oldest = min(
        twins,
        key=lambda candidate: (_meta(candidate, "creationTimestamp"), _meta(candidate, "uid")),
    )
    return None if oldest is simulator else _name(oldest)


def _children(simulator: Object, snapshot: Snapshot) -> Iterator[Finding]:
    digest = digest_of(simulator)
    name, label = engine_name(digest), digest.removeprefix("sha256:")[:32]
    for kind in CHILDREN:
        subject, child = f"{kind} {name}", snapshot.children[kind].get(name)
        if child is None:
            yield unlike("missing", subject, f"a child of {_name(simulator)}", None)
            continue
        owners = [item["uid"] for item in child["metadata"].get("ownerReferences", [])]
        yield from _same("otherwise", f"{subject}, its owners", [_meta(simulator, "uid")], owners)
        labels = child["metadata"].get("labels", {})
        yield from _same("otherwise", f"{subject}, its label", label, labels.get(_LABEL))
        expected = _wanted(simulator, snapshot)[kind]
        for path, value in expected.items():
            yield from _same("otherwise", f"{subject}, {path}", value, _at(child, path))


def _wanted(simulator: Object, snapshot: Snapshot) -> dict[str, Object]:
    """The expected fields of each kind of child."""
    digest, manifest = digest_of(simulator), simulator["spec"]["identity"]["manifest"]
    serving = simulator["spec"]["serving"]
    selector = {
        "app.kubernetes.io/name": "agentworld-engine",
        _LABEL: digest.removeprefix("sha256:")[:32],
    }
    return {
        "ConfigMap": {"data": {"manifest.json": rfc8785.dumps(manifest).decode()}},
        "Service": {"spec.clusterIP": "None", "spec.selector": selector},
        "PodDisruptionBudget": {
            "spec.maxUnavailable": 1,
            "spec.selector.matchLabels": selector,
        },
        "Deployment": {
            "spec.replicas": wanted_replicas(simulator, snapshot.episodes.get(digest, 0)),
            "spec.selector.matchLabels": selector,
            "spec.progressDeadlineSeconds": serving.get("startupSeconds", 900) + 60,
            "spec.template.spec.containers.0.image": (
                f"{serving['image']}@{manifest['engine']['image']}"
            ),
            "spec.template.spec.automountServiceAccountToken": False,
        },
    }


def _status_findings(simulator: Object, snapshot: Snapshot) -> Iterator[Finding]:
    """The status of a served Simulator whose engine runs as specified."""
    digest = digest_of(simulator)
    name, replicas = (
        engine_name(digest),
        wanted_replicas(simulator, snapshot.episodes.get(digest, 0)),
    )
    if deployment := snapshot.children["Deployment"].get(name):
        ready = deployment.get("status", {}).get("readyReplicas", 0)
        yield from _same("unrun", f"Deployment {name}, ready replicas", replicas, ready)
    subject, status = f"Simulator {_name(simulator)}", simulator.get("status", {})
    for field, value in {
        "observedGeneration": _meta(simulator, "generation"),
        "digest": digest,
        "replicas": replicas,
        "readyReplicas": replicas,
        "openEpisodes": snapshot.episodes.get(digest, 0),
    }.items():
        yield from _same("untrue", f"{subject}, status.{field}", value, status.get(field))
    conditions = _conditions(simulator)
    for type_, value in _promised(simulator, replicas).items():
        yield from _same("untrue", f"{subject}, {type_}", value, conditions.get(type_))
    verified = conditions.get("Verified")
    if verified != ("True", "FilesMatch") and (replicas or verified != ("Unknown", "NotYet")):
        yield unlike("untrue", f"{subject}, Verified", ("True", "FilesMatch"), verified)


def _promised(simulator: Object, replicas: int) -> dict[str, tuple[str, str]]:
    serving = simulator["spec"]["serving"]
    conditions = {"Degraded": ("False", "AsWanted")}
    if replicas:
        return conditions | dict.fromkeys(("EngineReady", "Ready"), ("True", "Serving"))
    reason = "Suspended" if serving.get("suspend") else "ScaledToZero"
    engine = "False", reason
    is_idle = serving.get("bounds") and not serving.get("suspend")
    return conditions | {"EngineReady": engine, "Ready": ("True", "Idle") if is_idle else engine}


def _refused(simulator: Object, snapshot: Snapshot) -> Iterator[Finding]:
    """The status of a Simulator when another one is served in its place."""
    rival = _rival(simulator, snapshot)
    if rival is None:
        return
    subject, status = f"Simulator {_name(simulator)}", simulator.get("status", {})
    for field, value in {
        "observedGeneration": _meta(simulator, "generation"),
        "digest": digest_of(simulator),
    }.items():
        yield from _same("untrue", f"{subject}, status.{field}", value, status.get(field))
    ready = _conditions(simulator).get("Ready")
    yield from _same("untrue", f"{subject}, Ready", ("False", "SameAsAnother"), ready)
    messages = [item["message"] for item in status.get("conditions", ()) if item["type"] == "Ready"]
    if messages and not messages[0].startswith(f"{rival} is the same simulator"):
        yield unlike("untrue", f"{subject}, Ready", f"a word about {rival}", messages[0])


def _left_over(names: list[str], snapshot: Snapshot) -> Iterator[Finding]:
    """Orphans that a user took from their owner, before that was deleted, are the user's and not
    left-overs.
    """
    for kind in CHILDREN:
        for name, child in snapshot.children[kind].items():
            if name not in names and _meta(child, "ownerReferences"):
                yield unlike("left over", f"{kind} {name}", None, "there")


def _alias(alias: Object, snapshot: Snapshot) -> Iterator[Finding]:
    """The ledger has the alias with this object's target; its status says so."""
    subject, status = f"SimulatorAlias {_name(alias)}", alias.get("status", {})
    generation = _meta(alias, "generation")
    yield from _same(
        "untrue", f"{subject}, observedGeneration", generation, status.get("observedGeneration")
    )
    rows = [row for row in snapshot.rows if row["alias"] == _name(alias)]
    reason = alias["spec"]["override"]["reason"]
    requested_rows = [row for row in rows if row["override"] == reason]
    if not requested_rows:
        yield unlike("unrecorded", subject, reason, None)
        return
    last_row, request = rows[-1], f"{_meta(alias, 'uid')}/{generation}"
    expected = *_wanted_terms(alias, requested_rows[-1], snapshot), 0, request
    actual = *_terms(last_row), last_row["ended"], last_row["request"]
    if expected != actual:
        yield unlike("unrecorded", subject, expected, actual)
        return
    yield from _same(
        "untrue", f"{subject}, status.digest", last_row["simulator"], status.get("digest")
    )
    canary = status.get("canaryDigest")
    yield from _same("untrue", f"{subject}, status.canaryDigest", last_row["canary"], canary)
    conditions = _conditions(alias)
    recorded_state = "True", "Returned" if _is_operators(last_row) else "AsAsked"
    yield from _same("untrue", f"{subject}, Recorded", recorded_state, conditions.get("Recorded"))
    resolved_state = _resolved(alias, last_row, snapshot)
    yield from _same("untrue", f"{subject}, Resolved", resolved_state, conditions.get("Resolved"))


def _wanted_terms(alias: Object, row: Object, snapshot: Snapshot) -> tuple[object, ...]:
    """A row's expected fields by the spec, without those that certainly differed then."""
    simulator, canary = alias["spec"]["simulator"], alias["spec"].get("canary")
    return (
        _digest_then(simulator, row, snapshot) or row["simulator"],
        canary and (_digest_then(canary["simulator"], row, snapshot) or row["canary"]),
        canary and canary["percent"],
    )


def _digest_then(name: str, row: Object, snapshot: Snapshot) -> str | None:
    """The digest of the named Simulator that existed when a row was written, if it still exists."""
    simulator = snapshot.simulators.get(name)
    if simulator is None:
        return None
    creation = datetime.fromisoformat(str(_meta(simulator, "creationTimestamp")))
    # Times are whole seconds.
    is_older = creation + timedelta(seconds=1) <= datetime.fromisoformat(row["at"])
    return digest_of(simulator) if is_older else None


def _resolved(alias: Object, last_row: Object, snapshot: Snapshot) -> tuple[str, str]:
    """Whether the named Simulators are the recorded ones."""
    canary = alias["spec"].get("canary")
    names = [alias["spec"]["simulator"], *([canary["simulator"]] if canary else [])]
    meanings = [_meaning(name, snapshot) for name in names]
    if problem := next((reason for digest, reason in meanings if digest is None), None):
        return "False", problem
    recorded_digests = [last_row["simulator"], *([last_row["canary"]] if canary else [])]
    return (
        ("True", "Found")
        if [digest for digest, _ in meanings] == recorded_digests
        else ("False", "AnotherSimulator")
    )


def _terms(row: Object) -> tuple[object, ...]:
    return row["simulator"], row["canary"], row["canary_percent"]


def _is_operators(row: Object) -> bool:
    """Whether no user requested it."""
    return "by comparing lists" in str(row["set_by"])


def _names(snapshot: Snapshot) -> Iterator[Finding]:
    """An alias without an object has no target, and the operator gives none a new target."""
    last_rows = {row["alias"]: row for row in snapshot.rows}
    for name in last_rows.keys() - snapshot.aliases.keys():
        yield from _same("unrecorded", f"SimulatorAlias {name}", 1, last_rows[name]["ended"])
    for number, row in enumerate(snapshot.rows):
        earlier_rows = [
            item
            for item in snapshot.rows[:number]
            if (item["alias"], item["request"]) == (row["alias"], row["request"])
            and not item["ended"]
            and not _is_operators(item)
        ]
        if _is_operators(row) and not row["ended"] and _terms(row) not in map(_terms, earlier_rows):
            yield unlike("unasked", f"SimulatorAlias {row['alias']}", "nothing", _terms(row))


def _meaning(name: str, snapshot: Snapshot) -> tuple[str | None, str]:
    """The digest that a name refers to, or why it refers to none."""
    simulator = snapshot.simulators.get(name)
    if simulator is None:
        return None, "NoSimulator"
    return (None, "NotVerified") if _rival(simulator, snapshot) else (digest_of(simulator), "")


def _moves(snapshot: Snapshot) -> Iterator[Finding]:
    """A successful move is recorded once; a refused one, or one without a response, at most
    once.
    """
    times = Counter(row["override"] for row in snapshot.rows)
    for move in snapshot.moves:
        subject, count = f"SimulatorAlias {move['alias']}, {move['reason']}", times[move["reason"]]
        if count > 1:
            yield unlike("recorded twice", subject, 1, count)
        elif move["outcome"] == "done" and not count:
            yield unlike("unrecorded", subject, 1, 0)


def _same(kind: str, subject: str, expected: object, actual: object) -> Iterator[Finding]:
    if expected != actual:
        yield unlike(kind, subject, expected, actual)


def _conditions(resource: Object) -> dict[str, tuple[str, str]]:
    conditions = resource.get("status", {}).get("conditions", ())
    return {item["type"]: (item["status"], item["reason"]) for item in conditions}


def _at(value: object, path: str) -> object:
    for part in path.split("."):
        if isinstance(value, list):
            value = value[int(part)] if int(part) < len(value) else None
        elif isinstance(value, dict):
            value = value.get(part)
    return value


def _meta(resource: Object, name: str) -> object:
    return resource["metadata"].get(name)


def _name(resource: Object) -> str:
    return str(resource["metadata"]["name"])
