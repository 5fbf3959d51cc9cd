"""`agentworld data import`: the recipe of an import, its result, and the parts of one record."""

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from itertools import islice
from pathlib import Path

from pydantic import ValidationError

from agentworld.data.imported import open_recordings
from agentworld.data.importers import ImportResult
from agentworld.errors import InputError
from agentworld.recipes import Recipe, load_recipe, recipe_path
from agentworld.recipes.data import CollectRecipe
from agentworld.records.base import first_problem
from agentworld.records.collected import Collected
from agentworld.records.garbled import redact
from agentworld.records.quarantine import QUARANTINE, QuarantinedRecord
from agentworld.runner.progress import watched_by
from agentworld.steps.run import run_by_name
from agentworld.storage.trajectories import read_collected
from agentworld_cli.collect import read_options, recipe_file
from agentworld_cli.show import count_noun, plain, show_json
from agentworld_cli.views import show_progress

_MOST_OF_TEXT = 200


def collect_recipe(
    recipe: str, source: str, *, form: str, domain: str, options: Sequence[str], strict: bool
) -> CollectRecipe:
    """The part of a recipe that imports a source."""
    collect = load_recipe(recipe_path(recipe)).collect if recipe else CollectRecipe()
    update = {
        "trajectories": source,
        "format": form or collect.format,
        "domain": domain or collect.domain,
        "mixture": {},
        "options": {**collect.options, **read_options(options)},
        "strict": strict or collect.strict,
    }
    try:
        return CollectRecipe.model_validate({**collect.model_dump(), **update})
    except ValidationError as error:
        raise InputError(f"the import is wrong at {first_problem(error)}; correct it") from error


def run(recipe: str, collect: CollectRecipe, store: str, *, as_json: bool) -> None:
    """Imports a source by the step `collect`, and shows the result."""
    whole = load_recipe(recipe_path(recipe)) if recipe else Recipe(name="import")
    with (
        recipe_file(whole, collect) as path,
        show_progress("import") as on_progress,
        watched_by(on_progress),
        redirect_stdout(sys.stderr),
    ):
        result = run_by_name("collect", path, store)
    _show(result, as_json=as_json)


def _show(folder: str, *, as_json: bool) -> None:
    manifest = read_collected(Path(folder))
    if as_json:
        show_json({"folder": folder, **manifest.model_dump(mode="json", exclude={"chunks"})})
        return
    print(plain(folder))
    for line in _summary(manifest, Path(folder)):
        print(plain(line))


def _summary(manifest: Collected, folder: Path) -> list[str]:
    lines = [
        f"  format {manifest.form}, domain {', '.join(manifest.domains)}",
        f"  for training: {count_noun(manifest.num_trajectories, 'episode')} with"
        f" {count_noun(manifest.num_transitions, 'turn')}",
        f"  held out:     {count_noun(manifest.num_held_out_trajectories, 'episode')} with"
        f" {count_noun(manifest.num_held_out_transitions, 'turn')}",
    ]
    if manifest.notes:
        lines.append("  also counted:")
    lines += [f"  {count:>10,}  {reason}" for reason, count in _by_count(manifest.notes)]
    if manifest.num_quarantined:
        with (folder / QUARANTINE).open() as file:
            first = QuarantinedRecord.model_validate_json(file.readline())
        lines += [
            f"  {count_noun(manifest.num_quarantined, 'record')} in quarantine ({QUARANTINE}),"
            f" the first: {first.file} {first.place}: {first.problem}"
        ]
    return [*lines, f"next: agentworld data prepare --collected {folder}"]


def _by_count(notes: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(notes.items(), key=lambda item: -item[1])


def explain(collect: CollectRecipe, number: int, *, as_json: bool) -> None:
    """Shows the result of each part of one record; raises InputError if there is no such record."""
    recordings = open_recordings(collect)
    items = ((file, item) for file in recordings.files for item in recordings.read(file))
    file, item = next(islice(items, number - 1, None), (None, None))
    if file is None or item is None:
        source = redact(collect.trajectories or "")
        raise InputError(
            f"{source} has fewer than {number} records; give --explain a smaller number"
        )
    parts = [] if item.problem else _parts(item)
    if as_json:
        problem = item.problem or None
        show_json({"file": file.name, "place": item.place, "problem": problem, "parts": parts})
        return
    print(plain(f"{file.name} {item.place}".strip()))
    if item.problem:
        print(plain(f"  no episode: {item.problem}"))
    for part in parts:
        print(plain(f"  {part['place']:<28} {part['became']}: {part['text'][:_MOST_OF_TEXT]}"))


def _parts(item: ImportResult) -> list[dict[str, str]]:
    """The result of each event of a record, in the record's order."""
    turns = item.trajectory.turns if item.trajectory else ()
    outcomes = {}
    for number, pair in enumerate(item.pairs):
        outcomes[pair.action] = (f"action of turn {number}", turns[number].action)
        outcomes[pair.observation] = (f"observation of turn {number}", turns[number].observation)
    parts = []
    for number, event in enumerate(item.events):
        default = event.role if event.role == "start" else f"left out, {event.reason or 'unpaired'}"
        outcome, text = outcomes.get(number, (default, event.text))
        parts.append({"place": event.place, "became": outcome, "text": text})
    return parts
