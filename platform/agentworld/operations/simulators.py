"""A store's simulators as people ask for them: by an alias, a digest or its start, or a folder."""

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
    """Whether a simulator is validated, and how many answers say so."""

    validated: bool
    """Whether the evaluation of it that was attached last keeps its rule."""
    answers: Answers | None
    """How many answers that evaluation rests on; null where nothing was evaluated."""
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
    """What a store knows of a simulator."""

    simulator: Digest
    world_model: str
    """Its registered version; else its artifact, or what is asked of somebody's endpoint."""
    verifiable: bool
    """False for an endpoint: nobody can tell what it serves."""
    aliases: tuple[str, ...]
    """That mean it now."""
    size_bytes: int


class SimulatorSheet(SimulatorSummary):
    """A simulator with all that it is."""

    folder: str
    reports: tuple[Digest, ...]
    """Evaluations of it, or of its weights."""
    manifest: SimulatorManifest


class MoveConditions(NamedTuple):
    """What lets a name move."""

    gate: tuple[Gate, ...] = ()
    report: str | None = None
    """The digest of the evaluation that the gate is judged by."""
    override: str | None = None
    """Why it may move whatever the gate says."""


_NO_ALIAS = ("not-found", "input")
"""What a service says of a name that nobody gave, and of one that nobody can give."""

NOTHING = MoveConditions()
"""No gate is asked."""


def find(name: str, store: Path) -> PinnedSimulator:
    """The simulator of an alias, of the start of a digest, or in a folder (that has a slash).

    Raises NotFound, or InputError.
    """
    if "/" in name:
        return PinnedSimulator.read(Path(name))
    return SimulatorStore(store).find(_meanings(store).get(name, name))


def resolve_simulator(name: str, store: Path) -> PinnedSimulator:
    """The simulator of this store that a job is given, in any of these ways.

    Where a service is deployed, it says what an alias means; raises SimulatorError where it does
    not answer, or not this credential.
    """
    if "/" in name:
        name = PinnedSimulator.read(Path(name)).digest
    if name.startswith("sha256:"):  # an alias holds no colon
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
    """All that is known of one simulator."""
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
    """Adds an evaluation, and keeps it where a service judges moves of aliases by it."""
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
    """From now on the alias means this simulator; judged and recorded as a service does it.

    Told again with its key it is recorded once, and moves nothing back. Raises InputError for what
    is wrong, and Conflict where the gate refuses it.
    """
    simulator = find(name, store)
    try:
        words = {"by": by, "reason": reason}
        fields = {"simulator": simulator.digest, **words, **conditions._asdict()}
        move = AliasMove.model_validate({"kind": "simulator", **fields})
    except ValidationError as error:
        raise InputError(f"{alias!r} cannot be set so; correct {first_problem(error)}") from error
    with closing(open_ledger(store)) as ledger:
        signer = AliasMoveSigner(ledger, statement_signer_of(Stores.of(store), ledger))
        artifact = simulator.manifest.artifact
        return signer.move(alias, move, artifact, key or new_name(), dry_run=False)


def alias_history(store: Path, alias: str | None = None) -> list[AliasChange]:
    """What an alias, or each, meant over time; raises NotFound for one that means nothing."""
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
    except NotFound:  # no ledger, and so no alias
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
    """The domain whose tasks an agent learns; raises InputError where its simulator has it not."""
    return simulator.manifest.domain_of(recipe.agent.domain or "")
