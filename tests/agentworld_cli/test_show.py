import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld_cli.show import plain

ANY_TEXT = st.text(st.characters())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kolu besa", "kolu besa"),
        ("größer 猫", "größer 猫"),
        ("\x1b[2J", r"\x1b[2J"),
        ("\x9b2J", r"\x9b2J"),
        ("a\r\nb\tc", r"a\r\nb\tc"),
        ("\x00\x7f", r"\x00\x7f"),
        ("\ud800", r"\ud800"),
        ("\u202egpj.exe", r"\u202egpj.exe"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_plain_escapes_control_and_format_characters(text, expected):
    assert plain(text) == expected


@given(ANY_TEXT)
def test_plain_makes_any_text_printable(text):
    assert plain(text).isprintable()
    assert plain(text).encode().decode() == plain(text)


@given(st.text(st.characters(categories=["L", "N", "P"])))
def test_plain_leaves_printable_text_unchanged(text):
    assert plain(text) == text
