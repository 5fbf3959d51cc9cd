import json
import shutil
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import MetaData, insert, inspect

from agentworld.audit.checks.run import verify_run
from agentworld.audit.read.evidence import Evidence
from agentworld.errors import Conflict
from agentworld.ledger import Ledger, migrate
from agentworld.ledger.database import connect
from agentworld.ledger.tables import METADATA
from agentworld.ledger.writes import NewStep
from agentworld.records.episode import Source, text_bytes
from agentworld.records.run import LOCAL_TENANT, RunOpening
from agentworld.records.usage import Usage
from agentworld.signing.keys import ensure_signer, load_trusted
from agentworld.statements.log_checkpoints import Sealer
from agentworld.storage.objects import WriteOnce
from make import records
from make.ledger import closing, open_episode, steps

ROOT = Path(__file__).parents[3]
MIGRATIONS = Path(migrate.__file__).parent / "migrations"
OPENING = RunOpening(agent="shell-agent", starting_weights=records.digest("starting"))

OLD = json.loads((Path(__file__).parent / "revision-0001.json").read_text())
"""Rows as the release before the second revision wrote them, bytes as their text: a run that goes
on, with an episode that is done (1) and an open fork of its first step (2).
"""
(OLD_RUN,) = (row["id"] for row in OLD["runs"])
DONE, OPEN = (row["id"] for row in OLD["episodes"])
USAGE = Usage(100, 40, 7, 0.5)

LATER = """
import sqlalchemy as sa
from alembic import op

revision = "later"
down_revision = "{newest}"


def upgrade():
    op.create_table("more", sa.Column("id", sa.Integer, primary_key=True))
    op.add_column("runs", sa.Column("colour", sa.String))
    {last}
"""

MIGRATES_WHEN_TOLD = """
import sys
from agentworld.ledger.database import connect
from agentworld.ledger.migrate import migrate
engine = connect(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
migrate(engine)
"""


@pytest.fixture
def engine(url):
    engine = connect(url)
    yield engine
    engine.dispose()


@pytest.fixture
def ledger(engine, url):
    """A ledger of the newest schema."""
    migrate.migrate(engine)
    ledger = Ledger(url)
    yield ledger
    ledger.close()


@pytest.fixture
def later(tmp_path, monkeypatch):
    """Makes this program a later one that has a further revision."""

    def become(last=""):
        shutil.copytree(MIGRATIONS, tmp_path / "later")
        newest = max((MIGRATIONS / "versions").glob("r*.py")).name[1:5]
        file = tmp_path / "later" / "versions" / "later.py"
        file.write_text(LATER.format(newest=newest, last=last))
        monkeypatch.setattr(migrate, "_REVISIONS", str(tmp_path / "later"))

    return become


@pytest.fixture
def grown(engine, url, tmp_path, monkeypatch):
    """A ledger of the newest schema in a database of revision 0001 with rows in it."""
    first = tmp_path / "first"
    shutil.copytree(MIGRATIONS, first)
    for file in set(first.glob("versions/r*.py")) - set(first.glob("versions/r0001*.py")):
        file.unlink()
    with monkeypatch.context() as earlier:
        earlier.setattr(migrate, "_REVISIONS", str(first))
        migrate.migrate(engine)
    tables = MetaData()
    tables.reflect(engine)
    with engine.begin() as connection:
        for name, rows in OLD.items():
            for row in rows:  # one by one: the database numbers the episodes
                connection.execute(insert(tables.tables[name]), stored(tables.tables[name], row))
    assert "tenant" not in schema(engine)["runs"]
    ledger = Ledger(url)
    yield ledger
    ledger.close()


def stored(table, row):
    """A row's values as the database holds them."""
    return {
        name: text_bytes(value) if table.c[name].type.python_type is bytes else value
        for name, value in row.items()
    }


def newest(episode, observation):
    """The step that follows an episode's."""
    return steps(episode, observation)[-1]


def verification(ledger, run, folder):
    """Of all that is in a run's log, once it was signed."""
    signer = partial(ensure_signer, folder / "keys")
    copies = WriteOnce(str(folder / "copies"))
    Sealer(ledger, OLD["runs"][0]["simulator"], signer, copies).seal_all()
    return verify_run(run, ledger, Evidence(load_trusted(folder / "keys"), copies))


def schema(engine):
    with engine.connect() as connection:
        tables = inspect(connection)
        return {
            table: {column["name"] for column in tables.get_columns(table)}
            for table in tables.get_table_names()
        }


def test_the_migrated_schema_is_the_one_of_the_tables(engine):
    migrate.migrate(engine)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []


def test_a_second_migration_changes_nothing(engine, ledger):
    run = ledger.open_run(OPENING, records.digest("simulator"))
    before = schema(engine)
    migrate.migrate(engine)
    assert schema(engine) == before
    assert ledger.run(run.id) == run


def test_a_database_that_is_newest_is_not_locked_again(engine):
    migrate.migrate(engine)
    before = schema(engine)
    with migrate._locked(engine):
        migrate.migrate(engine)
    assert schema(engine) == before


@pytest.mark.waits
def test_processes_that_migrate_at_once_all_succeed(engine):
    url = engine.url.render_as_string(hide_password=False)
    command = [sys.executable, "-c", MIGRATES_WHEN_TOLD, url]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert {process.stdout.readline() for process in processes} == {"ready\n"}
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert schema(engine).keys() == {*METADATA.tables, "alembic_version"}


def test_a_later_revision_keeps_what_was_written(engine, ledger, later):
    run = ledger.open_run(OPENING, records.digest("simulator"))
    later()
    migrate.migrate(engine)
    assert "colour" in schema(engine)["runs"]
    assert ledger.run(run.id) == run


def test_a_migration_that_fails_leaves_the_schema_as_it_was(engine, later):
    migrate.migrate(engine)
    before = schema(engine)
    later(last="1 / 0")
    with pytest.raises(ZeroDivisionError):
        migrate.migrate(engine)
    assert schema(engine) == before


def test_an_old_run_reads_as_it_was_written(grown):
    run = grown.run(OLD_RUN)
    assert (run.tenant, run.num_episodes, run.num_steps) == (LOCAL_TENANT, 2, 3)
    assert [entry.sequence for entry in grown.log(OLD_RUN)] == list(range(1, 9))
    episodes = list(grown.episodes(OLD_RUN))
    assert [each.id for each in episodes] == [DONE, OPEN]
    assert all(each.intact for each in episodes)
    taken = [step for each in episodes for step in each.steps]
    told = [(row["action"], row["observation"], row["head"]) for row in OLD["steps"]]
    assert [(step.action, step.observation, step.head) for step in taken] == told
    assert {step.usage for step in taken} == {Usage()}


def test_an_old_run_goes_on_and_what_it_uses_from_then_on_is_counted(grown):
    episode = grown.episode(OPEN)
    step = newest(episode, "rimo.txt\n[0] ~")._replace(usage=USAGE)
    grown.write([NewStep(OLD_RUN, step)])
    open_episode(grown, OLD_RUN, episode.simulator)
    assert grown.episode(OPEN).steps == (*episode.steps, step)
    (used,) = grown.used(run=OLD_RUN)
    # The fork's first step is the other episode's.
    assert (used.num_episodes, used.num_steps, used.usage) == (3, 4, USAGE)
    assert grown.close_run(OLD_RUN, closing()).closing == closing()
    assert grown.num_open_episodes(LOCAL_TENANT) == 0


def test_an_old_run_verifies_before_and_after_it_goes_on(grown, tmp_path):
    before = verification(grown, OLD_RUN, tmp_path)
    assert (before.state, before.signed_length, before.problems) == ("verified", 8, ())
    grown.write([NewStep(OLD_RUN, newest(grown.episode(OPEN), "rimo.txt\n[0] ~"))])
    grown.close_run(OLD_RUN, closing())
    after = verification(grown, OLD_RUN, tmp_path)
    assert (after.state, after.signed_length, after.problems) == ("verified", 11, ())


def test_an_old_fork_is_found_by_what_it_starts_from(grown):
    (found,) = grown.pages.forks(DONE, 9)
    assert (found.id, found.opening.fork) == (OPEN, Source(episode=DONE, step=1))
    assert grown.pages.forks(OPEN, 9) == []


def test_a_tenants_runs_are_counted_in_a_database_that_was_old(grown):
    grown.open_run(OPENING, records.digest("simulator"), tenant="acme")
    assert [grown.num_open_runs(tenant) for tenant in (LOCAL_TENANT, "acme")] == [1, 1]


def test_a_database_that_is_newer_than_this_program_is_refused(engine, later, monkeypatch):
    later()
    migrate.migrate(engine)
    monkeypatch.undo()
    with pytest.raises(Conflict, match="revision later, which this agentworld does not") as told:
        migrate.migrate(engine)
    assert "\n" not in str(told.value)


def test_tables_that_no_migration_made_are_refused(engine):
    METADATA.create_all(engine)
    with pytest.raises(Conflict, match="holds tables of an unknown schema; name another"):
        migrate.migrate(engine)


@pytest.mark.waits
def test_an_installed_agentworld_has_the_migrations(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    ours = {path.relative_to(MIGRATIONS).as_posix() for path in MIGRATIONS.rglob("*.py")}
    assert ours > {"env.py"}
    start = "agentworld/ledger/migrations/"
    names = [name for name in zipfile.ZipFile(wheel).namelist() if name.startswith(start)]
    assert ours <= {name.removeprefix(start) for name in names}
