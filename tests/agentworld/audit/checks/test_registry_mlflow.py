"""Tampering with MLflow is found: in a database, and on a server."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import pytest
from mlflow.entities import Dataset, DatasetInput

from agentworld.audit.checks.registry import verify_version
from agentworld.audit.checks.statements import registrations
from agentworld.audit.checks.store import verify_everything
from agentworld.audit.checks.withdrawals import missing_versions
from agentworld.audit.export.formats import Form, lines_of
from agentworld.audit.questions.agent import audit_agent
from agentworld.audit.questions.difference import audit_diff
from agentworld.audit.questions.simulator import audit_simulator
from agentworld.audit.read.sources import manifest_of, world_models_of
from agentworld.engine.process import LOOPBACK
from agentworld.errors import StoreError
from agentworld.lineage.mlflow import MlflowRegistry
from agentworld.operations.registry import find_world_model
from machines.mlflow_server import serving
from make.special import exchange
from make.story import Story, story
from waiting import outcome

pytestmark = pytest.mark.waits

KEPT = {"alembic_version", "experiments", "experiment_tags", "workspaces", "sqlite_sequence"}
ADDED = Dataset("added", "digest", "local", "{}")


@pytest.fixture(scope="module", params=["database", "server"])
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path]]:
    """The address, and where its files are."""
    folder = tmp_path_factory.mktemp("mlflow")
    if request.param == "database":
        yield f"sqlite:///{folder}/mlflow.db", folder
    else:
        with serving(folder) as server:
            yield f"http://{LOOPBACK}:{server.port}", folder


class Tampered:
    """A story with its own MLflow, and write access to it."""

    def __init__(self, store: Path, url: str, files: Path) -> None:
        import mlflow

        local = files / "artifacts" if url.startswith("sqlite") else None
        self.registry = MlflowRegistry(url, local)
        self.client = mlflow.MlflowClient(url, url)
        self.told: Story = story(store, self.registry)
        ref = self.told.agent
        self.name, self.number = ref.name, str(ref.version)
        self.version = self.client.get_model_version(self.name, self.number)
        self.model = self.version.source.removeprefix("models:/")
        self.files = files
        self.world_run = self.registry.stored(self.told.world_model).links.run

    def kept(self, name: str) -> Path:
        """A file of this version where MLflow keeps it."""
        of = (self.version.run_id, self.model)
        (found,) = (
            path for path in self.files.rglob(name) if any(each in path.parts for each in of)
        )
        return found

    def problems(self) -> tuple[str, ...]:
        sources = self.told.sources
        assert sources.evidence
        found: list[str] = []
        for ref in (self.told.agent, self.told.world_model):
            told = sources.ledger.attestations
            filed = registrations(told, sources.evidence, str(ref)).newest
            stored = self.registry.stored(ref)
            found += verify_version(
                stored, self.registry, sources.step_keys, registration=filed
            ).problems
        return tuple(found)

    def change(self, statement: str, *values: str) -> None:
        """Changes MLflow's database as an attacker would."""
        with closing(sqlite3.connect(self.files / "mlflow.db")) as database, database:
            assert database.execute(statement, values).rowcount > 0

    def other_run(self) -> str:
        """A run with the same files."""
        run = self.client.get_run(self.version.run_id)
        copy = self.client.create_run(run.info.experiment_id, tags=run.data.tags)
        for name in ("lineage.json", "registration.dsse.json"):
            self.client.log_text(copy.info.run_id, self.kept(name).read_text(), name)
        self.client.set_terminated(copy.info.run_id)
        return str(copy.info.run_id)


@pytest.fixture
def tampered(tmp_path: Path, place: tuple[str, Path]) -> Iterator[Tampered]:
    yield Tampered(tmp_path, *place)
    _, folder = place
    _empty(folder / "mlflow.db")


def _empty(database: Path) -> None:
    """Removes all models, runs and their rows: a check of everything takes as long as there are
    models.
    """
    tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
    with closing(sqlite3.connect(database)) as connection, connection:
        for (table,) in connection.execute(tables).fetchall():
            if table not in KEPT:
                connection.execute(f"DELETE FROM {table}")


def change_record(at: Tampered) -> None:
    path = at.kept("lineage.json")
    path.write_text(path.read_text().replace('"num_parameters":1000', '"num_parameters":1001'))


def change_weights(at: Tampered) -> None:
    at.kept("model.safetensors").write_text("other")


TAMPERINGS: dict[str, tuple[Callable[[Tampered], Any], str]] = {
    "a tag is edited": (
        lambda at: at.client.set_model_version_tag(at.name, at.number, "agentworld.run", "x"),
        "mirror differs in tag run: MLflow says 'x'",
    ),
    "a tag is deleted": (
        lambda at: at.client.delete_model_version_tag(at.name, at.number, "agentworld.artifact"),
        "mirror differs in tag artifact: MLflow says nothing",
    ),
    "the run is deleted": (
        lambda at: at.client.delete_run(at.version.run_id),
        "mirror differs in run state: MLflow says 'deleted'",
    ),
    "the model is deleted": (
        lambda at: at.client.delete_logged_model(at.model),
        "mirror differs in model state: MLflow says 'missing'",
    ),
    "a file is changed": (change_weights, "mirror differs in files: MLflow says 'sha256:"),
    "a file is deleted": (
        lambda at: at.kept("model.safetensors").unlink(),
        "mirror differs in files: MLflow says 'sha256:",
    ),
    "all files are deleted": (
        lambda at: shutil.rmtree(at.kept("model.safetensors").parent),
        "mirror differs in files: MLflow says 'sha256:",
    ),
    "the record is changed": (change_record, "what was signed is the record"),
    "the record is deleted": (
        lambda at: at.kept("lineage.json").unlink(),
        "its record lineage.json is missing",
    ),
    "the signature is changed": (
        lambda at: at.kept("registration.dsse.json").write_text("{}"),
        "this is not an envelope of ours",
    ),
}

OF_AGENT = "destination_type = 'MODEL_INPUT' AND source_id = ?"
OF_WORLD = "destination_type = 'RUN' AND destination_id = ?"
DATA_SETS = "world@{world}: mirror differs in data sets: MLflow says "
LINKS: dict[str, tuple[Callable[[Tampered], Any], str]] = {
    "the model input is deleted": (
        lambda at: at.change(f"DELETE FROM inputs WHERE {OF_AGENT}", at.version.run_id),
        "hero@{number}: mirror differs in inputs: MLflow says nothing, the signed",
    ),
    "the model input is another one": (
        lambda at: at.change(
            f"UPDATE inputs SET destination_id = ? WHERE {OF_AGENT}", at.model, at.version.run_id
        ),
        "hero@{number}: mirror differs in inputs: MLflow says '{model}'",
    ),
    "a data set is deleted": (
        lambda at: at.change(f"DELETE FROM inputs WHERE {OF_WORLD}", at.world_run),
        DATA_SETS,
    ),
    "a data set has another digest": (
        lambda at: at.change(
            f"UPDATE datasets SET digest = hex(randomblob(8)) WHERE dataset_uuid IN"
            f" (SELECT source_id FROM inputs WHERE {OF_WORLD})",
            at.world_run,
        ),
        DATA_SETS,
    ),
    "a data set is read by another stage": (
        lambda at: at.change(
            f"UPDATE input_tags SET value = 'rl' WHERE input_uuid IN"
            f" (SELECT input_uuid FROM inputs WHERE {OF_WORLD})",
            at.world_run,
        ),
        DATA_SETS,
    ),
    "a data set is added": (
        lambda at: at.client.log_inputs(at.version.run_id, [DatasetInput(ADDED)]),
        "hero@{number}: mirror differs in data sets: MLflow says 'added (digest digest,",
    ),
    "the version is of a run with the same files": (
        lambda at: at.change(
            "UPDATE model_versions SET run_id = ? WHERE name = 'hero' AND version = ?",
            at.other_run(),
            at.number,
        ),
        "hero@{number}: mirror differs in run: MLflow says ",
    ),
    "the version's files are told to be elsewhere": (
        lambda at: at.change(
            "UPDATE model_versions SET storage_location = 'file:///x' WHERE name = 'hero'"
            " AND version = ?",
            at.number,
        ),
        "hero@{number}: mirror differs in location: MLflow says 'file:///x'",
    ),
}


def test_unchanged_versions_have_no_problems(tampered: Tampered) -> None:
    assert tampered.problems() == ()
    stored = tampered.registry.stored(tampered.told.agent)
    assert (stored.run, stored.model) == ("present", "whole")


@pytest.mark.parametrize("how", TAMPERINGS)
def test_each_tampering_with_a_version_is_reported(tampered: Tampered, how: str) -> None:
    tamper, problem = TAMPERINGS[how]
    tamper(tampered)
    found = tampered.problems()
    assert any(each.startswith(f"{tampered.told.agent}: {problem}") for each in found), found


@pytest.mark.parametrize("how", LINKS)
def test_a_changed_link_of_a_version_is_reported(tampered: Tampered, how: str) -> None:
    tamper, problem = LINKS[how]
    world = tampered.told.world_model.version
    wanted = problem.format(number=tampered.number, model=tampered.model, world=world)
    tamper(tampered)
    found = tampered.problems()
    assert any(each.startswith(wanted) for each in found), found


def test_versions_registered_by_other_programs_are_not_listed(tampered: Tampered) -> None:
    tampered.client.create_registered_model(name := f"of others {tampered.number}")
    source = tampered.version.source
    tampered.client.create_model_version(name, source, model_id=tampered.model)
    names = {each.ref.name for each in tampered.registry.versions()}
    assert names == {"hero", "world"}


def test_unreadable_versions_with_copied_tags_are_reported_and_change_no_audit(
    tampered: Tampered,
) -> None:
    told = tampered.told
    sources, agent = told.sources, told.agent
    manifest = manifest_of(told.simulator, told.store)
    assert manifest

    def answers() -> list[object]:
        refs = world_models_of(manifest, sources.registry)
        claimed = find_world_model(refs, sources.registry, sources.step_keys)
        exported = [[*lines_of(form, sources)] for form in get_args(Form)]
        served = audit_simulator(told.simulator, sources).world_model
        audits = [audit_agent(agent, sources), audit_diff(agent, agent, sources)]
        return [*audits, served, claimed, exported]

    before = answers()
    for ref in (told.world_model, agent):
        tampered.client.create_registered_model(name := f"a-stray-{ref}".replace("@", "-"))
        tags = tampered.client.get_model_version(ref.name, str(ref.version)).tags
        tampered.client.create_model_version(
            name, tampered.version.source, tags=tags, model_id=tampered.model
        )
        tampered.change("UPDATE model_versions SET run_id = NULL WHERE name = ?", name)
        problems = verify_everything(sources).problems
        assert f"{name}@1: its record lineage.json is missing" in problems
    assert answers() == before


def test_a_deleted_version_counts_as_missing_and_an_untagged_version_does_not(
    tampered: Tampered,
) -> None:
    sources = tampered.told.sources
    for name in tampered.version.tags:
        tampered.client.delete_model_version_tag(tampered.name, tampered.number, name)
    assert tampered.told.agent not in [each.ref for each in tampered.registry.versions()]
    assert missing_versions(sources).versions == ()
    tampered.client.delete_model_version(tampered.name, tampered.number)
    assert [each.ref for each in missing_versions(sources).versions] == [str(tampered.told.agent)]


@pytest.mark.parametrize("name", ["lineage.json", "model.safetensors"])
def test_a_pipe_in_place_of_a_version_file_is_reported_without_blocking(
    tmp_path: Path, name: str
) -> None:
    tampered = Tampered(tmp_path / "store", f"sqlite:///{tmp_path}/mlflow.db", tmp_path)
    exchange(tampered.kept(name))
    found = outcome(lambda: verify_everything(tampered.told.sources).problems)
    assert isinstance(found, tuple)
    assert [each for each in found if each.startswith(f"{tampered.told.agent}: ") and name in each]


@pytest.mark.parametrize(
    ("table", "part"),
    [("model_version_tags", "a tag"), ("input_tags", "a data set")],
)
def test_registration_fails_if_the_database_drops_a_tag_or_a_data_set(
    tmp_path: Path, table: str, part: str
) -> None:
    Tampered(tmp_path / "store", f"sqlite:///{tmp_path}/mlflow.db", tmp_path)
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as database, database:
        drop = f"CREATE TRIGGER drops BEFORE INSERT ON {table} BEGIN SELECT RAISE(IGNORE); END"
        database.execute(drop)
    with pytest.raises(StoreError, match=f"dropped {part} of it; remove the trigger") as told:
        Tampered(tmp_path / "other", f"sqlite:///{tmp_path}/mlflow.db", tmp_path)
    assert not told.value.retryable
