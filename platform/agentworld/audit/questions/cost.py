"""The usage of runs, and its cost at the reader's prices.

The ledger keeps the usage of every answered step. It has no prices: they differ between readers and
change over time.
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld.errors import InputError, NotFound
from agentworld.ledger import Ledger
from agentworld.ledger.counting import RunUsage
from agentworld.lineage.base import RegisteredAgent, Registry
from agentworld.records.base import Digest, Record, first_problem
from agentworld.records.usage import Usage

Share = Literal["tenant", "agent", "run", "episode"]
"""The unit of each row of costs."""

_NAMES: dict[Share, tuple[str, ...]] = {
    "tenant": ("tenant",),
    "agent": ("tenant",),
    "run": ("tenant", "simulator", "agent", "run"),
    "episode": ("tenant", "simulator", "agent", "run", "episode"),
}

_Price = Annotated[Decimal, Field(ge=0, le=1_000_000)]

_TOKENS = 1_000_000
_SECONDS = 3_600

_LEAST = Decimal("0.000001")


class Prices(BaseSettings):
    """The reader's prices, from AGENTWORLD_PRICE_PER_ENGINE_HOUR and so on.

    Tokens, the engine's time, or both have a price; unset prices add nothing.
    """

    model_config = SettingsConfigDict(
        env_prefix="AGENTWORLD_PRICE_", env_ignore_empty=True, frozen=True
    )

    currency: str = ""
    """The currency, as a label; nothing is converted."""
    per_million_input_tokens: _Price | None = None
    """The price of a million input tokens."""
    per_million_cached_tokens: _Price | None = None
    """The price of a million cached input tokens; unset, that of other input tokens."""
    per_million_output_tokens: _Price | None = None
    """The price of a million output tokens."""
    per_engine_hour: _Price | None = None
    """The price of an hour of one request: ten requests at once cost ten times as much."""

    @classmethod
    def from_environment(cls) -> Self:
        """Reads the environment; raises InputError for an invalid price, or an incomplete set of
        token prices.
        """
        try:
            prices = cls()
        except ValidationError as error:
            raise InputError(
                f"a price in the environment is invalid: {first_problem(error)}; give a number"
            ) from error
        read, output = prices.per_million_input_tokens, prices.per_million_output_tokens
        if (read is None) != (output is None) or (
            read is None and prices.per_million_cached_tokens is not None
        ):
            raise InputError(
                "the environment sets only some token prices; set both"
                " AGENTWORLD_PRICE_PER_MILLION_INPUT_TOKENS and"
                " AGENTWORLD_PRICE_PER_MILLION_OUTPUT_TOKENS, or none"
            )
        return prices

    def money(self, usage: Usage) -> Decimal | None:
        """Null without prices: the cost is then unknown, not zero."""
        read, cached = self.per_million_input_tokens, self.per_million_cached_tokens
        parts = (
            (usage.input_tokens - usage.cached_tokens, read, _TOKENS),
            (usage.cached_tokens, read if cached is None else cached, _TOKENS),
            (usage.output_tokens, self.per_million_output_tokens, _TOKENS),
            (Decimal(str(usage.engine_seconds)), self.per_engine_hour, _SECONDS),
        )
        amounts = [amount * price / unit for amount, price, unit in parts if price is not None]
        return sum(amounts, Decimal(0)).quantize(_LEAST) if amounts else None


class Cost(Record):
    """Usage and its cost; a name is null if the row covers several."""

    tenant: str | None = None
    simulator: Digest | None = None
    agent: str | None = None
    registered: bool | None = None
    """Whether `agent` names versions in the registry; null if no registry was read, and `agent` is
    the name in the run's opening.
    """
    run: str | None = None
    episode: str | None = None
    num_episodes: int
    num_steps: int
    """Without the steps that a fork copied; a step replayed from the record used nothing."""
    input_tokens: int
    cached_tokens: int
    """The input tokens that were in the engine's cache, if it reports them."""
    output_tokens: int
    engine_seconds: float
    money: Decimal | None
    """Null without prices."""


class Costs(Record):
    """The answer to: what did it cost?"""

    currency: str
    costs: tuple[Cost, ...]
    total: Cost


def agents_by_run(registry: Registry) -> dict[str, str]:
    """The registered versions of each run, as NAME@VERSION; several separated by commas."""
    refs_by_run: dict[str, list[str]] = {}
    for version in registry.versions(kind="agent"):
        if agent := RegisteredAgent.from_tags(version):
            refs_by_run.setdefault(agent.run, []).append(str(agent.ref))
    return {run: ", ".join(refs) for run, refs in refs_by_run.items()}


def costs(
    ledger: Ledger, prices: Prices, by: Share, agents: Mapping[str, str] = {}, **filters: str
) -> Costs:
    """The costs of all runs, the newest first, or of a `tenant`, a `run`, an `episode`; raises
    NotFound.

    For costs by agent, `agents` gives the registered names by run.
    """
    rows = ledger.counts.run_usage(by_episode=by == "episode", **filters)
    if filters and not rows:
        names = ", ".join(f"{column} {filters[column]}" for column in sorted(filters))
        raise NotFound(f"the ledger has nothing of {names}; name what `agentworld cost` lists")
    return Costs(
        currency=prices.currency,
        costs=tuple(
            _cost(share_rows, prices, labels) for labels, share_rows in _shares(rows, by, agents)
        ),
        total=_cost(rows, prices, {}),
    )


def _shares(
    rows: Iterable[RunUsage], by: Share, agents: Mapping[str, str]
) -> list[tuple[dict[str, object], list[RunUsage]]]:
    """Groups rows by their name."""
    shares: dict[tuple[str, ...], tuple[dict[str, object], list[RunUsage]]] = {}
    for row in rows:
        if by == "episode" and not row.episode:
            continue
        labels: dict[str, object] = {name: getattr(row, name) for name in _NAMES[by]}
        if by == "agent":
            labels |= {"agent": agents.get(row.run, row.agent), "registered": row.run in agents}
        shares.setdefault(tuple(map(str, labels.values())), (labels, []))[1].append(row)
    if by == "tenant":
        return [shares[tenant] for tenant in sorted(shares)]
    return list(shares.values())


def _cost(rows: Sequence[RunUsage], prices: Prices, labels: Mapping[str, object]) -> Cost:
    usage = reduce(Usage.plus, (row.usage for row in rows), Usage())
    counts = {
        "num_episodes": sum(row.num_episodes for row in rows),
        "num_steps": sum(row.num_steps for row in rows),
    }
    return Cost.model_validate(
        {**labels, **counts, **usage._asdict(), "money": prices.money(usage)}
    )
