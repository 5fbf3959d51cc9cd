import httpx
import pytest

from agentworld.engine.refusal import refusal


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (500, "", "engine", True),
        (503, "", "engine", True),
        (429, "", "capacity", True),
        (408, "", "slow", True),
        (504, "", "slow", True),
        (204, "", "refused", False),
        (302, "", "refused", False),
        (401, "", "refused", False),
        (404, "", "refused", False),
        (422, "Unexpected fields", "refused", False),
        (400, "This model's maximum context length is 64 tokens", "context", False),
        (400, '{"code": "context_length_exceeded"}', "context", False),
    ],
)
def test_a_status_says_whether_a_retry_can_help(status, body, kind, retryable):
    error = refusal(httpx.Response(status, text=body))
    assert (error.kind, error.retryable, error.retry_after_seconds) == (kind, retryable, None)


@pytest.mark.parametrize(("status", "seconds"), [(429, 7), (503, 7), (404, None)])
def test_a_server_says_when_a_retry_can_help(status, seconds):
    response = httpx.Response(status, headers={"Retry-After": "7"})
    assert refusal(response).retry_after_seconds == seconds


def test_a_refusal_is_read_whatever_the_server_calls_its_characters():
    headers = {"Content-Type": "text/plain; charset=zlib"}
    response = httpx.Response(404, headers=headers, content=b"no  \xff")
    assert "'no \ufffd'" in str(refusal(response))
