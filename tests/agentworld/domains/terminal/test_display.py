import pytest

from agentworld.domains.terminal.display import COLUMNS, LINES, Display


def screen_of(*outputs):
    display = Display()
    for output in outputs:
        display.feed(output)
    return display.text


def test_a_screen_is_40_lines_of_160_columns_and_older_lines_scroll_off():
    lines = [str(number) for number in range(50)]
    assert screen_of("\r\n".join(lines).encode()) == "\n".join(lines[-LINES:])
    assert screen_of(b"x" * (COLUMNS + 1)) == "x" * COLUMNS + "\nx"
    assert (LINES, COLUMNS) == (40, 160)


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (b"abc\b\x1b[Kd", "abd"),
        (b"old\x1b[2J\x1b[Hnew", "new"),
        (b"\x1b[31mred\x1b[0m  ", "red"),
        (b"\r\n\r\nx\r\n\r\n", "\n\nx"),
        ("\N{CJK UNIFIED IDEOGRAPH-65E5}x".encode(), "\N{CJK UNIFIED IDEOGRAPH-65E5}x"),
        (b"a\x1b[1;9Hb", "a       b"),
        (b"\xff", "\N{REPLACEMENT CHARACTER}"),
        (b"\x1b]777;abc\x07x", "x"),
        (b"", ""),
    ],
)
def test_control_sequences_move_and_erase(output, text):
    assert screen_of(output) == text


def test_a_character_cut_between_two_reads_is_whole():
    assert screen_of("é".encode()[:1], "é".encode()[1:]) == "é"
