"""The output of every audit command at five times of a store.

A table has a part for each command. A row begins with the numbers of the times at which it is
shown; `!` marks a problem, and `<>` encloses the act in which something was signed.
"""

from pathlib import Path

import pytest

from agentworld_cli.audit import app
from make.audit_rows import History, answered, tables
from make.two_tenants import two_tenants

pytestmark = pytest.mark.waits

TABLES = tables(Path(__file__).parents[1] / "data/audits/two-tenants.txt")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return two_tenants(tmp_path_factory.mktemp("tenants"))


@pytest.mark.parametrize("words", TABLES)
def test_an_audit_command_prints_its_expected_table(call, history, words):
    assert answered(call, words, history) == TABLES[words]


def test_every_audit_command_has_an_expected_table():
    commands = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert commands <= {words.split()[1] for words in TABLES}
