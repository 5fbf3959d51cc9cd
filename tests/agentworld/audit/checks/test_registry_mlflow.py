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

EXTRA_DATASET = Dataset("added", "digest", "local", "{}")


class TamperedStore:
    """A story with its own MLflow, and write access to it."""

    def __init__(self, store: Path, url: str, files: Path) -> None:
        import mlflow

        artifacts = files / "artifacts" if url.startswith("sqlite") else None
        self.registry = MlflowRegistry(url, artifacts)
        self.client = mlflow.MlflowClient(url, url)
        self.story: Story = story(store, self.registry)
        ref = self.story.agent
        self.name, self.number = ref.name, str(ref.version)
        self.version = self.client.get_model_version(self.name, self.number)
        self.model = self.version.source.removeprefix("models:/")
        self.files = files
        self.world_run = self.registry.stored(self.story.world_model).links.run

    def file_of(self, name: str) -> Path:
        """A file of this version in MLflow's folder."""
        folders = (self.version.run_id, self.model)
        (file,) = (
            path
            for path in self.files.rglob(name)
            if any(folder in path.parts for folder in folders)
        )
        return file

    def problems(self) -> tuple[str, ...]:
        sources = self.story.sources
        assert sources.evidence
        problems: list[str] = []
        for ref in (self.story.agent, self.story.world_model):
            attestations = sources.ledger.attestations
            registration = registrations(attestations, sources.evidence, str(ref)).newest
            stored = self.registry.stored(ref)
            problems += verify_version(
                stored, self.registry, sources.step_keys, registration=registration
            ).problems
        return tuple(problems)

    def change(self, statement: str, *values: str) -> None:
        """Changes MLflow's database as an attacker would."""
        with closing(sqlite3.connect(self.files / "mlflow.db")) as database, database:
            assert database.execute(statement, values).rowcount > 0

    def other_run(self) -> str:
        """A run with the same files."""
        run = self.client.get_run(self.version.run_id)
        copy = self.client.create_run(run.info.experiment_id, tags=run.data.tags)
        for name in ("lineage.json", "registration.dsse.json"):
            self.client.log_text(copy.info.run_id, self.file_of(name).read_text(), name)
        self.client.set_terminated(copy.info.run_id)
        return str(copy.info.run_id)


class SavedFiles:
    """A copy of MLflow's database and files."""

    def __init__(self, files: Path, folder: Path) -> None:
        self._files, self._folder = files, folder
        _copy(files, folder)

    def restore(self) -> None:
        shutil.rmtree(self._files / "artifacts")
        _copy(self._folder, self._files)


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source / "artifacts", target / "artifacts")
    with (
        closing(sqlite3.connect(source / "mlflow.db")) as database,
        closing(sqlite3.connect(target / "mlflow.db")) as copy,
    ):
        database.backup(copy)


@pytest.fixture(scope="module", params=["database", "server"])
def shared_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TamperedStore]:
    """With MLflow in a database, and on a server."""
    files, folder = tmp_path_factory.mktemp("mlflow"), tmp_path_factory.mktemp("store")
    if request.param == "database":
        yield TamperedStore(folder, f"sqlite:///{files}/mlflow.db", files)
    else:
        with serving(files) as server:
            yield TamperedStore(folder, f"http://{LOOPBACK}:{server.port}", files)


@pytest.fixture(scope="module")
def saved_files(
    shared_store: TamperedStore, tmp_path_factory: pytest.TempPathFactory
) -> SavedFiles:
    return SavedFiles(shared_store.files, tmp_path_factory.mktemp("saved"))


@pytest.fixture
def store(shared_store: TamperedStore, saved_files: SavedFiles) -> Iterator[TamperedStore]:
    """The same story for each test, without the changes of the other tests."""
    yield shared_store
    saved_files.restore()


def change_record(store: TamperedStore) -> None:
    path = store.file_of("lineage.json")
    path.write_text(path.read_text().replace('"num_parameters":1000', '"num_parameters":1001'))


def change_weights(store: TamperedStore) -> None:
    store.file_of("model.safetensors").write_text("other")


TAMPERINGS: dict[str, tuple[Callable[[TamperedStore], Any], str]] = {
    "a tag is edited": (
        lambda store: store.client.set_model_version_tag(
            store.name, store.number, "agentworld.run", "x"
        ),
        "mirror differs in tag run: MLflow says 'x'",
    ),
    "a tag is deleted": (
        lambda store: store.client.delete_model_version_tag(
            store.name, store.number, "agentworld.artifact"
        ),
        "mirror differs in tag artifact: MLflow says nothing",
    ),
    "the run is deleted": (
        lambda store: store.client.delete_run(store.version.run_id),
        "mirror differs in run state: MLflow says 'deleted'",
    ),
    "the model is deleted": (
        lambda store: store.client.delete_logged_model(store.model),
        "mirror differs in model state: MLflow says 'missing'",
    ),
    "a file is changed": (change_weights, "mirror differs in files: MLflow says 'sha256:"),
    "a file is deleted": (
        lambda store: store.file_of("model.safetensors").unlink(),
        "mirror differs in files: MLflow says 'sha256:",
    ),
    "all files are deleted": (
        lambda store: shutil.rmtree(store.file_of("model.safetensors").parent),
        "mirror differs in files: MLflow says 'sha256:",
    ),
    "the record is changed": (change_record, "what was signed is the record"),
    "the record is deleted": (
        lambda store: store.file_of("lineage.json").unlink(),
        "its record lineage.json is missing",
    ),
    "the signature is changed": (
        lambda store: store.file_of("registration.dsse.json").write_text("{}"),
        "this is not an envelope of ours",
    ),
}

OF_AGENT = "destination_type = 'MODEL_INPUT' AND source_id = ?"
OF_WORLD = "destination_type = 'RUN' AND destination_id = ?"
DATA_SETS = "world@{world}: mirror differs in data sets: MLflow says "
LINKS: dict[str, tuple[Callable[[TamperedStore], Any], str]] = {
    "the model input is deleted": (
        lambda store: store.change(f"DELETE FROM inputs WHERE {OF_AGENT}", store.version.run_id),
        "hero@{number}: mirror differs in inputs: MLflow says nothing, the signed",
    ),
    "the model input is another one": (
        lambda store: store.change(
            f"UPDATE inputs SET destination_id = ? WHERE {OF_AGENT}",
            store.model,
            store.version.run_id,
        ),
        "hero@{number}: mirror differs in inputs: MLflow says '{model}'",
    ),
    "a data set is deleted": (
        lambda store: store.change(f"DELETE FROM inputs WHERE {OF_WORLD}", store.world_run),
        DATA_SETS,
    ),
    "a data set has another digest": (
        lambda store: store.change(
            f"UPDATE datasets SET digest = hex(randomblob(8)) WHERE dataset_uuid IN"
            f" (SELECT source_id FROM inputs WHERE {OF_WORLD})",
            store.world_run,
        ),
        DATA_SETS,
    ),
    "a data set is read by another stage": (
        lambda store: store.change(
            f"UPDATE input_tags SET value = 'rl' WHERE input_uuid IN"
            f" (SELECT input_uuid FROM inputs WHERE {OF_WORLD})",
            store.world_run,
        ),
        DATA_SETS,
    ),
    "a data set is added": (
        lambda store: store.client.log_inputs(store.version.run_id, [DatasetInput(EXTRA_DATASET)]),
        "hero@{number}: mirror differs in data sets: MLflow says 'added (digest digest,",
    ),
    "the version is of a run with the same files": (
        lambda store: store.change(
            "UPDATE model_versions SET run_id = ? WHERE name = 'hero' AND version = ?",
            store.other_run(),
            store.number,
        ),
        "hero@{number}: mirror differs in run: MLflow says ",
    ),
    "the version's files are told to be elsewhere": (
        lambda store: store.change(
            "UPDATE model_versions SET storage_location = 'file:///x' WHERE name = 'hero'"
            " AND version = ?",
            store.number,
        ),
        "hero@{number}: mirror differs in location: MLflow says 'file:///x'",
    ),
}


def test_unchanged_versions_have_no_problems(store: TamperedStore) -> None:
    assert store.problems() == ()
    stored = store.registry.stored(store.story.agent)
    assert (stored.run, stored.model) == ("present", "whole")


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_each_tampering_with_a_version_is_reported(store: TamperedStore, tampering: str) -> None:
    tamper, expected = TAMPERINGS[tampering]
    tamper(store)
    problems = store.problems()
    assert any(problem.startswith(f"{store.story.agent}: {expected}") for problem in problems), (
        problems
    )


@pytest.mark.parametrize("link", LINKS)
def test_a_changed_link_of_a_version_is_reported(store: TamperedStore, link: str) -> None:
    tamper, template = LINKS[link]
    world = store.story.world_model.version
    expected = template.format(number=store.number, model=store.model, world=world)
    tamper(store)
    problems = store.problems()
    assert any(problem.startswith(expected) for problem in problems), problems


def test_versions_registered_by_other_programs_are_not_listed(store: TamperedStore) -> None:
    store.client.create_registered_model(name := f"of others {store.number}")
    source = store.version.source
    store.client.create_model_version(name, source, model_id=store.model)
    names = {version.ref.name for version in store.registry.versions()}
    assert names == {"hero", "world"}


def test_unreadable_versions_with_copied_tags_are_reported_and_change_no_audit(
    store: TamperedStore,
) -> None:
    history = store.story
    sources, agent = history.sources, history.agent
    manifest = manifest_of(history.simulator, history.store)
    assert manifest

    def run_audits() -> list[object]:
        refs = world_models_of(manifest, sources.registry)
        world_model = find_world_model(refs, sources.registry, sources.step_keys)
        exports = [[*lines_of(form, sources)] for form in get_args(Form)]
        served_world_model = audit_simulator(history.simulator, sources).world_model
        audits = [audit_agent(agent, sources), audit_diff(agent, agent, sources)]
        return [*audits, served_world_model, world_model, exports]

    before = run_audits()
    for ref in (history.world_model, agent):
        store.client.create_registered_model(name := f"a-stray-{ref}".replace("@", "-"))
        tags = store.client.get_model_version(ref.name, str(ref.version)).tags
        store.client.create_model_version(
            name, store.version.source, tags=tags, model_id=store.model
        )
        store.change("UPDATE model_versions SET run_id = NULL WHERE name = ?", name)
        problems = verify_everything(sources).problems
        assert f"{name}@1: its record lineage.json is missing" in problems
    assert run_audits() == before


def test_a_deleted_version_counts_as_missing_and_an_untagged_version_does_not(
    store: TamperedStore,
) -> None:
    sources = store.story.sources
    for name in store.version.tags:
        store.client.delete_model_version_tag(store.name, store.number, name)
    assert store.story.agent not in [version.ref for version in store.registry.versions()]
    assert missing_versions(sources).versions == ()
    store.client.delete_model_version(store.name, store.number)
    assert [version.ref for version in missing_versions(sources).versions] == [
        str(store.story.agent)
    ]


@pytest.mark.parametrize("name", ["lineage.json", "model.safetensors"])
def test_a_pipe_in_place_of_a_version_file_is_reported_without_blocking(
    tmp_path: Path, name: str
) -> None:
    store = TamperedStore(tmp_path / "store", f"sqlite:///{tmp_path}/mlflow.db", tmp_path)
    exchange(store.file_of(name))
    problems = outcome(lambda: verify_everything(store.story.sources).problems)
    assert isinstance(problems, tuple)
    assert [
        problem
        for problem in problems
        if problem.startswith(f"{store.story.agent}: ") and name in problem
    ]


@pytest.mark.parametrize(
    ("table", "part"),
    [("model_version_tags", "a tag"), ("input_tags", "a data set")],
)
def test_registration_fails_if_the_database_drops_a_tag_or_a_data_set(
    tmp_path: Path, table: str, part: str
) -> None:
    TamperedStore(tmp_path / "store", f"sqlite:///{tmp_path}/mlflow.db", tmp_path)
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as database, database:
        drop = f"CREATE TRIGGER drops BEFORE INSERT ON {table} BEGIN SELECT RAISE(IGNORE); END"
        database.execute(drop)
    with pytest.raises(StoreError, match=f"dropped {part} of it; remove the trigger") as error:
        TamperedStore(tmp_path / "other", f"sqlite:///{tmp_path}/mlflow.db", tmp_path)
    assert not error.value.retryable
