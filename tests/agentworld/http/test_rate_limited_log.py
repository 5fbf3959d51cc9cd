import logging

import pytest

from agentworld.http.rate_limited_log import RateLimitedLog


@pytest.fixture
def log():
    """A logger with a test clock: `log.passed` seconds."""
    logger = logging.getLogger("seldom")
    logger.passed = 0.0
    log_filter = RateLimitedLog(["nobody needs this"], seconds=60.0, clock=lambda: logger.passed)
    logger.addFilter(log_filter)
    yield logger
    logger.removeFilter(log_filter)


def test_a_repeated_line_is_logged_once_per_interval_with_a_count(log, caplog):
    for log.passed in (0.0, 1.0, 59.0, 61.0, 62.0):
        log.warning("client %d is rude", log.passed)
    assert caplog.messages == [
        "client 0 is rude",
        "client 61 is rude (and 2 more since the last of these)",
    ]


def test_lines_from_different_places_are_all_logged(log, caplog):
    log.warning("here")
    log.warning("there")
    assert caplog.messages == ["here", "there"]


def test_exceptions_raised_at_different_places_are_logged_separately(log, caplog):
    def first():
        raise ValueError("first")

    def second():
        raise ValueError("second")

    for mistake in (first, second, first, second):
        try:
            mistake()
        except ValueError:
            log.exception("a mistake")
    assert [record.exc_info[1].args for record in caplog.records] == [("first",), ("second",)]


def test_a_suppressed_message_is_never_logged(log, caplog):
    log.warning("nobody needs this")
    assert caplog.messages == []
