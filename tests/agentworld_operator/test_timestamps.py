from datetime import datetime, timedelta, timezone

from agentworld_operator.timestamps import now, to_text


def test_a_time_is_written_in_utc_in_the_format_of_the_api_server():
    moment = datetime(2026, 1, 2, 5, 4, 5, 6, tzinfo=timezone(timedelta(hours=2)))
    assert to_text(moment) == "2026-01-02T03:04:05Z"
    assert to_text(moment, "microseconds") == "2026-01-02T03:04:05.000006Z"


def test_now_is_the_time_of_this_machine():
    before = to_text(datetime.now().astimezone())
    assert before <= now() <= to_text(datetime.now().astimezone())
