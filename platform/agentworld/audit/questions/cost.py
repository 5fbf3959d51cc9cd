"""What runs used, and what that costs at the prices of whoever asks.

The ledger keeps what every answered step used. Prices are no part of it: they differ from reader
to reader and change, and what was used does not.
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
"""Whose costs are told one by one."""

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
    """What whoever asks pays, as AGENTWORLD_PRICE_PER_ENGINE_HOUR and so on.

    Tokens, the engine's time, or both have a price; what has none costs nothing on top.
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
        """What the environment names; raises InputError for what is no price, or half of one."""
        try:
            prices = cls()
        except ValidationError as error:
            raise InputError(
                f"a price in the environment is none: {first_problem(error)}; give a number"
            ) from error
        read, output = prices.per_million_input_tokens, prices.per_million_output_tokens
        if (read is None) != (output is None) or (
            read is None and prices.per_million_cached_tokens is not None
        ):
            raise InputError(
                "the environment prices a part of the tokens; set both"
                " AGENTWORLD_PRICE_PER_MILLION_INPUT_TOKENS and"
                " AGENTWORLD_PRICE_PER_MILLION_OUTPUT_TOKENS, or no price of tokens"
            )
        return prices

    def money(self, usage: Usage) -> Decimal | None:
        """Null where nothing has a price: that is not known to be free."""
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
    """What was used, and what that costs; a name is null where this may be of several."""

    tenant: str | None = None
    simulator: Digest | None = None
    agent: str | None = None
    registered: bool | None = None
    """Whether `agent` names versions that the registry has; null where no registry was asked, and
    `agent` is what whoever opened the run called it."""
    run: str | None = None
    episode: str | None = None
    num_episodes: int
    num_steps: int
    """Without those that came with a fork; one from the record used nothing."""
    input_tokens: int
    cached_tokens: int
    """Those of the input that the engine still held, where it tells."""
    output_tokens: int
    engine_seconds: float
    money: Decimal | None
    """Null where nothing has a price."""


class Costs(Record):
    """The answer to: what did it cost?"""

    currency: str
    costs: tuple[Cost, ...]
    total: Cost


def agents_by_run(registry: Registry) -> dict[str, str]:
    """The registered versions that each run made, as NAME@VERSION; several with commas."""
    refs_by_run: dict[str, list[str]] = {}
    for version in registry.versions(kind="agent"):
        if agent := RegisteredAgent.from_tags(version):
            refs_by_run.setdefault(agent.run, []).append(str(agent.ref))
    return {run: ", ".join(refs) for run, refs in refs_by_run.items()}


def costs(
    ledger: Ledger, prices: Prices, by: Share, agents: Mapping[str, str] = {}, **filters: str
) -> Costs:
    """Of all runs, the newest first, or of a `tenant`, a `run`, an `episode`; raises NotFound.

    By agent, `agents` names by their runs those that are registered.
    """
    rows = ledger.counts.run_usage(by_episode=by == "episode", **filters)
    if filters and not rows:
        names = ", ".join(f"{column} {filters[column]}" for column in sorted(filters))
        raise NotFound(f"the ledger holds nothing of {names}; name what `agentworld cost` lists")
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
    """Those that are told together, after what names them."""
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
