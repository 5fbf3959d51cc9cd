"""How the runs of a store ended."""

from typing import TYPE_CHECKING

from agentworld_cli.plain import plain
from agentworld_cli.show import DEFAULT_STORE, AnyStore, Json, show_json

if TYPE_CHECKING:
    from agentworld.records.conclusion import Conclusion


def history(store: AnyStore = DEFAULT_STORE, as_json: Json = False) -> None:
    """Print how the runs of a store ended, here and on servers, the newest first."""
    from agentworld.runner.remote import located
    from agentworld.steps.conclude import conclusions

    found = conclusions(located(store))
    if as_json:
        show_json([each.model_dump(mode="json") for each in found])
        return
    for each in found:
        print(_told(each))


def _told(ended: "Conclusion") -> str:
    moment = ended.ended.isoformat(sep=" ", timespec="seconds")
    told = f"{moment}  {ended.job}  {ended.pipeline} of {ended.recipe}  {ended.state}"
    if ended.step:
        told += f" at {ended.step}"
    return plain(f"{told}: {ended.sentence}" if ended.sentence else told)
