"""The cost of runs, for people and for programs."""

import json
import re
from decimal import Decimal

import pytest

import make.agent
import make.registry
import make.service
from agentworld.ledger import Ledger
from agentworld.records.usage import Usage
from make.ledger import open_episode, taken

PRICES = {
    "CURRENCY": "EUR",
    "PER_MILLION_INPUT_TOKENS": "1000",
    "PER_MILLION_OUTPUT_TOKENS": "2000",
}


@pytest.fixture
def priced(monkeypatch):
    for name, value in PRICES.items():
        monkeypatch.setenv(f"AGENTWORLD_PRICE_{name}", value)


def cells(line):
    """The cells of a table's line, between which there are two blanks at least."""
    return re.split(r"\s{2,}", line.strip())


def lines(result):
    """The lines of a table: its heading, its rows, its total; without rules."""
    assert (result.code, result.error) == (0, "")
    return [cells(line) for line in result.out.splitlines() if line.strip("─ ")]


def test_cost_prints_a_row_for_each_run_and_a_total(call, example):
    newer_run = example.ledger.open_run(make.service.OPENING, make.service.SIMULATOR).id
    heading, first, second, total = lines(call(f"cost --store {example.store}"))
    assert heading == ["run", "agent", *NUMBERS, "money"]
    assert first == [newer_run, "shell-agent", *["0"] * 5, "0.0", "-"]
    (row,) = example.ledger.counts.run_usage(run=example.run)
    num_input, num_cached, num_output, _ = row.usage
    assert num_input > num_output > num_cached == 0
    numbers = [f"{num_input:,}", "0", f"{num_output:,}"]
    assert second[:7] == [example.run, "shell-agent", "1", "3", *numbers]
    assert total[:6] == ["total", "1", "3", *numbers]
    assert second[-1] == total[-1] == "-"


NUMBERS = ["episodes", "steps", "input", "cached", "output", "engine s"]


def test_the_cost_of_a_run_has_a_row_for_each_episode(call, example):
    heading, line, _ = lines(call(f"cost --run {example.run} --store {example.store}"))
    assert heading[:2] == ["episode", "run"]
    assert line[:4] == [example.episode, example.run, "1", "3"]
    assert lines(call(f"cost --episode {example.episode} --store {example.store}"))[1] == line


@pytest.mark.waits
def test_cost_shows_tenants_only_if_a_tenant_has_a_run(call, example):
    opening, simulator = make.service.OPENING, make.service.SIMULATOR
    assert "tenant" not in lines(call(f"cost --store {example.store}"))[0]
    example.ledger.open_run(opening, simulator, tenant="acme")
    heading, first, *_ = lines(call(f"cost --store {example.store}"))
    assert (heading[1], first[1]) == ("tenant", "acme")
    rows = lines(call(f"cost --group-by tenant --store {example.store}"))
    assert [row[0] for row in rows] == ["tenant", "acme", "local", "total"]
    tenant_rows = lines(call(f"cost --tenant local --store {example.store}"))
    assert [row[0] for row in tenant_rows] == ["run", example.run, "total"]


@pytest.mark.waits
def test_cost_by_agent_prints_a_row_for_each_agent_and_marks_unregistered_ones(
    call, tmp_path, monkeypatch
):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    agent = make.agent.registered(tmp_path, make.registry.registry(tmp_path))
    opening = make.service.OPENING.model_copy(update={"agent": "[bold]a\x1b[2J"})
    agent.ledger.open_run(opening, agent.simulator.digest)
    heading, other_row, own_row, total = lines(call(f"cost --group-by agent --store {tmp_path}"))
    assert heading[:2] == ["agent", "episodes"]
    assert other_row[0] == r"[bold]a\x1b[2J, unregistered"
    assert (own_row[:3], total[:3]) == (["shell-agent@1", "1", "2"], ["total", "1", "2"])
    costs = json.loads(call(f"cost --group-by agent --store {tmp_path} --json").out)["costs"]
    assert [(cost["agent"], cost["registered"], cost["run"]) for cost in costs] == [
        (opening.agent, False, None),
        ("shell-agent@1", True, None),
    ]


def test_cost_by_agent_without_a_registry_is_refused_in_one_sentence(call, example, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    result = call(f"cost --group-by agent --store {example.store}")
    assert (result.code, result.out) == (2, "")
    assert "holds no registry" in result.error
    assert result.error.count("\n") == 1


@pytest.mark.usefixtures("priced")
def test_cost_with_configured_prices_shows_the_money(call, example):
    (row,) = example.ledger.counts.run_usage(run=example.run)
    money = row.usage.input_tokens * Decimal("0.001") + row.usage.output_tokens * Decimal("0.002")
    heading, line, total = lines(call(f"cost --store {example.store}"))
    assert heading[-1] == "EUR"
    assert line[-1] == total[-1] == f"{money:,.6f}"


@pytest.mark.usefixtures("priced")
def test_cost_as_json_is_exact(call, example):
    report = json.loads(call(f"cost --store {example.store} --json").out)
    (cost,) = report["costs"]
    names = cost["run"], cost["agent"], cost["tenant"], cost["simulator"], cost["episode"]
    assert names == (example.run, "shell-agent", "local", make.service.SIMULATOR, None)
    (row,) = example.ledger.counts.run_usage()
    assert Usage(*(cost[name] for name in Usage._fields)) == row.usage
    assert cost["money"] == str(Decimal(cost["money"])) == report["total"]["money"]
    assert (report["currency"], report["total"]["run"]) == ("EUR", None)


def test_large_numbers_are_not_cut_off_and_long_names_wrap(call, example):
    agent = "agent" * 60
    opening = make.service.OPENING.model_copy(update={"agent": agent})
    run = example.ledger.open_run(opening, make.service.SIMULATOR).id
    episode = open_episode(example.ledger, run, make.service.SIMULATOR)
    (write,) = taken(episode, "x")
    usage = Usage(2**31 - 1, 2**31 - 1, 2**31 - 1, 123456789.5)
    example.ledger.write([write._replace(step=write.step._replace(usage=usage))])
    out = call(f"cost --store {example.store}").out
    assert all(number in out for number in ("2,147,483,647", "123,456,789.5", run))
    assert re.sub(r"[^a-z]", "", out).count("agent") >= 60
    assert "…" not in out


def test_cost_escapes_control_characters_in_names(call, example, monkeypatch):
    monkeypatch.setenv("AGENTWORLD_PRICE_CURRENCY", "[red]\x1b[2J")
    opening = make.service.OPENING.model_copy(update={"agent": "[bold]a\x1b[2J\n"})
    example.ledger.open_run(opening, make.service.SIMULATOR)
    out = call(f"cost --store {example.store}").out
    assert "\x1b" not in out
    assert r"[red]\x1b[2J" in out
    assert r"[bold]a\x1b[2J\n" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--run gone", "the ledger has nothing of run gone;"),
        ("--episode gone", "the ledger has nothing of episode gone;"),
        ("--tenant nobody", "the ledger has nothing of tenant nobody;"),
        ("--tenant local --run gone --group-by tenant", "nothing of run gone, tenant local;"),
    ],
)
def test_the_cost_of_an_unknown_run_episode_or_tenant_prints_one_sentence(
    call, example, words, sentence
):
    result = call(f"cost {words} --store {example.store}")
    assert (result.code, result.out) == (2, "")
    assert sentence in result.error
    assert result.error.count("\n") == 1


def test_an_invalid_price_is_refused_in_one_sentence(call, example, monkeypatch):
    monkeypatch.setenv("AGENTWORLD_PRICE_PER_ENGINE_HOUR", "dear")
    result = call(f"cost --store {example.store}")
    assert result.code == 2
    assert "a price in the environment is invalid" in result.error
    assert result.error.count("\n") == 1


def test_a_store_without_a_ledger_stays_empty(call, tmp_path):
    assert "holds no ledger" in call(f"cost --store {tmp_path}").error
    assert list(tmp_path.iterdir()) == []


def test_cost_help_explains_counting_and_prices(call):
    text = " ".join(call("cost --help").out.split())
    for words in (
        "counts every answered step with its retries and further samples",
        "does not count a step that failed (see the service's metrics)",
        "AGENTWORLD_PRICE_PER_MILLION_INPUT_TOKENS",
    ):
        assert words in text


@pytest.mark.waits
def test_cost_reads_the_ledger_server_named_in_the_environment(
    call, tmp_path, monkeypatch, postgres_url
):
    ledger = Ledger(postgres_url)
    run = ledger.open_run(make.service.OPENING, make.service.SIMULATOR, tenant="acme").id
    episode = open_episode(ledger, run, make.service.SIMULATOR)
    writes = taken(episode, "x", "y")
    usage = Usage(100, 40, 7, 0.5)
    ledger.write([write._replace(step=write.step._replace(usage=usage)) for write in writes])
    ledger.close()
    monkeypatch.setenv("AGENTWORLD_LEDGER_URL", postgres_url)
    store = tmp_path / "store"
    for words in (
        "",
        "--group-by tenant",
        f"--run {run}",
        f"--episode {episode.id}",
        "--tenant acme",
    ):
        report = json.loads(call(f"cost {words} --store {store} --json").out)
        (cost,) = report["costs"]
        assert (cost["tenant"], cost["num_steps"]) == ("acme", 2)
        assert [cost[name] for name in Usage._fields] == [200, 80, 14, 1.0]
    assert not store.exists()
