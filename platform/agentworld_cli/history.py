"""The results of a store's runs."""

from typing import TYPE_CHECKING

from agentworld_cli.show import DEFAULT_STORE, AnyExistingStore, Json, plain, show_json

if TYPE_CHECKING:
    from agentworld.records.conclusion import Conclusion


def history(store: AnyExistingStore = DEFAULT_STORE, as_json: Json = False) -> None:
    """List how the pipeline runs of a store ended, here and on servers, the newest first."""
    from agentworld.runner.remote import local_store
    from agentworld.steps.conclude import conclusions

    rows = conclusions(local_store(store))
    if as_json:
        show_json(rows)
        return
    for row in rows:
        print(_to_line(row))


def _to_line(conclusion: "Conclusion") -> str:
    moment = conclusion.ended.isoformat(sep=" ", timespec="seconds")
    job = f"{conclusion.job}  {conclusion.pipeline} of {conclusion.recipe}"
    line = f"{moment}  {job}  {conclusion.state}"
    if conclusion.step:
        line += f" at {conclusion.step}"
    return plain(f"{line}: {conclusion.sentence}" if conclusion.sentence else line)
