"""Runs: open and close them at a service, list and verify them in a store."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentworld_cli.service import Url, ask
from agentworld_cli.show import (
    DEFAULT_STORE,
    Json,
    Store,
    brief,
    check_digest,
    count_noun,
    plain,
    show_finding,
    show_json,
    show_record,
)

if TYPE_CHECKING:
    from agentworld.client.simulator import SimulatorClient
    from agentworld.records.run import AgentRun, OpenedRun

app = typer.Typer(
    help="Open, close, show and verify runs of agents in simulators.", no_args_is_help=True
)

_Run = Annotated[str, typer.Argument(metavar="RUN", help="The id of a run.")]
_Trajectory = Annotated[
    str, typer.Option(metavar="FOLDER", help="The folder with the agent's own log of the run.")
]


def _envelope(path: str | None) -> str | None:
    from agentworld.errors import InputError

    if path is None:
        return None
    try:
        # Editors add a newline at the end of a file, which an envelope does not have.
        return Path(path).read_text(encoding="utf-8").rstrip("\n")
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}; give the signed envelope") from error


_Weights = Annotated[
    str, typer.Option(metavar="DIGEST", callback=check_digest, help="The digest of the weights.")
]
_Signature = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        callback=_envelope,
        help="A DSSE envelope in which the trainer signed the weights.",
    ),
]


@app.command("open")
def open_run(
    name: Annotated[
        str, typer.Option(metavar="NAME", help="The name of the agent that you train.")
    ],
    weights: _Weights,
    url: Url,
    simulator: Annotated[
        str,
        typer.Option(
            metavar="DIGEST|ALIAS", help="The simulator; a service with another one refuses."
        ),
    ] = "",
    by: Annotated[str, typer.Option(metavar="WHO", help="Who opens the run, for the record.")] = "",
    as_json: Json = False,
) -> None:
    """Open a run for an agent that starts from these weights, and print the run's id.

    With --json, it also prints the run's token, which gives access to this run only.
    """
    from agentworld.records.run import OpenedRun, RunOpening

    opening = RunOpening(
        agent=name, starting_weights=weights, simulator=simulator or None, opened_by=by
    )

    async def begin(client: "SimulatorClient") -> "OpenedRun":
        run = await client.open_run(opening)
        return OpenedRun(run=run, token=client.run_token or "")

    agent_run = ask(url, begin)
    if as_json:
        show_json({**agent_run.run.model_dump(mode="json"), "token": agent_run.token})
    else:
        print(plain(agent_run.run.id))


@app.command("close")
def close_run(
    run: _Run, weights: _Weights, url: Url, signature: _Signature = None, as_json: Json = False
) -> None:
    """Close a run, and record the weights that the training made.

    Without --signature the weights are your claim: the edge is `observed`, not `proven`.
    """

    async def close(client: "SimulatorClient") -> "AgentRun":
        await client.resume_run(run)
        return await client.close_run(weights, signature)

    show_record(ask(url, close), as_json=as_json)


@app.command("list")
def list_runs(store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """List the runs of a store, the newest first.

    In the console: /runs.
    """
    from agentworld.operations.ledger import existing_ledger
    from agentworld.records.run import LOCAL_TENANT

    runs, problems = existing_ledger(Path(store)).readable_runs()
    for problem in problems:
        print(plain(problem), file=sys.stderr)
    if as_json:
        show_json(runs)
        return
    for run in runs:
        tenant = "" if run.tenant == LOCAL_TENANT else f" for tenant {plain(run.tenant)}"
        print(
            f"{run.id}  {run.opening.purpose} of {plain(run.opening.agent)} in"
            f" {brief(run.simulator)}{tenant}, {count_noun(run.num_episodes, 'episode')},"
            f" {count_noun(run.num_steps, 'step')}, {_ending(run)}"
        )


def _ending(run: "AgentRun") -> str:
    """Only a training produces weights; an evaluation is closed with its starting weights."""
    if not run.closing:
        return "open"
    is_training = run.opening.purpose == "training"
    return f"made {brief(run.final_weights)}" if is_training else "closed"


@app.command("show")
def show_run(run: _Run, store: Store = DEFAULT_STORE, url: Url = "", as_json: Json = False) -> None:
    """Show a run of a store, or of the service at --url.

    In the console: /runs/RUN.
    """
    from agentworld.operations.ledger import existing_ledger

    if url:
        show_record(ask(url, lambda client: client.resume_run(run)), as_json=as_json)
    else:
        show_record(existing_ledger(Path(store)).run(run), as_json=as_json)


@app.command("verify")
def verify(run: _Run, store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """Check that the record of a run matches its signature."""
    from agentworld.audit.checks.run import verify_run
    from agentworld.operations.ledger import existing_ledger, open_evidence

    folder = Path(store)
    verification = verify_run(run, existing_ledger(folder), open_evidence(folder))
    show_finding(verification, as_json=as_json)


@app.command("join")
def join(
    run: _Run, trajectory: _Trajectory, store: Store = DEFAULT_STORE, as_json: Json = False
) -> None:
    """Compare the ledger's record of a run with the agent's own log."""
    from agentworld.audit.questions.join import join_run
    from agentworld.client.trajectory import read_trajectory
    from agentworld.errors import EvidenceError
    from agentworld.operations.ledger import existing_ledger

    ledger = existing_ledger(Path(store))
    report = join_run(ledger.run(run), ledger.episodes(run), read_trajectory(Path(trajectory)))
    show_record(report, as_json=as_json)
    if report.is_alarm:
        raise EvidenceError(
            f"the ledger and the agent's own log of run {run} differ; see the counts above"
        )


@app.command("export")
def export(
    run: _Run,
    out: Annotated[str, typer.Option(metavar="FOLDER", help="The folder to write into.")],
    trajectory: _Trajectory = "",
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Write the steps of a run as Parquet files, and the agent's own log if you give it."""
    from agentworld.audit.export.logs import export_run
    from agentworld.operations.ledger import existing_ledger

    trajectory_path = Path(trajectory) if trajectory else None
    show_record(
        export_run(run, existing_ledger(Path(store)), Path(out), trajectory_path), as_json=as_json
    )
