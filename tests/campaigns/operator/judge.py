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
from campaigns.operator.seen import CHILDREN, Object, Seen

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


def judge(seen: Seen) -> list[Finding]:
    """All that is wrong."""
    served = [each for each in seen.simulators.values() if is_served(each, seen)]
    return [
        *(found for each in served for found in _children(each, seen)),
        *(found for each in served for found in _told(each, seen)),
        *(found for each in seen.simulators.values() for found in _refused(each, seen)),
        *_left_over([engine_name(digest_of(each)) for each in served], seen),
        *(found for each in seen.aliases.values() for found in _alias(each, seen)),
        *_names(seen),
        *_moves(seen),
    ]


def unlike(kind: str, about: str, expected: object, seen: object) -> Finding:
    """`about` is an object, as kind and name, and perhaps a comma and a part of it."""
    problem = f"{about} should be {expected!r} and is {seen!r}"
    return Finding(kind, problem, about.partition(",")[0])


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


def is_served(simulator: Object, seen: Seen) -> bool:
    """Whether no older one is the same simulator."""
    return _rival(simulator, seen) is None


def _rival(simulator: Object, seen: Seen) -> str | None:
    """The older one of its digest that is served in its place."""
    same = [each for each in seen.simulators.values() if digest_of(each) == digest_of(simulator)]
    oldest = min(same, key=lambda each: (_meta(each, "creationTimestamp"), _meta(each, "uid")))
    return None if oldest is simulator else _name(oldest)


def _children(simulator: Object, seen: Seen) -> Iterator[Finding]:
    digest = digest_of(simulator)
    name, label = engine_name(digest), digest.removeprefix("sha256:")[:32]
    for kind in CHILDREN:
        about, child = f"{kind} {name}", seen.children[kind].get(name)
        if child is None:
            yield unlike("missing", about, f"a child of {_name(simulator)}", None)
            continue
        owners = [each["uid"] for each in child["metadata"].get("ownerReferences", [])]
        yield from _same("otherwise", f"{about}, its owners", [_meta(simulator, "uid")], owners)
        labels = child["metadata"].get("labels", {})
        yield from _same("otherwise", f"{about}, its label", label, labels.get(_LABEL))
        wanted = _wanted(simulator, seen)[kind]
        for path, value in wanted.items():
            yield from _same("otherwise", f"{about}, {path}", value, _at(child, path))


def _wanted(simulator: Object, seen: Seen) -> dict[str, Object]:
    """Of each kind of child, what its fields are."""
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
            "spec.replicas": wanted_replicas(simulator, seen.episodes.get(digest, 0)),
            "spec.selector.matchLabels": selector,
            "spec.progressDeadlineSeconds": serving.get("startupSeconds", 900) + 60,
            "spec.template.spec.containers.0.image": (
                f"{serving['image']}@{manifest['engine']['image']}"
            ),
            "spec.template.spec.automountServiceAccountToken": False,
        },
    }


def _told(simulator: Object, seen: Seen) -> Iterator[Finding]:
    """The status of one that is served, whose engine runs as wanted."""
    digest = digest_of(simulator)
    name, wanted = engine_name(digest), wanted_replicas(simulator, seen.episodes.get(digest, 0))
    if deployment := seen.children["Deployment"].get(name):
        ready = deployment.get("status", {}).get("readyReplicas", 0)
        yield from _same("unrun", f"Deployment {name}, ready replicas", wanted, ready)
    about, status = f"Simulator {_name(simulator)}", simulator.get("status", {})
    for field, value in {
        "observedGeneration": _meta(simulator, "generation"),
        "digest": digest,
        "replicas": wanted,
        "readyReplicas": wanted,
        "openEpisodes": seen.episodes.get(digest, 0),
    }.items():
        yield from _same("untrue", f"{about}, status.{field}", value, status.get(field))
    told = _conditions(simulator)
    for type_, value in _promised(simulator, wanted).items():
        yield from _same("untrue", f"{about}, {type_}", value, told.get(type_))
    verified = told.get("Verified")
    if verified != ("True", "FilesMatch") and (wanted or verified != ("Unknown", "NotYet")):
        yield unlike("untrue", f"{about}, Verified", ("True", "FilesMatch"), verified)


def _promised(simulator: Object, wanted: int) -> dict[str, tuple[str, str]]:
    serving = simulator["spec"]["serving"]
    calm = {"Degraded": ("False", "AsWanted")}
    if wanted:
        return calm | dict.fromkeys(("EngineReady", "Ready"), ("True", "Serving"))
    reason = "Suspended" if serving.get("suspend") else "ScaledToZero"
    engine = "False", reason
    waits = serving.get("bounds") and not serving.get("suspend")
    return calm | {"EngineReady": engine, "Ready": ("True", "Idle") if waits else engine}


def _refused(simulator: Object, seen: Seen) -> Iterator[Finding]:
    """The status of one that another one is served in place of."""
    rival = _rival(simulator, seen)
    if rival is None:
        return
    about, status = f"Simulator {_name(simulator)}", simulator.get("status", {})
    for field, value in {
        "observedGeneration": _meta(simulator, "generation"),
        "digest": digest_of(simulator),
    }.items():
        yield from _same("untrue", f"{about}, status.{field}", value, status.get(field))
    ready = _conditions(simulator).get("Ready")
    yield from _same("untrue", f"{about}, Ready", ("False", "SameAsAnother"), ready)
    said = [each["message"] for each in status.get("conditions", ()) if each["type"] == "Ready"]
    if said and not said[0].startswith(f"{rival} is the same simulator"):
        yield unlike("untrue", f"{about}, Ready", f"a word about {rival}", said[0])


def _left_over(names: list[str], seen: Seen) -> Iterator[Finding]:
    """What somebody took from its owner, before that went, is theirs and no child any more."""
    for kind in CHILDREN:
        for name, child in seen.children[kind].items():
            if name not in names and _meta(child, "ownerReferences"):
                yield unlike("left over", f"{kind} {name}", None, "there")


def _alias(alias: Object, seen: Seen) -> Iterator[Finding]:
    """The name means what this object asked for, by the ledger; its status says so."""
    about, status = f"SimulatorAlias {_name(alias)}", alias.get("status", {})
    generation = _meta(alias, "generation")
    yield from _same(
        "untrue", f"{about}, observedGeneration", generation, status.get("observedGeneration")
    )
    rows = [row for row in seen.rows if row["alias"] == _name(alias)]
    reason = alias["spec"]["override"]["reason"]
    asked = [row for row in rows if row["override"] == reason]
    if not asked:
        yield unlike("unrecorded", about, reason, None)
        return
    last, request = rows[-1], f"{_meta(alias, 'uid')}/{generation}"
    wanted = *_wanted_terms(alias, asked[-1], seen), 0, request
    word = *_terms(last), last["ended"], last["request"]
    if wanted != word:
        yield unlike("unrecorded", about, wanted, word)
        return
    yield from _same("untrue", f"{about}, status.digest", last["simulator"], status.get("digest"))
    canary = status.get("canaryDigest")
    yield from _same("untrue", f"{about}, status.canaryDigest", last["canary"], canary)
    told = _conditions(alias)
    recorded = "True", "Returned" if _is_operators(last) else "AsAsked"
    yield from _same("untrue", f"{about}, Recorded", recorded, told.get("Recorded"))
    resolved = _resolved(alias, last, seen)
    yield from _same("untrue", f"{about}, Resolved", resolved, told.get("Resolved"))


def _wanted_terms(alias: Object, row: Object, seen: Seen) -> tuple[object, ...]:
    """What a row says of what the spec names, but for what was certainly another one then."""
    simulator, canary = alias["spec"]["simulator"], alias["spec"].get("canary")
    return (
        _digest_then(simulator, row, seen) or row["simulator"],
        canary and (_digest_then(canary["simulator"], row, seen) or row["canary"]),
        canary and canary["percent"],
    )


def _digest_then(name: str, row: Object, seen: Seen) -> str | None:
    """Of the Simulator of a name that was there when a row was written, if it still is."""
    found = seen.simulators.get(name)
    if found is None:
        return None
    created = datetime.fromisoformat(str(_meta(found, "creationTimestamp")))
    # Which is told in whole seconds.
    is_older = created + timedelta(seconds=1) <= datetime.fromisoformat(row["at"])
    return digest_of(found) if is_older else None


def _resolved(alias: Object, last: Object, seen: Seen) -> tuple[str, str]:
    """Whether the named Simulators are those that were recorded."""
    canary = alias["spec"].get("canary")
    named = [alias["spec"]["simulator"], *([canary["simulator"]] if canary else [])]
    means = [_meaning(name, seen) for name in named]
    if problem := next((reason for digest, reason in means if digest is None), None):
        return "False", problem
    recorded = [last["simulator"], *([last["canary"]] if canary else [])]
    return (
        ("True", "Found")
        if [digest for digest, _ in means] == recorded
        else ("False", "AnotherSimulator")
    )


def _terms(row: Object) -> tuple[object, ...]:
    return row["simulator"], row["canary"], row["canary_percent"]


def _is_operators(row: Object) -> bool:
    """Whether no user requested it."""
    return "by comparing lists" in str(row["set_by"])


def _names(seen: Seen) -> Iterator[Finding]:
    """A name without an object means nothing, and the operator gives none a new meaning."""
    last = {row["alias"]: row for row in seen.rows}
    for name in last.keys() - seen.aliases.keys():
        yield from _same("unrecorded", f"SimulatorAlias {name}", 1, last[name]["ended"])
    for number, row in enumerate(seen.rows):
        before = [
            each
            for each in seen.rows[:number]
            if (each["alias"], each["request"]) == (row["alias"], row["request"])
            and not each["ended"]
            and not _is_operators(each)
        ]
        if _is_operators(row) and not row["ended"] and _terms(row) not in map(_terms, before):
            yield unlike("unasked", f"SimulatorAlias {row['alias']}", "nothing", _terms(row))


def _meaning(name: str, seen: Seen) -> tuple[str | None, str]:
    """The digest that a name stands for, or why it stands for none."""
    found = seen.simulators.get(name)
    if found is None:
        return None, "NoSimulator"
    return (None, "NotVerified") if _rival(found, seen) else (digest_of(found), "")


def _moves(seen: Seen) -> Iterator[Finding]:
    """What was done is recorded once; what was refused, or is not known, at most once."""
    times = Counter(row["override"] for row in seen.rows)
    for move in seen.moves:
        about, found = f"SimulatorAlias {move['alias']}, {move['reason']}", times[move["reason"]]
        if found > 1:
            yield unlike("recorded twice", about, 1, found)
        elif move["outcome"] == "done" and not found:
            yield unlike("unrecorded", about, 1, 0)


def _same(kind: str, about: str, expected: object, seen: object) -> Iterator[Finding]:
    if expected != seen:
        yield unlike(kind, about, expected, seen)


def _conditions(found: Object) -> dict[str, tuple[str, str]]:
    told = found.get("status", {}).get("conditions", ())
    return {each["type"]: (each["status"], each["reason"]) for each in told}


def _at(found: object, path: str) -> object:
    for part in path.split("."):
        if isinstance(found, list):
            found = found[int(part)] if int(part) < len(found) else None
        elif isinstance(found, dict):
            found = found.get(part)
    return found


def _meta(found: Object, name: str) -> object:
    return found["metadata"].get(name)


def _name(found: Object) -> str:
    return str(found["metadata"]["name"])
