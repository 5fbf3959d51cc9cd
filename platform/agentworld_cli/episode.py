"""Episodes: show, verify, fork, replay, close and erase them."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentworld_cli.alias import user_name
from agentworld_cli.service import Url, ask
from agentworld_cli.show import (
    DEFAULT_STORE,
    Json,
    Store,
    plain,
    show_finding,
    show_json,
    show_record,
)
from agentworld_cli.transcript import transcript

if TYPE_CHECKING:
    from agentworld.client.simulator import SimulatorClient
    from agentworld.records.episode import Episode, ResetResult

app = typer.Typer(help="Show, verify, fork and replay episodes.", no_args_is_help=True)

_Episode = Annotated[str, typer.Argument(metavar="EPISODE", help="The id of an episode.")]


@app.command("list")
def list_episodes(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The id of a run.")],
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """List the episodes of a run in the order of their opening."""
    from agentworld.operations.ledger import existing_ledger

    ledger = existing_ledger(Path(store))
    summaries = map(_summary, ledger.episodes(ledger.run(run).id))
    if as_json:
        show_json(list(summaries))
        return
    for summary in summaries:
        task = plain(str(summary["task"] or "no task"))
        reward = "no reward" if summary["reward"] is None else f"reward {summary['reward']:g}"
        ending = summary["closed"] or "open"
        print(f"{summary['episode']}  {summary['num_steps']} steps, {reward}, {ending}, {task}")


@app.command("show")
def show(
    episode: _Episode, store: Store = DEFAULT_STORE, url: Url = "", as_json: Json = False
) -> None:
    """Show an episode of a store, or of the service at --url, as a transcript.

    In the console: /episodes/EPISODE.
    """
    from agentworld.http.schemas import write_episode
    from agentworld.operations.ledger import existing_ledger

    if url:
        record = ask(url, lambda client: client.episode(episode))
    else:
        record = existing_ledger(Path(store)).episode(episode)
    if as_json:
        show_json(json.loads(write_episode(record)))
    else:
        print("\n".join(transcript(record)))


@app.command("verify")
def verify(episode: _Episode, store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """Check that the record of an episode matches its signature."""
    from agentworld.audit.checks.episode import verify_episode
    from agentworld.operations.ledger import existing_ledger, open_evidence

    folder = Path(store)
    verification = verify_episode(episode, existing_ledger(folder), open_evidence(folder))
    show_finding(verification, as_json=as_json)


@app.command("fork")
def fork(
    episode: _Episode,
    step: Annotated[int, typer.Option(min=0, help="How many first steps the fork copies.")],
    url: Url,
    run: Annotated[
        str, typer.Option(metavar="RUN", help="An open run for the fork; else the episode's run.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Start an episode from the first steps of a recorded one, and print its id."""
    from agentworld.records.episode import EpisodeOpening, Source

    async def begin(client: "SimulatorClient") -> "ResetResult":
        run_id = run or (await client.episode(episode)).run
        source = Source(episode=episode, step=step)
        return await client.begin(EpisodeOpening(run=run_id, fork=source))

    reset = ask(url, begin)
    if as_json:
        show_json(reset)
    else:
        print(plain(reset.episode))


@app.command("replay")
def replay(episode: _Episode, url: Url, as_json: Json = False) -> None:
    """Send the recorded actions again, and compare the answers with the record."""
    from agentworld.audit.questions.replay import replay_episode
    from agentworld.errors import EvidenceError

    report = ask(url, lambda client: replay_episode(episode, client, "agentworld episode replay"))
    show_record(report, as_json=as_json)
    if report.differences:
        raise EvidenceError(f"the replay of episode {episode} differs from the record; see above")


@app.command("close")
def close(episode: _Episode, url: Url) -> None:
    """End an open episode; an ended one is unchanged."""
    ask(url, lambda client: client.end(episode))


@app.command("erase")
def erase(
    episode: _Episode,
    yes: Annotated[
        bool, typer.Option("--yes", help="Confirm that the episode is erased for good.")
    ] = False,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Erase the texts of an episode for good; its digests and its log entries stay.

    The erasure is signed: when, and by whom.
    """
    from agentworld.errors import InputError
    from agentworld.operations.declarations import erase_episode

    if not yes:
        raise InputError(f"this erases the texts of episode {episode} for good; add --yes")
    erase_episode(episode, Path(store), user_name())
    if as_json:
        show_json({"episode": episode})
    else:
        print(f"erased the texts of episode {plain(episode)}")


def _summary(episode: "Episode") -> dict[str, object]:
    task, last = episode.opening and episode.opening.task, episode.steps[-1:]
    return {
        "episode": episode.id,
        "task": task and task.id,
        "num_steps": len(episode.steps),
        "reward": last[0].reward if last else None,
        "closed": episode.closed,
    }
