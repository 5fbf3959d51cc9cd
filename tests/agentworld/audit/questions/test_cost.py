"""Amounts of money are exact, usage without a price has none, and parts add up to the total."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.audit.questions.cost import Prices, agents_by_run, costs
from agentworld.errors import InputError, NotFound
from agentworld.ledger import Ledger
from agentworld.records.usage import Usage
from make.ledger import OPENING, SIMULATOR, laid, open_episode, taken
from make.story import story

USAGE = Usage(1_000, 400, 70, 1.5)
TOKENS = {"per_million_input_tokens": "0.15", "per_million_output_tokens": "0.6"}


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(laid(f"sqlite:///{tmp_path / 'ledger.db'}"))
    yield ledger
    ledger.close()


def play(ledger, run, num_steps):
    """An episode whose steps all have the same usage."""
    episode = open_episode(ledger, run)
    writes = taken(episode, *["x"] * num_steps)
    ledger.write([write._replace(step=write.step._replace(usage=USAGE)) for write in writes])
    return episode.id


@pytest.fixture
def runs(ledger):
    """The runs of two tenants: one with episodes of 1 and 2 steps, one with 3 steps, one empty."""
    names = [
        ledger.open_run(OPENING, SIMULATOR, f"{number}" * 32, tenant).id
        for number, tenant in enumerate(("acme", "beta", "acme"))
    ]
    for run, num_steps in ((0, 1), (0, 2), (1, 3)):
        play(ledger, names[run], num_steps)
    return names


def money(usage, **prices):
    return Prices.model_validate(prices).money(usage)


@pytest.mark.parametrize(
    ("prices", "expected"),
    [
        ({}, None),
        (TOKENS, "0.000192"),
        ({**TOKENS, "per_million_cached_tokens": "0.05"}, "0.000152"),
        ({**TOKENS, "per_million_cached_tokens": "0"}, "0.000132"),
        ({"per_engine_hour": "2.4"}, "0.001000"),
        ({**TOKENS, "per_engine_hour": "2.4"}, "0.001192"),
        ({"per_engine_hour": "0"}, "0.000000"),
    ],
    ids=["nothing", "tokens", "held", "held for free", "hours", "both", "for free"],
)
def test_usage_is_charged_once_at_the_configured_prices(prices, expected):
    assert money(USAGE, **prices) == (expected and Decimal(expected))


def test_money_is_written_with_six_decimal_places():
    assert [str(money(usage, **TOKENS)) for usage in (Usage(), Usage(10**12, 0, 1))] == [
        "0.000000",
        "150000.000001",
    ]


counts = st.integers(0, 2**40)
usages = st.builds(
    lambda inputs, cached, outputs: Usage(inputs, min(inputs, cached), outputs),
    counts,
    counts,
    counts,
)


@pytest.mark.waits
@given(usages, usages)
def test_the_cost_of_two_usages_is_the_cost_of_their_sum(one, other):
    """The last digit of each cost is rounded and may differ."""
    parts = money(one, **TOKENS) + money(other, **TOKENS)
    assert abs(parts - money(one.plus(other), **TOKENS)) <= Decimal("0.000002")


@pytest.mark.waits
@given(usages)
def test_cached_tokens_without_a_price_cost_as_much_as_other_input_tokens(usage):
    assert money(usage, **TOKENS) == money(usage._replace(cached_tokens=0), **TOKENS)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"PER_ENGINE_HOUR": "dear"}, "per_engine_hour: .*got 'dear'"),
        ({"PER_ENGINE_HOUR": "-1"}, "greater than or equal to 0"),
        ({"PER_ENGINE_HOUR": "nan"}, "per_engine_hour"),
        ({"PER_ENGINE_HOUR": "inf"}, "per_engine_hour"),
        ({"PER_ENGINE_HOUR": "1e9"}, "less than or equal to 1000000"),
        ({"PER_MILLION_INPUT_TOKENS": "1"}, "sets only some token prices; set both"),
        ({"PER_MILLION_OUTPUT_TOKENS": "1"}, "sets only some token prices; set both"),
        ({"PER_MILLION_CACHED_TOKENS": "1"}, "sets only some token prices; set both"),
    ],
)
def test_an_invalid_or_incomplete_price_is_rejected(monkeypatch, variables, words):
    for name, value in variables.items():
        monkeypatch.setenv(f"AGENTWORLD_PRICE_{name}", value)
    with pytest.raises(InputError, match=words) as error:
        Prices.from_environment()
    assert "\n" not in str(error.value)


def test_prices_are_read_from_the_environment_and_an_empty_value_is_none(monkeypatch):
    monkeypatch.setenv("AGENTWORLD_PRICE_PER_ENGINE_HOUR", "2.50")
    monkeypatch.setenv("AGENTWORLD_PRICE_PER_MILLION_INPUT_TOKENS", "")
    monkeypatch.setenv("AGENTWORLD_PRICE_CURRENCY", "EUR")
    prices = Prices.from_environment()
    assert (prices.per_engine_hour, prices.currency) == (Decimal("2.50"), "EUR")
    assert prices.per_million_input_tokens is None


def test_costs_by_run_contain_run_details_and_list_the_newest_run_first(ledger, runs):
    report = costs(ledger, Prices(), "run")
    assert [(cost.run, cost.tenant, cost.num_steps) for cost in report.costs] == [
        (runs[2], "acme", 0),
        (runs[1], "beta", 3),
        (runs[0], "acme", 3),
    ]
    assert {(cost.agent, cost.simulator, cost.episode) for cost in report.costs} == {
        (OPENING.agent, SIMULATOR, None)
    }


@pytest.mark.usefixtures("runs")
def test_costs_by_tenant_sum_over_all_runs_and_name_no_run(ledger):
    rows = costs(ledger, Prices(), "tenant").costs
    assert [(cost.tenant, cost.num_episodes, cost.num_steps) for cost in rows] == [
        ("acme", 2, 3),
        ("beta", 1, 3),
    ]
    assert {(cost.run, cost.agent, cost.simulator) for cost in rows} == {(None, None, None)}


def test_costs_by_agent_use_registered_versions_or_the_agent_name_of_the_run(ledger, runs):
    other = ledger.open_run(OPENING, SIMULATOR, "3" * 32, "acme").id
    play(ledger, other, 4)
    rows = costs(ledger, Prices(), "agent", {runs[0]: "hero@1, hero@2"}).costs
    assert [
        (cost.agent, cost.registered, cost.tenant, cost.num_episodes, cost.num_steps)
        for cost in rows
    ] == [
        (OPENING.agent, False, "acme", 1, 4),
        (OPENING.agent, False, "beta", 1, 3),
        ("hero@1, hero@2", True, "acme", 2, 3),
    ]
    assert {(cost.run, cost.simulator) for cost in rows} == {(None, None)}


def test_an_agent_name_that_looks_like_a_version_is_not_counted_as_registered(ledger):
    opening = OPENING.model_copy(update={"agent": "hero@1"})
    run = ledger.open_run(OPENING, SIMULATOR).id
    ledger.open_run(opening, SIMULATOR)
    rows = costs(ledger, Prices(), "agent", {run: "hero@1"}).costs
    assert sorted((cost.agent, cost.registered) for cost in rows) == [
        ("hero@1", False),
        ("hero@1", True),
    ]


def test_agents_by_run_lists_all_versions_from_a_run(tmp_path):
    history = story(tmp_path)
    assert agents_by_run(history.sources.registry) == {history.run.id: "hero@1"}
    agent = history.sources.registry.agent(history.agent)
    history.sources.registry.register_agent("again", agent, tmp_path / "agent")
    assert agents_by_run(history.sources.registry) == {history.run.id: "again@1, hero@1"}


def test_costs_by_episode_are_listed_in_opening_order(ledger, runs):
    report = costs(ledger, Prices(), "episode", run=runs[0])
    assert [cost.episode for cost in report.costs] == [row.id for row in ledger.episodes(runs[0])]
    assert [(cost.num_episodes, cost.num_steps) for cost in report.costs] == [(1, 1), (1, 2)]


def test_a_run_without_episodes_has_a_total_and_no_costs_by_episode(ledger, runs):
    report = costs(ledger, Prices(), "episode", run=runs[2])
    assert (report.costs, report.total.num_episodes, report.total.num_steps) == ((), 0, 0)


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("filters", [{}, {"tenant": "acme"}, {"run": "0" * 32}])
def test_the_total_is_the_same_for_every_grouping_of_costs(ledger, filters):
    prices = Prices.model_validate({**TOKENS, "per_engine_hour": "3.6"})
    groupings = ("tenant", "agent", "run", "episode")
    tenant, agent, run, episode = (
        costs(ledger, prices, grouping, **filters) for grouping in groupings
    )
    assert tenant.total == agent.total == run.total == episode.total
    for report in (tenant, agent, run, episode):
        assert sum(cost.num_steps for cost in report.costs) == report.total.num_steps
        assert sum(cost.money for cost in report.costs) == report.total.money
    assert run.total.run is None


@pytest.mark.usefixtures("runs")
def test_costs_without_configured_prices_have_no_money(ledger):
    report = costs(ledger, Prices(), "run")
    assert {cost.money for cost in (*report.costs, report.total)} == {None}


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("filters", "words"),
    [
        ({"tenant": "nobody"}, "nothing of tenant nobody;"),
        ({"run": "gone"}, "nothing of run gone;"),
        ({"episode": "gone"}, "nothing of episode gone;"),
        ({"tenant": "beta", "run": "0" * 32}, f"nothing of run {'0' * 32}, tenant beta;"),
    ],
)
def test_costs_of_an_unknown_tenant_run_or_episode_raise_not_found(ledger, filters, words):
    with pytest.raises(NotFound, match=words):
        costs(ledger, Prices(), "episode", **filters)


def test_the_costs_of_a_ledger_without_runs_are_zero(ledger):
    report = costs(ledger, Prices.model_validate(TOKENS), "run")
    assert (report.costs, report.total.money) == ((), Decimal(0))
