import pytest

import make_job
from agentworld.steps import AFTER_GATE, STEPS
from agentworld.steps.summary import ExactMatch, Summary, summarise
from agentworld.steps.targets import Figure, figures_of


@pytest.fixture
def summary(tmp_path) -> Summary:
    return summarise("demo", make_job.finished_job(tmp_path), peak_memory_gib=2.5)


def test_a_summary_has_the_keys_that_benchmarks_look_for(summary):
    exact = {"exact_match", "exact_match_state", "exact_match_unseen"}
    tree = summary.model_dump(mode="json")
    assert set(tree) == {
        *("recipe", "commit", "world_model", "gate", "agent", "simulator"),
        *("seconds", "peak_memory_gib"),
    }
    assert set(tree["world_model"]) == {"cpt", "sft", "rl", "baseline"}
    assert set(tree["world_model"]["baseline"]) == {"copy", "nearest"}
    for stage in ("cpt", "sft", "rl"):
        assert set(tree["world_model"][stage]) == exact
    assert set(tree["agent"]["trained"]) == {"simulated_success", "live_success"}
    assert set(tree["agent"]) == {
        *("untrained", "trained", "live_gain_interval", "live_steps_in_training"),
    }
    assert set(tree["simulator"]) == {"digest"}
    assert tree["gate"] == {"verdict": "passed", "reason": ""}
    assert set(tree["seconds"]) == set(STEPS)


def test_a_job_that_its_gate_ended_says_why_and_has_neither_simulator_nor_agent(tmp_path):
    summary = summarise("demo", make_job.refused_job(tmp_path), peak_memory_gib=2.5)
    reason = "rl.rule is 0.3, which is under 0.5"
    assert summary.gate.model_dump() == {"verdict": "refused", "reason": reason}
    assert (summary.simulator, summary.agent) == (None, None)
    assert list(summary.seconds) == [step for step in STEPS if step not in AFTER_GATE]
    names = [figure.name for figure in figures_of(summary)]
    assert "exact match, all turns" in names
    assert not any(name.startswith("live") for name in names)


@pytest.mark.parametrize(("watched", "known"), [(2.5, 2.5), (0.1, 1.25)])
def test_memory_is_the_most_that_was_seen_even_by_a_step_of_an_earlier_run(
    tmp_path, watched, known
):
    folders = make_job.finished_job(tmp_path)
    assert summarise("demo", folders, watched).peak_memory_gib == known


def test_the_better_of_sft_and_rl_is_held_against_the_targets(summary):
    figures = {figure.name: figure for figure in figures_of(summary)}
    assert figures["exact match, all turns"].value == summary.world_model.rl.exact_match
    assert figures["lead over both baselines"].value == pytest.approx(0.82 - 0.3)


def test_a_job_that_keeps_everything_that_must_hold_is_seen_as_such(summary):
    assert [figure.name for figure in figures_of(summary) if not figure.holds] == []


@pytest.mark.parametrize(("recipe", "seconds"), [("long", 3599.0), ("my-own", 1e6)])
def test_a_longer_recipe_may_take_longer(summary, recipe, seconds):
    changed = summary.model_copy(update={"recipe": recipe, "seconds": {"collect": seconds}})
    assert all(figure.holds for figure in figures_of(changed))


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"peak_memory_gib": 6.5}, "memory at most"),
        ({"seconds": {"collect": 901.0}}, "time of all steps"),
        ({"seconds": {"collect": 3601.0}, "recipe": "long"}, "time of all steps"),
    ],
)
def test_a_figure_that_does_not_hold_is_named(summary, changed, name):
    changed = summary.model_copy(update=changed)
    assert [figure.name for figure in figures_of(changed) if not figure.holds] == [name]


def test_one_live_step_in_training_is_one_too_many(summary):
    agent = summary.agent.model_copy(update={"live_steps_in_training": 1})
    changed = summary.model_copy(update={"agent": agent})
    assert [figure.name for figure in figures_of(changed) if not figure.holds] == [
        "live steps in training"
    ]


def test_a_lead_over_one_baseline_alone_is_none(summary):
    strong = ExactMatch(exact_match=0.81, exact_match_state=0.1, exact_match_unseen=0.1)
    world = summary.world_model.model_copy(update={"baseline": {"copy": strong}})
    changed = summary.model_copy(update={"world_model": world})
    assert "lead over both baselines" in [
        figure.name for figure in figures_of(changed) if not figure.holds
    ]


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [(1_113.4, "s", "1113 s"), (778.2, "s", "778 s"), (0.7264, "", "0.726"), (0, "", "0")],
)
def test_a_value_is_shown_as_people_read_it(value, unit, shown):
    assert Figure("any", value, unit=unit).shown == shown
