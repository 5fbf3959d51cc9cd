"""Descriptions of domains for people: a summary of all, and the details of one."""

from random import Random

from agentworld.domains.base import Axis, Domain, Start, domain_names, domain_of
from agentworld.domains.live import (
    LiveDomain,
    live_domain,
    live_domain_names,
    open_environment,
)
from agentworld.domains.programs import Program
from agentworld.errors import EnvironmentFailure
from agentworld.records.base import Record
from agentworld.records.sample import POOLS, Pool
from agentworld.records.task import Task
from agentworld.rendering.messages import system_text

_NUM_TASKS = 200
"""The number of tasks that covers every family."""


class DomainSummary(Record):
    """The summary of an installed domain."""

    name: str
    version: str = ""
    has_environments: bool = False
    tools: tuple[str, ...] = ()
    """The tools of an episode that names none."""
    problem: str = ""
    """Why it cannot be loaded; if set, the other fields are empty."""


class Need(Record):
    """A program that environments need, and whether this machine has it."""

    program: str
    package: str
    """The Debian package that has it."""
    is_missing: bool


class PromptVariant(Record):
    """One wording of the system prompt, without the parts that an episode adds."""

    number: int
    pools: tuple[Pool, ...]
    """The pools that use it. Simulators are served with number 0."""
    text: str


class Example(Record):
    """The first turn of a task's explorer in a live environment."""

    instruction: str = ""
    start: str
    action: str
    observation: str | None = None
    """Null if no environment can be opened."""


class DomainSheet(DomainSummary):
    """All details of a domain."""

    axes: tuple[Axis, ...]
    """What the domain's rules verify of a turn; none if it has no rules."""
    needs: tuple[Need, ...] = ()
    unavailable: str = ""
    """Why this machine can open no environment; empty if it can, or if the domain has none."""
    launchers: tuple[str, ...] = ()
    """Programs that start its environments; a training in a simulator may start none of them."""
    families: dict[str, str] = {}
    """By family of its generated tasks, the instruction of one."""
    prompt_variants: tuple[PromptVariant, ...]
    example: Example


def domain_summaries() -> list[DomainSummary]:
    """A summary of every installed domain, also of one that cannot be loaded."""
    return [_summary(name) for name in domain_names()]


async def domain_sheet(name: str) -> DomainSheet:
    """The sheet of one domain; raises InputError for an unknown name."""
    domain = domain_of(name)
    sheet = DomainSheet(
        **dict(_summary(name)),
        axes=tuple(domain.axes),
        prompt_variants=_prompt_variants(domain),
        example=_question(domain),
    )
    return await _with_environments(sheet) if sheet.has_environments else sheet


def _summary(name: str) -> DomainSummary:
    try:
        domain = domain_of(name)
    except Exception as error:  # noqa: BLE001 - whatever somebody's package raises on import
        return DomainSummary(name=name, problem=f"cannot be loaded: {error!r:.200}")
    return DomainSummary(
        name=name,
        version=domain.version,
        has_environments=name in live_domain_names(),
        tools=tuple(tool.name for tool in domain.tools),
    )


def _prompt_variants(domain: Domain) -> tuple[PromptVariant, ...]:
    pools_of: dict[int, list[Pool]] = {}
    for pool in POOLS:
        for number in domain.variants(pool):
            pools_of.setdefault(number, []).append(pool)
    start = Start(domain=domain.name)
    return tuple(
        PromptVariant(
            number=number,
            pools=tuple(pools_of[number]),
            text=system_text(domain.prompt(start, number)),
        )
        for number in sorted(pools_of)
    )


def _question(domain: Domain) -> Example:
    """A possible action without its observation, because there is no environment."""
    question = domain.question(0)
    return Example(start=question.start.text, action=question.action)


async def _with_environments(sheet: DomainSheet) -> DomainSheet:
    live = live_domain(sheet.name)
    tasks = [live.task(seed, held_out=True) for seed in range(_NUM_TASKS)]
    families = {task.family: task.instruction for task in reversed(tasks)}
    example, unavailable = sheet.example, ""
    try:
        live.check_available()
        example = await _play(sheet.name, live, tasks[0])
    except EnvironmentFailure as error:
        unavailable = str(error)
    return sheet.model_copy(
        update={
            "needs": tuple(map(_need, live.programs)),
            "unavailable": unavailable,
            "launchers": tuple(sorted(live.launchers)),
            "families": dict(sorted(families.items())),
            "example": example,
        }
    )


def _need(program: Program) -> Need:
    is_missing = program.find() is None
    return Need(program=program.name, package=program.package, is_missing=is_missing)


async def _play(name: str, live: LiveDomain, task: Task) -> Example:
    """The first turn of a task's explorer."""
    async with open_environment(name) as environment:
        start = await environment.reset(task)
        explorer = live.explorer(
            Random(task.seed), start, task, held_out=True, pursues_task=True, num_turns=1
        )
        action = explorer.act(None) or ""
        observation = await environment.step(action)
    return Example(
        instruction=task.instruction,
        start=start.text,
        action=action,
        observation=observation.text,
    )
