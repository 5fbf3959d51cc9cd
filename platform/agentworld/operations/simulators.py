"""A store's simulators, by alias, digest or its start, or folder."""

import asyncio
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, Self

from pydantic import ValidationError

from agentworld.audit.read.sources import world_models_of
from agentworld.client.simulator import SimulatorClient
from agentworld.errors import InputError, NotFound, SimulatorError
from agentworld.lineage.base import Registry
from agentworld.operations.ledger import existing_ledger, open_ledger
from agentworld.operations.registry import existing_registry
from agentworld.operations.serving import deployed_service
from agentworld.recipes import Recipe
from agentworld.records.base import Digest, Record, first_problem
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.episode import new_name
from agentworld.records.gate import Gate
from agentworld.records.report import Report
from agentworld.records.simulator import Endpoint, SimulatorManifest
from agentworld.records.statements.alias import AliasChange, AliasKind, AliasMove
from agentworld.records.validation import Answers
from agentworld.runner.remote import keep
from agentworld.serving.setup import statement_signer_of
from agentworld.signing.envelope import Statement
from agentworld.signing.model_signing import model_statement
from agentworld.statements.alias_moves import AliasMoveSigner
from agentworld.storage.objects import ObjectStore
from agentworld.storage.simulators import PinnedSimulator, SimulatorStore
from agentworld.storage.stores import Stores


class Validity(Record):
    """Whether a simulator is validated, and on how many answers that is based."""

    validated: bool
    """Whether the last attached evaluation meets its validation rule."""
    answers: Answers | None
    """The number of answers in that evaluation; null without an evaluation."""
    problems: tuple[str, ...]
    """Why it is not validated."""

    @classmethod
    def of(cls, simulator: PinnedSimulator) -> Self:
        """By its attached reports."""
        validation = simulator.validation
        if validation is None:
            problems = ("no evaluation is attached; run `agentworld evaluate served`",)
            return cls(validated=False, answers=None, problems=problems)
        return cls(
            validated=validation.passed,
            answers=validation.answers,
            problems=validation.problems,
        )


class SimulatorSummary(Validity):
    """A summary of a simulator in a store."""

    simulator: Digest
    world_model: str
    """Its registered version; otherwise its artifact, or the model of a third-party endpoint."""
    verifiable: bool
    """False for a third-party endpoint, which cannot be verified."""
    aliases: tuple[str, ...]
    """The aliases that currently point at it."""
    size_bytes: int


class SimulatorSheet(SimulatorSummary):
    """All details of a simulator."""

    folder: str
    reports: tuple[Digest, ...]
    """Evaluations of it, or of its weights."""
    manifest: SimulatorManifest


class MoveConditions(NamedTuple):
    """The conditions of a move of an alias."""

    gate: tuple[Gate, ...] = ()
    report: str | None = None
    """The digest of the evaluation that the gate uses."""
    override: str | None = None
    """The reason to move it although the gate refuses."""


_NO_ALIAS = ("not-found", "input")
"""The kinds of a service's answers for an unknown alias, and for an invalid one."""

NOTHING = MoveConditions()
"""No conditions: the alias moves without a gate."""


def find(name: str, store: Path) -> PinnedSimulator:
    """The simulator of an alias, of the start of a digest, or in a folder (with a slash in its
    name). Raises NotFound, or InputError.
    """
    if "/" in name:
        return PinnedSimulator.read(Path(name))
    return SimulatorStore(store).find(_meanings(store).get(name, name))


def resolve_simulator(name: str, store: Path) -> PinnedSimulator:
    """The simulator of this store that a job is given, in any of these ways.

    A deployed service resolves aliases; raises SimulatorError if it does not answer or refuses the
    credential.
    """
    if "/" in name:
        name = PinnedSimulator.read(Path(name)).digest
    if name.startswith("sha256:"):  # an alias has no colon
        return SimulatorStore(store).find(name)
    client = deployed_service()
    place = "at AGENTWORLD_SERVICE_URL" if client else f"in {store}"
    digest = asyncio.run(_meaning_at(client, name)) if client else _meanings(store).get(name)
    try:
        return SimulatorStore(store).find(digest or name)
    except NotFound as error:
        problem = f"{name!r} means {digest}" if digest else f"there is no alias {name!r}"
        raise NotFound(f"{problem} {place}, and {error}") from error


def summaries(store: Path) -> list[SimulatorSummary]:
    """All simulators of a store."""
    meanings, registry = _meanings(store), existing_registry(store)
    simulators = SimulatorStore(store).all()
    return [
        SimulatorSummary(**_summary_fields(simulator, meanings, registry))
        for simulator in simulators
    ]


def sheet(simulator: PinnedSimulator, store: Path) -> SimulatorSheet:
    """All details of one simulator."""
    return SimulatorSheet(
        **_summary_fields(simulator, _meanings(store), existing_registry(store)),
        folder=str(simulator.folder),
        reports=tuple(simulator.reports),
        manifest=simulator.manifest,
    )


def signing_statement(simulator: PinnedSimulator) -> Statement:
    """Its model's files in the OpenSSF form, unsigned; raises InputError for an endpoint."""
    manifest = simulator.manifest
    if manifest.artifact is None:
        raise InputError(
            f"{simulator.digest} is the world of an endpoint, which has no files to sign; name one"
            " with weights"
        )
    return model_statement(ArtifactManifest(files=manifest.files), manifest.artifact)


def attach(simulator: PinnedSimulator, report: Report, store: Path) -> None:
    """Attaches an evaluation, and stores it where a service reads it to judge moves of aliases."""
    simulator.attach(report)
    keep(simulator.folder)
    ObjectStore(Stores.objects_url_of(store)).put(report.canonical)


def set_alias(
    alias: str,
    name: str,
    store: Path,
    by: str,
    conditions: MoveConditions = NOTHING,
    key: str | None = None,
    reason: str | None = None,
) -> AliasChange:
    """Points the alias at this simulator; the move is judged and recorded as a service does it.

    A repeated call with the same key is recorded once, and undoes no later move. Raises InputError
    for invalid values, and Conflict if the gate refuses it.
    """
    simulator = find(name, store)
    try:
        words = {"by": by, "reason": reason}
        fields = {"simulator": simulator.digest, **words, **conditions._asdict()}
        move = AliasMove.model_validate({"kind": "simulator", **fields})
    except ValidationError as error:
        raise InputError(f"{alias!r} cannot be set; correct {first_problem(error)}") from error
    with closing(open_ledger(store)) as ledger:
        signer = AliasMoveSigner(ledger, statement_signer_of(Stores.of(store), ledger))
        artifact = simulator.manifest.artifact
        return signer.move(alias, move, artifact, key or new_name(), dry_run=False)


def alias_history(store: Path, alias: str | None = None) -> list[AliasChange]:
    """The history of an alias, or of each; raises NotFound for an unknown alias."""
    changes = _history(store, alias)
    if alias is not None and not changes:
        raise NotFound(
            f"there is no alias {alias!r} in {store}; set it with `agentworld alias set`, or give"
            " another --store"
        )
    return changes


def _history(
    store: Path, alias: str | None = None, kind: AliasKind | None = None
) -> list[AliasChange]:
    try:
        with closing(existing_ledger(store)) as ledger:
            return ledger.aliases.history(alias, kind)
    except NotFound:  # no ledger, so no aliases
        return []


def _meanings(store: Path) -> dict[str, Digest]:
    newest = {change.alias: change for change in _history(store, kind="simulator")}
    return {alias: change.simulator for alias, change in newest.items() if not change.ended}


async def _meaning_at(client: SimulatorClient, alias: str) -> Digest | None:
    try:
        return await client.meaning(alias)
    except SimulatorError as error:
        if error.kind not in _NO_ALIAS:
            raise
        return None
    finally:
        await client.close()


def _summary_fields(
    simulator: PinnedSimulator, meanings: Mapping[str, Digest], registry: Registry | None
) -> dict[str, object]:
    manifest = simulator.manifest
    return {
        "simulator": simulator.digest,
        "world_model": _world_model(manifest, registry),
        "verifiable": manifest.artifact is not None,
        **dict(Validity.of(simulator)),
        "aliases": tuple(name for name, digest in meanings.items() if digest == simulator.digest),
        "size_bytes": simulator.size_bytes,
    }


def _world_model(manifest: SimulatorManifest, registry: Registry | None) -> str:
    if isinstance(manifest.engine, Endpoint):
        return f"{manifest.engine.model} at {manifest.engine.url}"
    versions = world_models_of(manifest, registry) if registry else []
    return ", ".join(map(str, versions)) or str(manifest.artifact)


def domain_of_agent(recipe: Recipe, simulator: PinnedSimulator) -> str:
    """The domain whose tasks an agent learns; raises InputError if its simulator lacks it."""
    return simulator.manifest.domain_of(recipe.agent.domain or "")
