"""Domains: list, show, install and try them."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentworld_cli.service import Url
from agentworld_cli.show import DEFAULT_STORE, Json, Store, console, plain, show_json

if TYPE_CHECKING:
    from agentworld.client.simulator import SimulatorClient

app = typer.Typer(
    help="List the domains, install their requirements, and try one by hand.", no_args_is_help=True
)

_Domain = Annotated[
    str, typer.Argument(metavar="DOMAIN", help="A domain that `domain list` prints.")
]


@app.command("list")
def list_domains(as_json: Json = False) -> None:
    """List the installed domains, and which have environments to record and to validate in."""
    from agentworld.domains.sheet import domain_summaries

    summaries = domain_summaries()
    if as_json:
        show_json(summaries)
        return
    for summary in summaries:
        live = "environments" if summary.has_environments else "recorded logs only"
        tools = ", ".join(summary.tools) or "none"
        text = summary.problem or f"{summary.version}, {live}, tools: {tools}"
        console.print(f"{summary.name:<12} {text}", soft_wrap=True, markup=False)


@app.command()
def show(domain: _Domain, as_json: Json = False) -> None:
    """Show a domain's requirements, its prompts, its tasks, and a turn of one of them.

    It takes the turn in a live environment, if this machine can open one.
    """
    from agentworld.domains.sheet import domain_sheet
    from agentworld_cli.sheet import sheet_lines

    sheet = asyncio.run(domain_sheet(domain))
    if as_json:
        show_json(sheet)
    else:
        print("\n".join(sheet_lines(sheet)))


@app.command()
def install(domain: _Domain, as_json: Json = False) -> None:
    """Install the Debian packages that the environments of a domain need, in at most five minutes.

    It takes root and apt-get; elsewhere it prints the command. Python packages are a part of
    agentworld.
    """
    from agentworld.operations.install_domain import install_domain

    installation = install_domain(domain, lambda step: print(step, file=sys.stderr, flush=True))
    if as_json:
        show_json(installation)
        return
    packages = ", ".join(installation.installed)
    print(f"{domain}: {f'installed {packages}' if packages else 'nothing to install'}")
    if installation.unavailable:
        print(plain(installation.unavailable), file=sys.stderr)


@app.command("try")
def try_(
    domain: _Domain,
    simulator: Annotated[
        str,
        typer.Option(
            metavar="DIGEST|ALIAS",
            help="A simulator that takes the same actions; by default none.",
        ),
    ] = "",
    url: Url = "",
    seed: Annotated[int, typer.Option(min=0, help="The seed of the start and the task.")] = 0,
    task: Annotated[
        bool, typer.Option("--task", help="Show the task of the seed, and whether it succeeds.")
    ] = False,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Act in a live environment in the sandbox, and in parallel in a simulator of it.

    Each line of the input is an action, for both. The simulator is one of the store, which is
    served while you act, or that of the service at --url. Its history holds its own observations,
    as an agent's in it does. Its steps are recorded as a run of the agent `domain-try`.
    """
    from anyio.from_thread import start_blocking_portal

    from agentworld.domains.base import ActionError
    from agentworld.domains.live import live_domain
    from agentworld.operations.try_domain import open_trial
    from agentworld_cli.trial import read_actions, trial_view

    live_domain(domain).check_available()
    view = trial_view(as_json=as_json)
    with (
        _client(domain, simulator, store, url) as client,
        # The event loop has its own thread, so that an interrupt ends a wait for input.
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            open_trial(domain, seed, has_goal=task, client=client, simulator=simulator or None)
        ) as trial,
    ):
        view.show_start(trial.start)
        for line in read_actions(as_json=as_json):
            try:
                view.show_turn(portal.call(trial.act, line))
            except ActionError as error:
                view.show_refusal(error)
            if trial.is_over:
                break
        view.show_end(trial.start, portal.call(trial.end))


@contextmanager
def _client(
    domain: str, simulator: str, store: str, url: str
) -> Iterator["SimulatorClient | None"]:
    """The client of the simulator; null if none is given."""
    from agentworld.client.credential import ClientSettings
    from agentworld.client.simulator import SimulatorClient
    from agentworld.operations.serving import open_client
    from agentworld.operations.simulators import resolve_simulator

    if url:
        settings = ClientSettings()
        credential, seconds = settings.load_credential(), settings.start_seconds
        yield SimulatorClient(url, credential=credential, start_seconds=seconds)
    elif simulator:
        pinned = resolve_simulator(simulator, Path(store))
        pinned.manifest.domain_of(domain)
        print(f"serves {pinned.digest}", file=sys.stderr, flush=True)
        logs = Path(store) / "logs" / pinned.folder.name
        with open_client(pinned.digest, 1, Path(store), logs) as client:
            yield client
    else:
        yield None
