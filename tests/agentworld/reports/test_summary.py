import pytest

import make.job
from agentworld.records.report import Estimate
from agentworld.reports.summary import Summary, summarise
from agentworld.reports.targets import Figure, figures_of
from agentworld.steps.table import AFTER_GATE, MAIN_JOB


@pytest.fixture
def summary(tmp_path) -> Summary:
    return summarise("demo", make.job.finished_job(tmp_path), peak_memory_gib=2.5)


def test_a_summary_has_the_keys_that_benchmarks_look_for(summary):
    tree = summary.model_dump(mode="json")
    assert set(tree) == {
        *("recipe", "commit", "world_model", "gate", "agent", "simulator"),
        *("seconds", "peak_memory_gib"),
    }
    assert set(tree["world_model"]) == {"cpt", "sft", "rl", "baseline", "rl_gain", "lead"}
    assert {"mean", "low", "high"} <= set(tree["world_model"]["rl_gain"])
    assert set(tree["world_model"]["baseline"]) == {"copy", "nearest"}
    for stage in ("cpt", "sft", "rl"):
        assert set(tree["world_model"][stage]) == {"exact_match", "by_tag", "without_start"}
        assert {"history", "unseen"} <= set(tree["world_model"][stage]["by_tag"])
    assert set(tree["agent"]["trained"]) == {"simulated_success", "live_success"}
    assert set(tree["agent"]) == {
        *("base", "imitated", "trained", "live_gain", "live_gain_interval"),
        "live_steps_in_training",
    }
    assert set(tree["simulator"]) == {"digest"}
    assert tree["gate"] == {"verdict": "passed", "reason": ""}
    assert set(tree["seconds"]) == set(MAIN_JOB)


def test_the_summary_of_a_refused_job_has_a_reason_and_no_simulator_or_agent(tmp_path):
    summary = summarise("demo", make.job.refused_job(tmp_path), peak_memory_gib=2.5)
    reason = "rl.rule is 0.3, which is under 0.5"
    assert summary.gate.model_dump() == {"verdict": "refused", "reason": reason}
    assert (summary.simulator, summary.agent) == (None, None)
    assert list(summary.seconds) == [step for step in MAIN_JOB if step not in AFTER_GATE]
    names = [figure.name for figure in figures_of(summary)]
    assert "exact match, all turns" in names
    assert not any(name.startswith("live") for name in names)


@pytest.mark.parametrize(("measured", "expected"), [(2.5, 2.5), (0.1, 1.25)])
def test_peak_memory_is_the_maximum_of_this_and_earlier_runs(tmp_path, measured, expected):
    folders = make.job.finished_job(tmp_path)
    assert summarise("demo", folders, measured).peak_memory_gib == expected


def test_the_better_of_sft_and_rl_is_compared_with_the_targets(summary):
    figures = {figure.name: figure for figure in figures_of(summary)}
    assert figures["exact match, all turns"].value == summary.world_model.rl.exact_match
    assert figures["lead over the baselines"].value == pytest.approx(0.82 - 0.3)


def test_all_figures_of_a_successful_job_meet_their_bounds(summary):
    assert [figure.name for figure in figures_of(summary) if not figure.holds] == []


@pytest.mark.parametrize(("recipe", "seconds"), [("long", 3599.0), ("my-own", 1e6)])
def test_the_time_limit_depends_on_the_recipe(summary, recipe, seconds):
    changed_summary = summary.model_copy(update={"recipe": recipe, "seconds": {"collect": seconds}})
    assert all(figure.holds for figure in figures_of(changed_summary))


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"peak_memory_gib": 6.5}, "memory at most"),
        ({"seconds": {"collect": 901.0}}, "time of all steps"),
        ({"seconds": {"collect": 3601.0}, "recipe": "long"}, "time of all steps"),
    ],
)
def test_a_figure_outside_its_bound_does_not_hold(summary, changed, name):
    changed = summary.model_copy(update=changed)
    assert [figure.name for figure in figures_of(changed) if not figure.holds] == [name]


def test_a_single_live_step_in_training_exceeds_the_bound(summary):
    agent = summary.agent.model_copy(update={"live_steps_in_training": 1})
    changed_summary = summary.model_copy(update={"agent": agent})
    assert [figure.name for figure in figures_of(changed_summary) if not figure.holds] == [
        "live steps in training"
    ]


def estimate(mean: float, low: float, high: float) -> Estimate:
    return Estimate(mean=mean, low=low, high=high, num=100)


def changed_figures(summary: Summary, **fields: Estimate | None) -> dict[str, Figure]:
    world = summary.world_model.model_copy(update=fields)
    return {
        figure.name: figure
        for figure in figures_of(summary.model_copy(update={"world_model": world}))
    }


@pytest.mark.parametrize(
    ("gain", "verdict"),
    [
        (estimate(0.0024, -0.003, 0.008), "no difference seen"),
        (estimate(0.02, 0.001, 0.04), "yes"),
        (estimate(-0.02, -0.04, -0.001), "no"),
    ],
)
def test_a_gain_counts_only_if_its_whole_interval_is_above_zero(summary, gain, verdict):
    figure = changed_figures(summary, rl_gain=gain)["gain of RL over SFT"]
    assert figure.verdict(figure.goal) == verdict
    assert figure.text.startswith(f"{gain.mean:+.3f} {gain.low:+.3f} to")


def test_a_lead_holds_only_if_its_whole_interval_meets_the_bound(summary):
    figure = changed_figures(summary, lead=estimate(0.15, 0.09, 0.2))["lead over the baselines"]
    assert (figure.holds, figure.verdict(0.1)) == (False, "no")
    assert changed_figures(summary, lead=estimate(0.15, 0.11, 0.2))["lead over the baselines"].holds


def test_the_mcp_recipe_has_bounds_on_lead_gain_and_time_but_not_on_shares(summary):
    changed_summary = summary.model_copy(update={"recipe": "mcp"})
    figures = {figure.name: figure for figure in figures_of(changed_summary)}
    lead, gain = figures["lead over the baselines"], figures["live gain of RL"]
    assert (lead.must, lead.goal, gain.must) == (1e-9, 0.1, 1e-9)
    assert figures["exact match, all turns"].must is None
    assert figures["live success, trained"].must is None
    assert figures["time of all steps"].must == 900


def test_the_exact_match_without_reads_of_the_start_is_shown_only_if_present(summary):
    name = "exact match, start left out"
    rl = summary.world_model.rl.model_copy(update={"without_start": 0.5})
    assert changed_figures(summary, rl=rl)[name].value == 0.5
    assert name not in changed_figures(summary, rl=rl.model_copy(update={"without_start": None}))


def test_a_live_gain_whose_interval_contains_zero_does_not_hold(summary):
    agent = summary.agent.model_copy(update={"live_gain_interval": (-0.01, 0.2)})
    figures = {
        figure.name: figure for figure in figures_of(summary.model_copy(update={"agent": agent}))
    }
    assert not figures["live gain of RL"].holds
    assert figures["live gain of RL"].verdict(1e-9) == "no difference seen"


def test_only_differences_have_an_interval(summary):
    names = {figure.name for figure in figures_of(summary) if figure.interval}
    assert names == {"lead over the baselines", "gain of RL over SFT", "live gain of RL"}


def test_an_evaluation_without_differences_shows_no_gain(summary):
    assert "gain of RL over SFT" not in changed_figures(summary, rl_gain=None, lead=None)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(1_113.4, "s", "1113 s"), (778.2, "s", "778 s"), (0.7264, "", "0.726"), (0, "", "0")],
)
def test_a_value_is_rounded_and_shown_with_its_unit(value, unit, text):
    assert Figure("any", value, unit=unit).text == text
