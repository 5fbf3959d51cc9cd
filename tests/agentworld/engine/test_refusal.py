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
def test_the_status_and_body_determine_the_error_kind_and_retryability(
    status, body, kind, retryable
):
    error = refusal(httpx.Response(status, text=body))
    assert (error.kind, error.retryable, error.retry_after_seconds) == (kind, retryable, None)


@pytest.mark.parametrize(("status", "seconds"), [(429, 7), (503, 7), (404, None)])
def test_retry_after_is_read_only_for_a_retryable_status(status, seconds):
    response = httpx.Response(status, headers={"Retry-After": "7"})
    assert refusal(response).retry_after_seconds == seconds


def test_a_refusal_with_an_unusable_charset_is_read():
    headers = {"Content-Type": "text/plain; charset=zlib"}
    response = httpx.Response(404, headers=headers, content=b"no  \xff")
    assert "'no \ufffd'" in str(refusal(response))
