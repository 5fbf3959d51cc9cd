from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from agentworld_pipelines.log_tail import LogTail

START = datetime(2026, 1, 1, tzinfo=UTC)
GAPS = st.sampled_from([0, 1, 999_999, 1_000_000, 2_500_000])
WORDS = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=5)


def response(lines: list[tuple[datetime, str]], tail: LogTail) -> str:
    """An API server's response to a request for the tail."""
    since = dict(tail.query).get("sinceTime", "1970-01-01T00:00:00Z")
    entries = [(at, words) for at, words in lines if at >= datetime.fromisoformat(since)]
    return "".join(f"{at.isoformat().replace('+00:00', 'Z')} {words}\n" for at, words in entries)


@given(st.lists(st.tuples(GAPS, WORDS)), st.lists(st.integers(0, 9)))
def test_a_log_read_in_pieces_returns_each_line_once(written, pieces):
    at, lines = START, []
    for gap, words in written:
        at += timedelta(microseconds=gap)
        lines.append((at, words))
    tail, result, num_lines = LogTail(), [], 0
    for piece in [*pieces, len(lines)]:
        num_lines += piece
        result += tail.unseen(response(lines[:num_lines], tail))
    assert result == [words for _, words in lines]


def test_the_query_asks_for_timestamps_and_starts_at_the_last_second():
    tail = LogTail()
    assert tail.query == [("timestamps", "true")]
    assert tail.unseen("2026-01-01T02:00:01.123456789+01:00 a\n") == ["a"]
    assert dict(tail.query)["sinceTime"] == "2026-01-01T01:00:01Z"


def test_an_unfinished_line_is_returned_when_complete():
    tail = LogTail()
    assert tail.unseen("2026-01-01T00:00:01.1Z a\n2026-01-01T00:00:01.2Z b") == ["a"]
    assert tail.unseen("2026-01-01T00:00:01.1Z a\n2026-01-01T00:00:01.2Z bc\n") == ["bc"]


def test_the_rest_of_a_long_line_is_returned_with_the_line():
    tail = LogTail()
    text = "2026-01-01T00:00:01.1Z a\nrest of a\n"
    assert tail.unseen(text) == ["a", "rest of a"]
    assert tail.unseen(text) == []
