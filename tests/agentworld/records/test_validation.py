import pytest

from agentworld.records.validation import Answers, ValidationRule
from make import records

SUBJECT = {records.digest("artifact of rl")}


def validation(**fields):
    return records.grouped_report(**fields).validation(SUBJECT)


def test_a_report_with_all_answers_and_a_lead_over_every_baseline_validates():
    result = validation()
    assert (result.passed, result.problems, result.answers.num) == (True, (), 100)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"missing": 3}, "3 of 100 answers are missing"),
        ({"cut_off": 100}, "100 of 100 answers are cut off or empty"),
        ({"num": 0}, "nothing was asked"),
        ({"num_episodes": 1}, "1 episodes were answered; 10 are needed"),
        (
            {"lead": 0.05},
            "the lead over copy in token_f1 may be 0.000, which is not above 0",
        ),
    ],
    ids=["missing", "cut off", "none", "one episode", "lead"],
)
def test_missing_or_too_few_answers_or_an_uncertain_lead_fail_validation(fields, problem):
    result = validation(**fields)
    assert not result.passed
    assert result.problems[0] == problem


def test_the_validation_rule_sets_the_metric_and_the_minimum_lead():
    report = records.grouped_report(lead=0.3)
    rule = ValidationRule(metric="exact_match", least_lead=0.2)
    assert report.model_copy(update={"rule": rule}).validation(SUBJECT).passed
    stricter_rule = rule.model_copy(update={"least_lead": 0.25})
    assert not report.model_copy(update={"rule": stricter_rule}).validation(SUBJECT).passed
    (problem,) = (
        report.model_copy(update={"rule": ValidationRule(metric="rouge_l")})
        .validation(SUBJECT)
        .problems
    )
    assert problem == "no baseline was compared in rouge_l"


def test_a_report_about_another_subject_or_an_agent_gives_no_validation():
    other_subject = {records.digest("other")}
    assert records.grouped_report().validation(other_subject) is None
    assert records.agent_report().validation({records.manifest().digest}) is None
    assert records.served_report().validation(other_subject) is None


def test_an_evaluation_without_answer_counts_fails_validation():
    result = records.served_report().validation({records.manifest().digest})
    assert result.problems == ("nothing was asked", "no baseline was compared in token_f1")


def test_a_served_simulator_is_validated_by_the_same_rule():
    score = records.grouped_report().stages["rl"]
    answers = Answers(num=9, num_episodes=10)
    scores = {"exact_match": score.exact_match, "leads": score.leads, "answers": answers}
    result = records.served_report(free_running=scores).validation({records.manifest().digest})
    assert (result.passed, result.answers.num) == (True, 9)
