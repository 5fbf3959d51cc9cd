"""An attacker's changes of a version's links in MLflow: inputs, runs, models, aliases."""

import shutil

from campaigns.tamper.victim import Change, Victim, statement

_DATA = "destination_type = 'RUN' AND destination_id = :run"
_MODEL = "source_type = 'RUN_INPUT' AND source_id = :run"
_COLUMNS = ("name", "digest", "dataset_source_type", "dataset_source", "dataset_profile")


def _data_changed(victim: Victim) -> None:
    condition = f"dataset_uuid = (SELECT source_id FROM inputs WHERE {_DATA})"
    column = victim.chance.choice(_COLUMNS)
    statement(f"UPDATE datasets SET {column} = :id WHERE {condition}")(victim)


def _run_copied(victim: Victim) -> None:
    """Copies the run with its files and its inputs under another name, which can then be
    changed.
    """
    run, copy = victim.run, victim.new_id()
    _copy_row(victim, "runs", "run_uuid", run, copy)
    change = "UPDATE runs SET artifact_uri = replace(artifact_uri, ?, ?) WHERE run_uuid = ?"
    victim.change(change, run, copy, copy)
    victim.change("UPDATE inputs SET destination_id = ? WHERE destination_id = ?", copy, run)
    shutil.copytree(victim.files(run), victim.files(copy))
    victim.change("UPDATE model_versions SET run_id = ? WHERE name = ?", copy, victim.name)


def _model_copied(victim: Victim) -> None:
    """Copies the model's files under another name."""
    copy = f"m-{victim.new_id()}"
    _copy_row(victim, "logged_models", "model_id", victim.model, copy)
    change = "UPDATE model_versions SET source = ? WHERE name = ?"
    victim.change(change, f"models:/{copy}", victim.name)


def _files_elsewhere(victim: Victim) -> None:
    """Changes the location for downloads by the version's name."""
    location = victim.other.column("storage_location")
    victim.change(
        "UPDATE model_versions SET storage_location = ? WHERE name = ?", location, victim.name
    )


def _renumbered(victim: Victim) -> None:
    number = victim.chance.randrange(2, 9)
    for table in ("model_versions", "model_version_tags"):
        victim.change(f"UPDATE {table} SET version = ? WHERE name = ?", number, victim.name)


def _copy_row(victim: Victim, table: str, key: str, value: str, copy: str) -> None:
    (names,) = victim.row(f"SELECT group_concat(name, ' ') FROM pragma_table_info('{table}')")
    columns = ", ".join(name for name in str(names).split() if name != key)
    victim.change(
        f"INSERT INTO {table} ({key}, {columns}) SELECT ?, {columns} FROM {table} WHERE {key} = ?",
        copy,
        value,
    )


LINK_MUTATIONS: dict[str, Change] = {
    "data set input removed": statement(f"DELETE FROM inputs WHERE {_DATA}"),
    "data set input added": statement(
        "INSERT INTO inputs SELECT :id, 'DATASET', source_id, 'RUN', :run, 0 FROM inputs"
        " WHERE destination_type = 'RUN' AND destination_id = :other_run LIMIT 1"
    ),
    "data set input changed": _data_changed,
    "data set's readers changed": statement(
        "UPDATE input_tags SET value = :reader WHERE input_uuid ="
        f" (SELECT input_uuid FROM inputs WHERE {_DATA})",
        reader=lambda chance: chance.choice(["cpt", "sft", ""]),
    ),
    "model input removed": statement(f"DELETE FROM inputs WHERE {_MODEL}"),
    "model input added": statement(
        "INSERT INTO inputs VALUES (:id, 'RUN_INPUT', :run, 'MODEL_INPUT', :model, 0)"
    ),
    "model input exchanged": statement(f"UPDATE inputs SET destination_id = :model WHERE {_MODEL}"),
    "registering run copied": _run_copied,
    "model copied": _model_copied,
    "version's files elsewhere": _files_elsewhere,
    "version renumbered": _renumbered,
    "alias moved": statement(
        "UPDATE registered_model_aliases SET version = :version WHERE name = :name",
        version=lambda chance: chance.randrange(2, 9),
    ),
    "alias removed": statement("DELETE FROM registered_model_aliases WHERE name = :name"),
    "alias added": statement(
        "INSERT INTO registered_model_aliases (alias, version, name) VALUES (:alias, 1, :name)",
        alias=lambda chance: chance.choice(["champion", "canary"]),
    ),
    "alias renamed": statement(
        "UPDATE registered_model_aliases SET alias = 'champion' WHERE name = :name"
    ),
}
OF_AGENTS = {
    "model input removed",
    "model input exchanged",
    "alias moved",
    "alias removed",
    "alias added",
    "alias renamed",
}
"""World models have no use, and no simulator that served them."""
