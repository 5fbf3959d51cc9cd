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
    """Between what a table puts two blanks at least."""
    return re.split(r"\s{2,}", line.strip())


def lines(done):
    """The lines of a table: its heading, its rows, its total; without rules."""
    assert (done.code, done.error) == (0, "")
    return [cells(line) for line in done.out.splitlines() if line.strip("─ ")]


def test_every_run_has_a_line_and_all_have_a_total(call, played):
    newer = played.ledger.open_run(make.service.OPENING, make.service.SIMULATOR).id
    heading, first, second, total = lines(call(f"cost --store {played.store}"))
    assert heading == ["run", "agent", *NUMBERS, "money"]
    assert first == [newer, "shell-agent", *["0"] * 5, "0.0", "-"]
    (used,) = played.ledger.counts.run_usage(run=played.run)
    read, cached, written, _ = used.usage
    assert read > written > cached == 0
    known = [f"{read:,}", "0", f"{written:,}"]
    assert second[:7] == [played.run, "shell-agent", "1", "3", *known]
    assert total[:6] == ["total", "1", "3", *known]
    assert second[-1] == total[-1] == "-"


NUMBERS = ["episodes", "steps", "input", "cached", "output", "engine s"]


def test_a_run_is_told_episode_by_episode(call, played):
    heading, line, _ = lines(call(f"cost --run {played.run} --store {played.store}"))
    assert heading[:2] == ["episode", "run"]
    assert line[:4] == [played.episode, played.run, "1", "3"]
    assert lines(call(f"cost --episode {played.episode} --store {played.store}"))[1] == line


@pytest.mark.waits
def test_tenants_are_told_where_there_is_one(call, played):
    opening, simulator = make.service.OPENING, make.service.SIMULATOR
    assert "tenant" not in lines(call(f"cost --store {played.store}"))[0]
    played.ledger.open_run(opening, simulator, tenant="acme")
    heading, first, *_ = lines(call(f"cost --store {played.store}"))
    assert (heading[1], first[1]) == ("tenant", "acme")
    rows = lines(call(f"cost --group-by tenant --store {played.store}"))
    assert [row[0] for row in rows] == ["tenant", "acme", "local", "total"]
    one = lines(call(f"cost --tenant local --store {played.store}"))
    assert [row[0] for row in one] == ["run", played.run, "total"]


@pytest.mark.waits
def test_an_agent_has_a_line_and_what_is_registered_is_told_from_what_is_not(
    call, tmp_path, monkeypatch
):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    made = make.agent.registered(tmp_path, make.registry.registry(tmp_path))
    opening = make.service.OPENING.model_copy(update={"agent": "[bold]a\x1b[2J"})
    made.ledger.open_run(opening, made.simulator.digest)
    heading, other, own, total = lines(call(f"cost --group-by agent --store {tmp_path}"))
    assert heading[:2] == ["agent", "episodes"]
    assert other[0] == r"[bold]a\x1b[2J, unregistered"
    assert (own[:3], total[:3]) == (["shell-agent@1", "1", "2"], ["total", "1", "2"])
    costs = json.loads(call(f"cost --group-by agent --store {tmp_path} --json").out)["costs"]
    assert [(each["agent"], each["registered"], each["run"]) for each in costs] == [
        (opening.agent, False, None),
        ("shell-agent@1", True, None),
    ]


def test_agents_of_a_store_without_a_registry_are_one_sentence(call, played, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    done = call(f"cost --group-by agent --store {played.store}")
    assert (done.code, done.out) == (2, "")
    assert "holds no registry" in done.error
    assert done.error.count("\n") == 1


@pytest.mark.usefixtures("priced")
def test_what_has_a_price_has_its_money(call, played):
    (used,) = played.ledger.counts.run_usage(run=played.run)
    paid = used.usage.input_tokens * Decimal("0.001") + used.usage.output_tokens * Decimal("0.002")
    heading, line, total = lines(call(f"cost --store {played.store}"))
    assert heading[-1] == "EUR"
    assert line[-1] == total[-1] == f"{paid:,.6f}"


@pytest.mark.usefixtures("priced")
def test_what_is_told_as_json_is_exact(call, played):
    told = json.loads(call(f"cost --store {played.store} --json").out)
    (cost,) = told["costs"]
    names = cost["run"], cost["agent"], cost["tenant"], cost["simulator"], cost["episode"]
    assert names == (played.run, "shell-agent", "local", make.service.SIMULATOR, None)
    (used,) = played.ledger.counts.run_usage()
    assert Usage(*(cost[name] for name in Usage._fields)) == used.usage
    assert cost["money"] == str(Decimal(cost["money"])) == told["total"]["money"]
    assert (told["currency"], told["total"]["run"]) == ("EUR", None)


def test_a_large_number_is_not_cut_off_and_a_long_name_goes_on_below(call, played):
    agent = "agent" * 60
    opening = make.service.OPENING.model_copy(update={"agent": agent})
    run = played.ledger.open_run(opening, make.service.SIMULATOR).id
    episode = open_episode(played.ledger, run, make.service.SIMULATOR)
    (write,) = taken(episode, "x")
    usage = Usage(2**31 - 1, 2**31 - 1, 2**31 - 1, 123456789.5)
    played.ledger.write([write._replace(step=write.step._replace(usage=usage))])
    out = call(f"cost --store {played.store}").out
    assert all(number in out for number in ("2,147,483,647", "123,456,789.5", run))
    assert re.sub(r"[^a-z]", "", out).count("agent") >= 60
    assert "…" not in out


def test_a_name_can_do_nothing_to_a_terminal(call, played, monkeypatch):
    monkeypatch.setenv("AGENTWORLD_PRICE_CURRENCY", "[red]\x1b[2J")
    opening = make.service.OPENING.model_copy(update={"agent": "[bold]a\x1b[2J\n"})
    played.ledger.open_run(opening, make.service.SIMULATOR)
    out = call(f"cost --store {played.store}").out
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
def test_what_is_not_there_is_one_sentence(call, played, words, sentence):
    done = call(f"cost {words} --store {played.store}")
    assert (done.code, done.out) == (2, "")
    assert sentence in done.error
    assert done.error.count("\n") == 1


def test_a_price_that_is_none_is_one_sentence(call, played, monkeypatch):
    monkeypatch.setenv("AGENTWORLD_PRICE_PER_ENGINE_HOUR", "dear")
    done = call(f"cost --store {played.store}")
    assert done.code == 2
    assert "a price in the environment is invalid" in done.error
    assert done.error.count("\n") == 1


def test_a_store_without_a_ledger_stays_empty(call, tmp_path):
    assert "holds no ledger" in call(f"cost --store {tmp_path}").error
    assert list(tmp_path.iterdir()) == []


def test_help_says_what_is_counted_and_how_it_is_priced(call):
    said = " ".join(call("cost --help").out.split())
    for words in (
        "counts every answered step with its retries and further samples",
        "does not count a step that failed (see the service's metrics)",
        "AGENTWORLD_PRICE_PER_MILLION_INPUT_TOKENS",
    ):
        assert words in said


@pytest.mark.waits
def test_a_service_on_a_server_is_counted_through_the_environment(
    call, tmp_path, monkeypatch, postgres_url
):
    ledger = Ledger(postgres_url)
    run = ledger.open_run(make.service.OPENING, make.service.SIMULATOR, tenant="acme").id
    episode = open_episode(ledger, run, make.service.SIMULATOR)
    writes = taken(episode, "x", "y")
    usage = Usage(100, 40, 7, 0.5)
    ledger.write([each._replace(step=each.step._replace(usage=usage)) for each in writes])
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
        told = json.loads(call(f"cost {words} --store {store} --json").out)
        (cost,) = told["costs"]
        assert (cost["tenant"], cost["num_steps"]) == ("acme", 2)
        assert [cost[name] for name in Usage._fields] == [200, 80, 14, 1.0]
    assert not store.exists()
