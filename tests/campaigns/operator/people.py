"""Users of the cluster during a campaign: they create and delete Simulators, move aliases, play,
and interfere.

A journal has the requested moves of aliases, with their results.
"""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import httpx

import make.access
from agentworld.cluster.names import DIGEST_LABEL
from agentworld.errors import ClusterError
from campaigns.harness.journal import Journal
from campaigns.operator.crew import Crew
from make import records
from make.operator import Namespace, Object
from make.simulator import alias, pinned_manifest, simulator

SEEDS = ("one", "two", "three", "four")
DIGESTS = {pinned_manifest(seed).digest: seed for seed in SEEDS}
_NAMES = tuple(f"world-{number}" for number in range(6))
_ALIASES = ("stable", "next", "trial")
_CHILDREN = ("ConfigMap", "Service", "Deployment", "PodDisruptionBudget")
_PAUSE_SECONDS = 0.35
_MOST_EPISODES = 12

Deed = Callable[[], None]


class People:
    """Each user does one action after another, and accepts refusals."""

    def __init__(self, crew: Crew, seed: str) -> None:
        self.refused: int = 0
        self.done: int = 0
        self._namespace: Namespace = crew.place.namespace
        self._url = crew.service_url
        self._seed = seed
        self._moves = Journal(crew.place.folder / "moves.jsonl")
        self._num_moves = 0
        self.num_moved = 0
        """Aliases that moved as requested."""
        self._runs: list[str] = []
        self._episodes: list[str] = []
        self._http = httpx.Client(
            trust_env=False,
            timeout=6.0,
            headers={"Authorization": make.access.bearer("acme-agent")},
        )

    def begin(self) -> None:
        """Creates initial objects."""
        for name, seed in zip(_NAMES, SEEDS[:3], strict=False):
            self._namespace.create(simulator(name, seed, replicas=1))

    async def work(self) -> None:
        """Runs all users until they are canceled."""
        strands = {
            "builder": (self._create, self._create, self._delete, self._serve, self._serve),
            "mover": (self._name, self._name, self._name, self._unname),
            "player": (self._open, self._open, self._open, self._end, self._close),
            "meddler": (self._meddle, self._meddle, self._unmake, self._delete_pod),
        }
        async with asyncio.TaskGroup() as group:
            for name, deeds in strands.items():
                group.create_task(self._strand(random.Random(f"{name} {self._seed}"), deeds))

    async def _strand(
        self, chance: random.Random, deeds: Sequence[Callable[[random.Random], None]]
    ) -> None:
        while True:
            deed = chance.choice(deeds)
            try:
                await asyncio.to_thread(deed, chance)
                self.done += 1
            except (ClusterError, httpx.HTTPError):
                self.refused += 1
            await asyncio.sleep(_PAUSE_SECONDS * chance.uniform(0.3, 1.7))

    def _create(self, chance: random.Random) -> None:
        name, seed = chance.choice(_NAMES), chance.choice(SEEDS)
        self._namespace.create(simulator(name, seed, **_serving(chance)))

    def _delete(self, chance: random.Random) -> None:
        self._namespace.delete("Simulator", self._one("Simulator", chance))

    def _serve(self, chance: random.Random) -> None:
        """Changes how a Simulator is served."""
        self._namespace.change(self._one("Simulator", chance), **_serving(chance))

    def _name(self, chance: random.Random) -> None:
        """Moves an alias; each time with another reason."""
        name = chance.choice(_ALIASES)
        target, canary_target = self._one("Simulator", chance), self._one("Simulator", chance)
        self._num_moves += 1
        reason = f"move {self._num_moves}"
        canary = {"simulator": canary_target, "percent": 10} if chance.random() < 0.3 else None
        spec = {"canary": canary, "override": {"reason": reason}}
        entry = {"alias": name, "reason": reason, "simulator": target, "at": time.time()}
        exists = name in self._namespace.names("SimulatorAlias")
        try:
            if exists:
                body = {"spec": {"simulator": target, **spec}}
                self._namespace.patch("SimulatorAlias", name, body)
            else:
                spec_fields = {key: value for key, value in spec.items() if value}
                self._namespace.create(alias(target, name, **spec_fields))
        except ClusterError as error:
            # Without a response, or after a failure of the server, the result is unknown.
            outcome = "refused" if 400 <= error.status < 500 else "unknown"
            self._moves.write(**entry, outcome=outcome, said=str(error))
            raise
        self._moves.write(**entry, outcome="done")
        self.num_moved += 1

    def _unname(self, chance: random.Random) -> None:
        self._namespace.delete("SimulatorAlias", self._one("SimulatorAlias", chance))

    def _one(self, kind: str, chance: random.Random) -> str:
        """The name of an object that exists, or existed a moment ago."""
        names = self._namespace.names(kind)
        return chance.choice(names) if names else "nobody"

    def _open(self, chance: random.Random) -> None:
        """Opens an episode, sometimes in a new run."""
        if len(self._episodes) > _MOST_EPISODES:
            self._end(chance)
            return
        if not self._runs or chance.random() < 0.4:
            body = {
                "agent": "a",
                "starting_weights": records.digest("starting"),
                "simulator": chance.choice(list(DIGESTS)),
            }
            self._runs.append(self._ask("/runs", **body)["run"]["id"])
        episode = self._ask("/episodes", run=chance.choice(self._runs))
        self._episodes.append(episode["episode"])

    def _end(self, chance: random.Random) -> None:
        if self._episodes:
            episode = self._episodes.pop(chance.randrange(len(self._episodes)))
            self._ask(f"/episodes/{episode}/close")

    def _close(self, chance: random.Random) -> None:
        """Closes a run with its open episodes; then its Simulator may be deleted."""
        if self._runs:
            run = self._runs.pop(chance.randrange(len(self._runs)))
            self._ask(f"/runs/{run}/close", final_weights=records.digest("final"))

    def _ask(self, path: str, **body: object) -> dict[str, Any]:
        answer = self._http.post(self._url + path, json=body)
        answer.raise_for_status()
        response_body: dict[str, Any] = answer.json() if answer.content else {}
        return response_body

    def _meddle(self, chance: random.Random) -> None:
        """Changes a part of the operator's child objects."""
        kind = chance.choice(_CHILDREN)
        child = self._child(kind, chance)
        if child:
            edit = chance.choice([*_EDITS[kind], *_EDITS["any"]])
            self._namespace.patch(kind, child["metadata"]["name"], edit)

    def _unmake(self, chance: random.Random) -> None:
        kind = chance.choice(_CHILDREN)
        if child := self._child(kind, chance):
            self._namespace.delete(kind, child["metadata"]["name"])

    def _delete_pod(self, chance: random.Random) -> None:
        if pod := self._child("Pod", chance):
            self._namespace.delete("Pod", pod["metadata"]["name"])

    def _child(self, kind: str, chance: random.Random) -> Object | None:
        children = self._namespace.all(kind, DIGEST_LABEL).objects
        return chance.choice(children) if children else None


def _serving(chance: random.Random) -> Object:
    if chance.random() < 0.5:
        bounds = {"min": 0, "max": 3, "episodesPerReplica": 2, "idleSeconds": 1}
        return {"bounds": bounds, "suspend": chance.random() < 0.1}
    return {
        "bounds": None,
        "replicas": chance.randrange(4),
        "suspend": chance.random() < 0.2,
        "startupSeconds": chance.choice((600, 900)),
    }


def _labelled(value: str | None) -> Object:
    return {"metadata": {"labels": {DIGEST_LABEL: value}}}


_EDITS: dict[str, list[Object]] = {
    "any": [
        {"metadata": {"ownerReferences": None}},
        {"metadata": {"labels": {"app.kubernetes.io/part-of": "mine"}}},
        {"metadata": {"labels": {"team": "mine"}}},
        _labelled(None),
        _labelled("0" * 32),
    ],
    "ConfigMap": [],
    "Service": [{"spec": {"selector": {"app.kubernetes.io/name": "mine"}}}],
    "Deployment": [
        {"spec": {"replicas": 5}},
        {"spec": {"template": {"spec": {"automountServiceAccountToken": True}}}},
        {"spec": {"progressDeadlineSeconds": 77}},
        {"spec": {"template": {"metadata": {"labels": {"app.kubernetes.io/part-of": "me"}}}}},
    ],
    "PodDisruptionBudget": [{"spec": {"maxUnavailable": 3}}],
}
"""Merged into a child of that kind."""
