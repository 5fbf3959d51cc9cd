"""How the runs of a store ended."""

from typing import TYPE_CHECKING

from agentworld_cli.plain import plain
from agentworld_cli.show import DEFAULT_STORE, AnyStore, Json, show_json

if TYPE_CHECKING:
    from agentworld.records.conclusion import Conclusion


def history(store: AnyStore = DEFAULT_STORE, as_json: Json = False) -> None:
    """List how the pipeline runs of a store ended, here and on servers, the newest first."""
    from agentworld.runner.remote import located
    from agentworld.steps.conclude import conclusions

    rows = conclusions(located(store))
    if as_json:
        show_json([each.model_dump(mode="json") for each in rows])
        return
    for each in rows:
        print(_to_line(each))


def _to_line(ended: "Conclusion") -> str:
    moment = ended.ended.isoformat(sep=" ", timespec="seconds")
    line = f"{moment}  {ended.job}  {ended.pipeline} of {ended.recipe}  {ended.state}"
    if ended.step:
        line += f" at {ended.step}"
    return plain(f"{line}: {ended.sentence}" if ended.sentence else line)
