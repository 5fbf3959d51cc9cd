"""A garbled row is shown as garbled, and every other row stays in the list."""

import pytest

import make.console

pytestmark = pytest.mark.compute

LISTS = ("/", "/agents", "/in-use", "/simulators", "/datasets", "/runs", "/runs.csv", "/agents.csv")
DEEP = "[" * 200_000


@pytest.fixture
def auditor_and_history(copy, tmp_path):
    """An auditor's client, and the history that it reads."""
    return make.console.client(make.console.app(copy.library, tmp_path), "office-auditor"), copy


def change(history, statement: str, *values: object) -> None:
    with history.library.ledger._database.engine.begin() as database:
        assert database.exec_driver_sql(statement, values).rowcount > 0


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE runs SET opening = ? WHERE id = ?",
        "UPDATE runs SET final_weights = ? WHERE id = ?",
        "UPDATE runs SET log_length = ? WHERE id = ?",
        "UPDATE runs SET signature = CAST(? || x'ff' AS TEXT) WHERE id = ?",
    ],
)
def test_a_garbled_run_is_listed_among_the_others(auditor_and_history, statement):
    auditor, history = auditor_and_history
    change(history, statement, DEEP, history.rival_run)
    assert {page: auditor.get(page).status_code for page in LISTS} == dict.fromkeys(LISTS, 200)
    lines = auditor.get("/runs.csv").text.splitlines()
    (garbled,) = [line for line in lines if history.rival_run in line]
    (intact,) = [line for line in lines if history.run in line]
    assert "signature" in statement or "garbled,garbled" in garbled
    assert "training,shell-agent" in intact


def test_the_page_of_a_garbled_run_reports_the_garbled_record(auditor_and_history):
    auditor, history = auditor_and_history
    change(history, "UPDATE runs SET opening = ? WHERE id = ?", DEEP, history.run)
    page = auditor.get(f"/runs/{history.run}")
    assert page.status_code == 200
    assert f"the ledger&#39;s record of run {history.run} is garbled" in page.text
    agent = auditor.get(f"/agents/{history.agent}")
    assert agent.status_code == 200
    assert f"its run {history.run} is garbled in the ledger" in agent.text


@pytest.mark.parametrize("column", ["gate", "canary", "override"])
def test_a_garbled_alias_change_leaves_all_lists_readable(auditor_and_history, column):
    auditor, history = auditor_and_history
    change(history, f"UPDATE aliases SET {column} = CAST(? || x'ff' AS BLOB)", DEEP)
    assert {page: auditor.get(page).status_code for page in LISTS} == dict.fromkeys(LISTS, 200)
    text = auditor.get("/in-use").text
    assert "the history of alias &#39;shell-stable&#39; is garbled" in text


def test_a_garbled_receipt_leaves_the_data_sets_listed(auditor_and_history):
    auditor, history = auditor_and_history
    for name in ("garbled", "another"):
        folder = history.library.store / "steps/prepare" / name
        folder.mkdir(parents=True)
        (folder / "receipt.json").write_text(DEEP)
    assert history.library.store.joinpath("steps/prepare/garbled/receipt.json").is_file()
    assert make.console.records.digest("data")[7:19] in auditor.get("/datasets").text


def test_a_garbled_report_is_shown_on_its_simulators_page(auditor_and_history):
    auditor, history = auditor_and_history
    (report,) = (history.library.store / "simulators").glob("*/reports/*.json")
    report.chmod(0o644)
    report.write_text(DEEP)
    page = auditor.get(f"/simulators/{history.simulator}")
    assert page.status_code == 200
    assert "garbled report" in page.text
