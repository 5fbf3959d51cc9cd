import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.data.masking import is_kept, measure, turn_class
from agentworld.recipes.data import MaskRecipe


# By hand: words are lower-cased runs of letters and digits, each counted once.
@pytest.mark.parametrize(
    ("action", "observation", "expected"),
    [
        ("think a b c d", "a b c d", "echo"),  # OL 4/5, Nov 0
        ("echo kolu tane besa", "kolu tane besa\n[0] ~", "echo"),  # OL 3/4, Nov 1/4
        ("create a b", "a b ok 1", "action"),  # OL 2/3, Nov 1/2, R 8/10
        ("set a b c", "a b ok", "boilerplate"),  # OL 1/2, Nov 1/3
        ("a b c d e f g h", "a h ok", "transform"),  # OL 1/4, Nov 1/3, R 6/15
        ("cat x", "kolu tane [0] ~", "retrieval"),  # Nov 1, R > 1
        ("aa bb", "aa bb cc dd", "expansion"),  # OL 1, Nov 1/2, R 11/5
        ("send a long message", "sent", "action"),  # Nov 1, R < 1
        ("a b c d e f g h i", "a b c d xx yy zz uu vv", "other"),  # OL 4/9, Nov 5/9, 9 words
        ("a b c d e", "a b cccccccccc", "other"),  # OL 2/5, Nov 1/3, R 14/9
        ("", "[0] ~", "retrieval"),
        ("ls", "", "transform"),
        ("", "", "transform"),
    ],
)
def test_a_turn_is_of_the_first_class_whose_rule_holds(action, observation, expected):
    assert turn_class(action, observation) == expected


def test_the_quantities_are_those_of_the_paper():
    overlap = measure("Copy a b", "copied A 1 2")
    assert overlap.overlap == pytest.approx(1 / 3)
    assert overlap.novelty == pytest.approx(3 / 4)
    assert overlap.ratio == pytest.approx(12 / 8)


@given(st.text(), st.text())
def test_every_turn_has_a_class_with_a_share_in_the_recipe(action, observation):
    assert turn_class(action, observation) in MaskRecipe.model_fields


@pytest.mark.parametrize(("kind", "share"), [("echo", 0.05), ("boilerplate", 0.1), ("other", 1.0)])
def test_the_recipes_share_of_the_turns_of_a_class_is_kept(kind, share):
    num_kept = sum(is_kept(MaskRecipe(), kind, 0, f"sha256:{n}", n % 9) for n in range(4_000))
    assert num_kept / 4_000 == pytest.approx(share, abs=0.02)


def test_masking_is_deterministic_for_a_seed():
    def masks(seed):
        return [is_kept(MaskRecipe(echo=0.5), "echo", seed, "digest", n) for n in range(50)]

    assert masks(1) == masks(1) != masks(2)
