"""Requests to a model behind an endpoint, and their cost."""

from decimal import Decimal

from agentworld.records.base import Record


class EndpointUsage(Record):
    """The usage of one endpoint, including earlier interrupted runs."""

    num_answers: int = 0
    num_prompt_tokens: int | None = 0
    """Null if the endpoint did not report them."""
    num_tokens: int | None = 0
    """Generated tokens, thoughts included; null as above."""
    dollars: Decimal | None = Decimal(0)
    """Null if the price is unknown."""

    def plus(self, other: "EndpointUsage") -> "EndpointUsage":
        """The sum; unknown in one is unknown in the sum."""
        values = {}
        for name in EndpointUsage.model_fields:
            one, another = getattr(self, name), getattr(other, name)
            values[name] = None if one is None or another is None else one + another
        return EndpointUsage(**values)


class JudgeUse(Record):
    """An evaluation's requests to a judge behind an endpoint."""

    models: tuple[str, ...]
    """The model names that the endpoint reported."""
    num: int
    """The number of predictions to score."""
    holes: int
    """The number of predictions without a verdict."""
    usage: EndpointUsage
