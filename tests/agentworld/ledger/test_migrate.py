import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect

from agentworld.errors import Conflict
from agentworld.ledger import Ledger, database
from agentworld.ledger.database import connect, migrate
from agentworld.ledger.tables import METADATA
from agentworld.records.run import RunOpening
from make import records

ROOT = Path(__file__).parents[3]
MIGRATIONS = Path(database.__file__).parent / "migrations"
OPENING = RunOpening(agent="shell-agent", starting_weights=records.digest("starting"))

NEW_REVISION = """
import sqlalchemy as sa
from alembic import op

revision = "later"
down_revision = "{newest}"


def upgrade():
    op.create_table("more", sa.Column("id", sa.Integer, primary_key=True))
    op.add_column("runs", sa.Column("colour", sa.String))
    {last}
"""

MIGRATE_ON_INPUT = """
import sys
from agentworld.ledger.database import connect, migrate
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
    migrate(engine)
    ledger = Ledger(url)
    yield ledger
    ledger.close()


@pytest.fixture
def later(tmp_path, monkeypatch):
    """A function that adds a revision to this program, as a later version would have."""

    def add_revision(last=""):
        shutil.copytree(MIGRATIONS, tmp_path / "later")
        newest = max((MIGRATIONS / "versions").glob("r*.py")).name[1:5]
        file = tmp_path / "later" / "versions" / "later.py"
        file.write_text(NEW_REVISION.format(newest=newest, last=last))
        monkeypatch.setattr(database, "_REVISIONS", str(tmp_path / "later"))

    return add_revision


def schema(engine):
    with engine.connect() as connection:
        tables = inspect(connection)
        return {
            table: {column["name"] for column in tables.get_columns(table)}
            for table in tables.get_table_names()
        }


def test_the_migrated_schema_matches_the_table_definitions(engine):
    migrate(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        assert compare_metadata(context, METADATA) == []


def test_a_second_migration_changes_nothing(engine, ledger):
    run = ledger.open_run(OPENING, records.digest("simulator"))
    before = schema(engine)
    migrate(engine)
    assert schema(engine) == before
    assert ledger.run(run.id) == run


def test_migrating_an_up_to_date_database_takes_no_lock(engine):
    migrate(engine)
    before = schema(engine)
    with database._hold_lock(engine):
        migrate(engine)
    assert schema(engine) == before


@pytest.mark.waits
def test_processes_that_migrate_at_once_all_succeed(engine):
    url = engine.url.render_as_string(hide_password=False)
    command = [sys.executable, "-c", MIGRATE_ON_INPUT, url]
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


def test_a_later_revision_keeps_existing_records(engine, ledger, later):
    run = ledger.open_run(OPENING, records.digest("simulator"))
    later()
    migrate(engine)
    assert "colour" in schema(engine)["runs"]
    assert ledger.run(run.id) == run


def test_a_failed_migration_leaves_the_schema_unchanged(engine, later):
    migrate(engine)
    before = schema(engine)
    later(last="1 / 0")
    with pytest.raises(ZeroDivisionError):
        migrate(engine)
    assert schema(engine) == before


def test_a_database_that_is_newer_than_this_program_is_refused(engine, later, monkeypatch):
    later()
    migrate(engine)
    monkeypatch.undo()
    with pytest.raises(
        Conflict, match="revision later, which this version of agentworld does not"
    ) as error:
        migrate(engine)
    assert "\n" not in str(error.value)


def test_a_database_with_tables_of_an_unknown_schema_is_refused(engine):
    METADATA.create_all(engine)
    with pytest.raises(Conflict, match="has tables of an unknown schema; name another"):
        migrate(engine)


@pytest.mark.waits
def test_the_wheel_contains_the_migrations(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    result = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    (wheel,) = tmp_path.glob("*.whl")
    migrations = {path.relative_to(MIGRATIONS).as_posix() for path in MIGRATIONS.rglob("*.py")}
    assert migrations > {"env.py"}
    prefix = "agentworld/ledger/migrations/"
    names = [name for name in zipfile.ZipFile(wheel).namelist() if name.startswith(prefix)]
    assert migrations <= {name.removeprefix(prefix) for name in names}
