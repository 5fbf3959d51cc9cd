"""The price of answers, by the installed tables of `genai-prices`; nothing is downloaded."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal

from genai_prices import Usage, calc_price

from agentworld.recipes.endpoint import EndpointRecipe
from agentworld.records.endpoint_usage import EndpointUsage
from agentworld.scoring.answers import Answer


def usage_of(endpoint: EndpointRecipe, answers: Sequence[Answer]) -> EndpointUsage:
    """The usage of these answers of an endpoint."""
    return EndpointUsage(
        num_answers=len(answers),
        num_prompt_tokens=_sum([answer.num_prompt_tokens for answer in answers]),
        num_tokens=_sum([answer.num_tokens for answer in answers]),
        dollars=price_of(endpoint.url, answers),
    )


def price_of(url: str, answers: Iterable[Answer]) -> Decimal | None:
    """US dollars for answers of the server at `url`, at the prices of the answers' days.

    Null if a price is unknown: the provider or the model is not in the tables, or the server did
    not report tokens. An unknown price is never 0.
    """
    prices = [_price(url, answer) for answer in answers]
    known_prices = [price for price in prices if price is not None]
    return sum(known_prices, Decimal(0)) if len(known_prices) == len(prices) else None


def _price(url: str, answer: Answer) -> Decimal | None:
    if answer.num_prompt_tokens is None or answer.num_tokens is None:
        return None
    usage = Usage(
        input_tokens=answer.num_prompt_tokens,
        cache_read_tokens=answer.num_cached_tokens,
        output_tokens=answer.num_tokens,
    )
    try:
        return calc_price(
            usage,
            answer.model,
            provider_api_url=url,
            genai_request_timestamp=datetime.fromisoformat(answer.at),
        ).total_price
    except (LookupError, ValueError):  # not in the tables
        return None


def _sum(counts: Sequence[int | None]) -> int | None:
    known_counts = [count for count in counts if count is not None]
    return sum(known_counts) if len(known_counts) == len(counts) else None
