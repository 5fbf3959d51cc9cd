"""Other programs' entries in MLflow with the platform's tags are reported, and block nothing."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import make.console
import make.registry
from agentworld.audit.checks.store import verify_everything
from agentworld.audit.questions.agents import audit_agents
from agentworld.ledger import Ledger
from agentworld.lineage.mlflow import MlflowRegistry
from agentworld_console.library import Library
from make.story import Story, story

pytestmark = pytest.mark.waits


class Place:
    """A story in an MLflow whose database can be changed."""

    def __init__(self, folder: Path) -> None:
        import mlflow

        url = make.registry.database(folder)
        self.folder = folder
        self.client = mlflow.MlflowClient(url, url)
        self.registry = MlflowRegistry(url, folder / "artifacts")
        (folder / "store").mkdir()
        self.story: Story = story(folder / "store", self.registry)
        self.version = self.client.get_model_version("hero", "1")

    def plant(self, name: str) -> None:
        """A version with the tags of one of our agents."""
        self.client.create_registered_model("planted")
        tags = {"agentworld.kind": "agent", "agentworld.artifact": "x", "agentworld.run": "it's"}
        tags |= {"agentworld.simulator": "x"}
        self.client.create_model_version("planted", self.version.source, tags=tags)
        for table in ("registered_models", "model_versions", "model_version_tags"):
            self.change(f"UPDATE {table} SET name = ? WHERE name = 'planted'", name)

    def change(self, statement: str, *values: object) -> None:
        with closing(sqlite3.connect(self.folder / "mlflow.db")) as database, database:
            assert database.execute(statement, values).rowcount != 0

    def problems(self) -> list[str]:
        """The problems, without those of a run whose steps were changed."""
        (self.story.store / "steps").mkdir(exist_ok=True)
        with closing(sqlite3.connect(self.story.store / "ledger.db")) as database, database:
            database.execute("UPDATE steps SET reward = 1.0")
        problems = verify_everything(self.story.sources).problems
        assert any(line.startswith(f"run {self.story.run.id}: ") for line in problems), problems
        audit_agents(self.story.sources)
        return [line for line in problems if not line.startswith(f"run {self.story.run.id}: ")]

    def pages(self) -> dict[str, int]:
        """The responses of the console's lists."""
        ledger: Any = self.story.sources.ledger
        assert isinstance(ledger, Ledger)
        access = self.folder / "access"
        access.mkdir(exist_ok=True)
        app = make.console.app(Library(self.registry, ledger, self.story.store), access)
        auditor = make.console.client(app, "office-auditor")
        return {page: auditor.get(page).status_code for page in ("/", "/agents", "/in-use")}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize(
    "name", ["агент", "a\u200bgent", "\x1b[2Jagent", "an agent", "", "a" * 300 + "/b", "hero@1"]
)
def test_a_version_with_an_invalid_name_is_reported_and_blocks_nothing(
    place: Place, name: str
) -> None:
    place.plant(name)
    (problem,) = place.problems()
    assert problem.startswith(f"the registry's version 1 of {name!r} is garbled: name: ")
    assert place.pages() == dict.fromkeys(("/", "/agents", "/in-use"), 200)


def test_a_version_with_an_invalid_name_takes_no_place_among_the_newest_agents(
    place: Place,
) -> None:
    place.plant("an agent")
    assert [version.ref for version in place.registry.agents(1)] == [place.story.agent]


PREFIX = "hero@1: mirror differs in "
UPDATE_HERO = "UPDATE model_versions SET {} WHERE name = 'hero'"


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("run_id = NULL", PREFIX + "run state: MLflow says 'missing'"),
        ("run_id = ''", PREFIX + "run state: MLflow says 'missing'"),
        ("run_id = 'no; run'", PREFIX + "run state: MLflow says 'missing'"),
        ("status = 'FAILED_REGISTRATION'", PREFIX + "status: MLflow says 'FAILED_REGISTRATION'"),
        ("status = 'PENDING_REGISTRATION'", PREFIX + "status: MLflow says 'PENDING_REGISTRATION'"),
        ("creation_time = 9223372036854775807", "the registry's version 1 of 'hero' is garbled: "),
        ("creation_time = 'now'", "the registry's version 1 of 'hero' is garbled: "),
        ("creation_time = NULL", "the registry's version 1 of 'hero' is garbled: "),
        ("source = 'models:/../..'", PREFIX + "model state: MLflow says 'missing'"),
        ("source = x'ff'", PREFIX + "model state: MLflow says 'missing'"),
        ("status = CAST(x'ff' AS TEXT)", PREFIX + "status: MLflow says '\\udcff'"),
    ],
)
def test_a_garbled_version_is_reported_and_blocks_nothing(
    place: Place, statement: str, words: str
) -> None:
    place.change(UPDATE_HERO.format(statement))
    problems = place.problems()
    assert [line for line in problems if line.startswith(words)], problems
    assert not [line for line in problems if "invalid literal" in line or "Error)" in line]


def test_a_version_with_an_invalid_number_is_reported_and_blocks_nothing(place: Place) -> None:
    for table in ("model_versions", "model_version_tags"):
        place.change(f"UPDATE {table} SET version = 'one' WHERE name = 'hero'")
    problems = place.problems()
    assert any(
        line.startswith("the registry's version 'one' of 'hero' is garbled: ") for line in problems
    )
    assert any(line.startswith(PREFIX + "version: MLflow says nothing") for line in problems)
    assert set(place.pages().values()) == {200}


def test_an_alias_with_an_invalid_version_is_reported_and_blocks_nothing(place: Place) -> None:
    place.registry.set_alias(place.story.agent, "shop")
    place.change("UPDATE registered_model_aliases SET version = 'x'")
    assert any(
        "the registry's alias 'shop' of 'hero' is garbled" in line for line in place.problems()
    )
    assert set(place.pages().values()) == {200}


def test_a_record_nested_too_deeply_is_reported_and_blocks_nothing(place: Place) -> None:
    run = place.folder / "artifacts" / place.version.run_id / "artifacts"
    (run / "lineage.json").write_text("[" * 200_000)
    problems = place.problems()
    assert any(line.startswith("hero@1: its record cannot be read") for line in problems), problems


def test_a_tag_that_is_not_text_is_reported_and_blocks_nothing(place: Place) -> None:
    condition = "name = 'hero' AND key = 'agentworld.run'"
    place.change(f"UPDATE model_version_tags SET value = CAST(x'ff' AS TEXT) WHERE {condition}")
    assert any(
        line.startswith(PREFIX + "tag run: MLflow says '\\udcff'") for line in place.problems()
    )
    assert set(place.pages().values()) == {200}


def test_an_mlflow_listing_failure_is_a_problem_without_a_traceback(
    place: Place, capfd, caplog
) -> None:
    place.change("DROP TABLE registered_model_aliases")
    problems = place.problems()
    assert any(line.startswith("the registry is garbled: the registry sqlite") for line in problems)
    out, err = capfd.readouterr()
    assert "Traceback" not in out + err + caplog.text
