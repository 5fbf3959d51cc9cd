"""Backups of a store's record: make, list, verify and restore them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentworld.errors import EvidenceError, StoreError
from agentworld_cli.show import DEFAULT_STORE, Json, Store, plain, show_json

if TYPE_CHECKING:
    from agentworld.records.backup import Backup

app = typer.Typer(
    help="Make, list, verify and restore backups of ledger, long texts and evidence mirror.",
    no_args_is_help=True,
)

_Destination = Annotated[
    str, typer.Argument(metavar="DESTINATION", help="The folder of all backups, or its URL.")
]
_Folder = Annotated[
    str, typer.Argument(metavar="FOLDER", help="A folder with room for the databases' dumps.")
]


@app.command()
def begin(destination: _Destination, folder: _Folder, store: Store = DEFAULT_STORE) -> None:
    """Copy long texts, before you dump the databases into FOLDER as NAME.dump.

    Then call `backup finish` with the same folder. A text that is erased between the two is in
    the backup, because the dump still names it.
    """
    from agentworld.operations.backup import begin_backup

    num_texts = begin_backup(destination, Path(store), Path(folder))
    print(plain(f"{destination} has {num_texts} texts; dump the databases into {folder} now"))


@app.command()
def finish(
    destination: _Destination,
    folder: _Folder,
    keep: Annotated[int, typer.Option(min=1, help="How many backups to keep.")] = 14,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Copy the dumps in FOLDER, new texts and the evidence mirror, and remove old backups.

    Each file is read back and compared by its digest. The manifest is written after that, and
    old backups are removed last.
    """
    from agentworld.operations.backup import finish_backup

    name, backup, lost_copies = finish_backup(destination, Path(store), Path(folder), keep)
    if as_json:
        show_json({"name": name, **backup.model_dump(mode="json"), "lost_copies": lost_copies})
        return
    print(_line(name, backup))
    for digest in backup.damaged:
        print(
            f"the text {digest} is damaged and missing from the backup; restore it from another"
            " copy"
        )
    for copy in lost_copies:
        print(f"{plain(copy)} is in the backup but missing in the evidence mirror; find out why")


@app.command("list")
def list_(destination: _Destination, as_json: Json = False) -> None:
    """List the complete backups, the oldest first; a damaged manifest is named."""
    from agentworld.storage.backups import BackupStore

    store = BackupStore(destination)
    rows = []
    for name in store.names():
        try:
            backup = store.read(name)
        except StoreError as error:
            if error.retryable:
                raise
            rows.append(({"name": name, "problem": str(error)}, f"{name}  {plain(str(error))}"))
        else:
            rows.append(({"name": name, **backup.model_dump(mode="json")}, _line(name, backup)))
    if as_json:
        show_json([fields for fields, _ in rows])
        return
    for _, line in rows:
        print(line)


@app.command()
def verify(
    destination: _Destination,
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="The backup; the newest one without a name.")
    ] = "",
) -> None:
    """Read every file of a backup and compare it with its digest."""
    from agentworld.operations.restore_backup import newest_backup, verify_backup
    from agentworld_cli.views import show_progress

    name = name or newest_backup(destination)
    with show_progress("verify") as on_progress:
        problems = verify_backup(destination, name, on_progress)
    for problem in problems:
        print(plain(problem))
    if problems:
        raise EvidenceError(f"the backup {name} has {len(problems)} problems; use another backup")
    print(f"{name} is whole")


@app.command()
def restore(
    destination: _Destination,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A backup that `backup list` prints.")
    ],
    folder: _Folder,
    store: Store = DEFAULT_STORE,
) -> None:
    """Put the dumps of a backup into FOLDER, and missing texts and signed copies into the store.

    Restore the dumps with `pg_restore`, and then record the loss with `audit restored`. Copies
    that are in the evidence mirror stay as they are.
    """
    from agentworld.operations.restore_backup import restore_backup

    restored = restore_backup(destination, name, Path(store), Path(folder))
    for dump in restored.dumps:
        print(plain(str(dump)))
    print(f"restored {restored.num_texts} texts and {restored.num_copies} signed copies")
    for copy in restored.other_copies:
        print(
            f"{plain(copy)} differs in the evidence mirror and was not replaced; find out who"
            " changed it"
        )


def _line(name: str, backup: "Backup") -> str:
    dumps = ", ".join(f"{plain(dump)} {file.size:,} bytes" for dump, file in backup.dumps.items())
    return f"{name}  {dumps}; {backup.num_texts} texts, {backup.num_copies} signed copies"
