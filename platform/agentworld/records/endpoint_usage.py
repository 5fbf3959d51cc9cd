"""What a model behind an endpoint was asked for, and what that cost."""

from decimal import Decimal

from agentworld.records.base import Record


class EndpointUsage(Record):
    """What one endpoint was asked for, also where it was asked in an earlier run."""

    num_answers: int = 0
    num_prompt_tokens: int | None = 0
    """Null if the endpoint did not tell them."""
    num_tokens: int | None = 0
    """Tokens that it wrote, thoughts included; null as above."""
    dollars: Decimal | None = Decimal(0)
    """Null if the price of an answer is not known."""

    def plus(self, other: "EndpointUsage") -> "EndpointUsage":
        """Both together; what is unknown in one of them is unknown in the sum."""
        values = {}
        for name in EndpointUsage.model_fields:
            one, another = getattr(self, name), getattr(other, name)
            values[name] = None if one is None or another is None else one + another
        return EndpointUsage(**values)


class JudgeUse(Record):
    """What an evaluation asked a judge behind an endpoint."""

    models: tuple[str, ...]
    """Who answered, as the endpoint named it."""
    num: int
    """Predictions that it was to score."""
    holes: int
    """Those without a verdict."""
    usage: EndpointUsage
