import logging

import pytest

from agentworld.http.rate_limited_log import RateLimitedLog


@pytest.fixture
def log():
    """A logger with a test clock: `log.passed` seconds."""
    logger = logging.getLogger("seldom")
    logger.passed = 0.0
    seldom = RateLimitedLog(["nobody needs this"], seconds=60.0, clock=lambda: logger.passed)
    logger.addFilter(seldom)
    yield logger
    logger.removeFilter(seldom)


def test_a_line_passes_once_in_a_while_and_then_says_how_often_it_did_not(log, caplog):
    for log.passed in (0.0, 1.0, 59.0, 61.0, 62.0):
        log.warning("client %d is rude", log.passed)
    assert caplog.messages == [
        "client 0 is rude",
        "client 61 is rude (and 2 more since the last of these)",
    ]


def test_lines_of_other_places_pass(log, caplog):
    log.warning("here")
    log.warning("there")
    assert caplog.messages == ["here", "there"]


def test_mistakes_are_told_apart_by_where_they_were_made(log, caplog):
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


def test_what_nobody_needs_never_passes(log, caplog):
    log.warning("nobody needs this")
    assert caplog.messages == []
