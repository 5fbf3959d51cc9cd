import pytest

from agentworld.errors import InputError
from agentworld.records.gate import Gate


@pytest.mark.parametrize(
    ("text", "gate"),
    [
        ("live_gain=0.2", Gate(metric="live_gain", least=0.2)),
        ("by_tag.a=b=-1", Gate(metric="by_tag.a=b", least=-1)),
    ],
)
def test_a_gate_is_parsed_from_a_metric_and_a_minimum(text, gate):
    assert Gate.parse(text) == gate


@pytest.mark.parametrize("text", ["", "live_gain", "=0.2", "live_gain=", "live_gain=x", "a=nan"])
def test_the_error_for_an_invalid_gate_shows_the_syntax(text):
    with pytest.raises(InputError, match="is not a gate; write METRIC=LEAST"):
        Gate.parse(text)
