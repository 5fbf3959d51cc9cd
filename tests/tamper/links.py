"""What an attacker changes of what MLflow links with a version: inputs, runs, models, aliases."""

import random
import shutil

from tamper.place import Change, Place

_OWN = "destination_type = 'RUN' AND destination_id = ?"
_DATASET = f"(SELECT source_id FROM inputs WHERE {_OWN})"
_MODEL = "source_type = 'RUN_INPUT' AND source_id = ?"
_COLUMNS = ("name", "digest", "dataset_source_type", "dataset_source", "dataset_profile")


def _data_removed(place: Place, name: str, _other: str, _chance: random.Random) -> None:
    place.change(f"DELETE FROM inputs WHERE {_OWN}", place.column(name, "run_id"))


def _data_added(place: Place, name: str, other: str, chance: random.Random) -> None:
    theirs, own = place.column(other, "run_id"), place.column(name, "run_id")
    (dataset,) = place.row(f"SELECT source_id FROM inputs WHERE {_OWN}", theirs)
    values = (chance.randbytes(16).hex(), "DATASET", dataset, "RUN", own, 0)
    place.change("INSERT INTO inputs VALUES (?, ?, ?, ?, ?, ?)", *values)


def _data_changed(place: Place, name: str, _other: str, chance: random.Random) -> None:
    column = chance.choice(_COLUMNS)
    own = f"UPDATE datasets SET {column} = ? WHERE dataset_uuid = {_DATASET}"
    place.change(own, chance.randbytes(16).hex(), place.column(name, "run_id"))


def _readers_changed(place: Place, name: str, _other: str, chance: random.Random) -> None:
    own = f"(SELECT input_uuid FROM inputs WHERE {_OWN})"
    change = f"UPDATE input_tags SET value = ? WHERE input_uuid = {own}"
    place.change(change, chance.choice(["cpt", "sft", ""]), place.column(name, "run_id"))


def _model_input_removed(place: Place, name: str, _other: str, _chance: random.Random) -> None:
    place.change(f"DELETE FROM inputs WHERE {_MODEL}", place.column(name, "run_id"))


def _model_input_added(place: Place, name: str, _other: str, chance: random.Random) -> None:
    run, model = place.column(name, "run_id"), place.model(name)
    values = (chance.randbytes(16).hex(), "RUN_INPUT", run, "MODEL_INPUT", model, 0)
    place.change("INSERT INTO inputs VALUES (?, ?, ?, ?, ?, ?)", *values)


def _model_input_exchanged(place: Place, name: str, _other: str, _chance: random.Random) -> None:
    change = f"UPDATE inputs SET destination_id = ? WHERE {_MODEL}"
    place.change(change, place.model(name), place.column(name, "run_id"))


def _run_copied(place: Place, name: str, _other: str, chance: random.Random) -> None:
    """With its files and its inputs: the same under another name, which may then be changed."""
    run, copy = place.column(name, "run_id"), chance.randbytes(16).hex()
    _copy_row(place, "runs", "run_uuid", run, copy)
    change = "UPDATE runs SET artifact_uri = replace(artifact_uri, ?, ?) WHERE run_uuid = ?"
    place.change(change, run, copy, copy)
    place.change("UPDATE inputs SET destination_id = ? WHERE destination_id = ?", copy, run)
    shutil.copytree(place.of_run(run), place.of_run(copy))
    place.change("UPDATE model_versions SET run_id = ? WHERE name = ?", copy, name)


def _model_copied(place: Place, name: str, _other: str, chance: random.Random) -> None:
    """The same files under another name."""
    copy = f"m-{chance.randbytes(16).hex()}"
    _copy_row(place, "logged_models", "model_id", place.model(name), copy)
    place.change("UPDATE model_versions SET source = ? WHERE name = ?", f"models:/{copy}", name)


def _files_elsewhere(place: Place, name: str, other: str, _chance: random.Random) -> None:
    """For who asks MLflow for the version by its name."""
    found = place.column(other, "storage_location")
    place.change("UPDATE model_versions SET storage_location = ? WHERE name = ?", found, name)


def _renumbered(place: Place, name: str, _other: str, chance: random.Random) -> None:
    number = chance.randrange(2, 9)
    for table in ("model_versions", "model_version_tags"):
        place.change(f"UPDATE {table} SET version = ? WHERE name = ?", number, name)


def _alias_moved(place: Place, name: str, _other: str, chance: random.Random) -> None:
    change = "UPDATE registered_model_aliases SET version = ? WHERE name = ?"
    place.change(change, chance.randrange(2, 9), name)


def _alias_removed(place: Place, name: str, _other: str, _chance: random.Random) -> None:
    place.change("DELETE FROM registered_model_aliases WHERE name = ?", name)


def _alias_added(place: Place, name: str, _other: str, chance: random.Random) -> None:
    added = "INSERT INTO registered_model_aliases (alias, version, name) VALUES (?, 1, ?)"
    place.change(added, chance.choice(["champion", "canary"]), name)


def _alias_renamed(place: Place, name: str, _other: str, _chance: random.Random) -> None:
    change = "UPDATE registered_model_aliases SET alias = 'champion' WHERE name = ?"
    place.change(change, name)


def _copy_row(place: Place, table: str, key: str, value: str, copy: str) -> None:
    columns = [str(row) for row in _columns(place, table) if row != key]
    listed = ", ".join(columns)
    place.change(
        f"INSERT INTO {table} ({key}, {listed}) SELECT ?, {listed} FROM {table} WHERE {key} = ?",
        copy,
        value,
    )


def _columns(place: Place, table: str) -> list[str]:
    (names,) = place.row(f"SELECT group_concat(name, ' ') FROM pragma_table_info('{table}')")
    return str(names).split()


LINK_MUTATIONS: dict[str, Change] = {
    "data set input removed": _data_removed,
    "data set input added": _data_added,
    "data set input changed": _data_changed,
    "data set's readers changed": _readers_changed,
    "model input removed": _model_input_removed,
    "model input added": _model_input_added,
    "model input exchanged": _model_input_exchanged,
    "registering run copied": _run_copied,
    "model copied": _model_copied,
    "version's files elsewhere": _files_elsewhere,
    "version renumbered": _renumbered,
    "alias moved": _alias_moved,
    "alias removed": _alias_removed,
    "alias added": _alias_added,
    "alias renamed": _alias_renamed,
}
OF_AGENTS = {
    "model input removed",
    "model input exchanged",
    "alias moved",
    "alias removed",
    "alias added",
    "alias renamed",
}
"""A world model is in use as nothing, and no simulator served it."""
