import pytest

from agentworld.scoring.match import exact_match


@pytest.mark.parametrize(
    ("predicted", "matches"),
    [
        ("kolu\n[0] ~", True),
        ("kolu\n[0] ~\n", True),
        ("kolu \n[0] ~", False),
        ("kolu\n[1] ~", False),
        ("kolu\n\n[0] ~", False),
        ("", False),
    ],
)
def test_every_character_counts(predicted, matches):
    assert exact_match(predicted, "kolu\n[0] ~") is matches


def test_an_empty_line_at_the_start_is_forgiven_because_the_parser_takes_it():
    assert exact_match("kolu\n[0] ~", "\nkolu\n[0] ~")
