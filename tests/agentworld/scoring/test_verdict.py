import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.scoring.verdict import parse_preference, parse_verdict

ALL = '"format": 5, "factuality": 4, "consistency": 3, "realism": 2, "quality": 1'
EXPECTED = (5, 4, 3, 2, 1)


@pytest.mark.parametrize(
    "text",
    [
        f'<final_evaluation>\n```json\n{{"strengths": [], "scores": {{{ALL}}}}}\n```',
        f'```\n{{"scores": {{{ALL}}}}}\n```',
        f'Well. {{"strengths": ["a {{b}}"], "scores": {{{ALL}}}}} I hope this helps.',
        f"{{{ALL}}}",
        f'{{"scores": {{{ALL},}},}}',
        "{'scores': {'format': 5, 'factuality': 4, 'consistency': 3, 'realism': 2, 'quality': 1}}",
        "{scores: {format: 5, factuality: 4, consistency: 3, realism: 2, quality: 1}}",
        '{"scores": {"format": "5/5", "factuality": "4", "consistency": 3.2, "realism": "2.4/5",'
        ' "quality": 0}}',
        "format: 5, factuality: 4; Consistency = 3\nrealism: 2\nquality: 1",
        '{"scores": {"format": 5, "factuality": 4, "consistency": 3, "realism": 2, "quality": 1',
        f'<think>{{"scores": {{"format": 1}}}}</think>{{"scores": {{{ALL}}}}}',
        f'```json\n{{"scores": {{"format": 1}}}}\n```\nNo:\n```json\n{{"scores": {{{ALL}}}}}\n```',
    ],
    ids=[
        "as asked",
        "plain fence",
        "in prose",
        "scores alone",
        "trailing commas",
        "single quotes",
        "bare keys",
        "odd numbers",
        "no JSON",
        "cut off",
        "after a thought",
        "the last of two",
    ],
)
def test_scores_are_parsed_from_many_formats_of_judge_answers(text):
    assert tuple(parse_verdict(text)) == EXPECTED


@pytest.mark.parametrize(
    ("value", "expected"),
    [("9", 5), ("-3", 1), ('"great"', 0), ("null", 0), ("true", 0), ("[5]", 0), ("1e999", 0)],
)
def test_scores_are_clamped_and_non_numeric_scores_become_zero(value, expected):
    score = parse_verdict(f'{{"scores": {{"format": {value}, "quality": 2}}}}')
    assert (score.format, score.quality, score.realism) == (expected, 2, 0)


@pytest.mark.parametrize("text", ["", "I cannot judge this.", "{}", '{"scores": {}}', "[1]", "}{"])
def test_without_scores_there_is_no_verdict(text):
    assert parse_verdict(text) is None


@given(st.text() | st.text("{}\"':,5 format`scores", max_size=60))
def test_a_verdict_is_none_or_within_its_bounds(text):
    score = parse_verdict(text)
    assert score is None or all(0 <= value <= 5 for value in score)


@pytest.mark.parametrize(
    ("text", "preference"),
    [
        ('```json\n{"better": "A"}\n```', "A"),
        ("{'better': 'b'}", "B"),
        ('{better: "tie",}', "tie"),
        ('{"better": "A"} No: {"better": "B"}', "B"),
        ('<think>{"better": "A"}</think>{"better": "tie"}', "tie"),
        ('<think>{"better": "A"}</think>A is better', None),
        ('{"better": "C"}', None),
        ('{"better": ["A"]}', None),
        ("A", None),
        ("", None),
    ],
)
def test_a_preference_is_parsed_from_the_last_object_with_a_preference(text, preference):
    assert parse_preference(text) == preference


@given(st.text())
def test_any_text_gives_a_valid_preference_or_none(text):
    assert parse_preference(text) in (None, "A", "B", "tie")
