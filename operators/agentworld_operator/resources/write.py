"""Writes the CRDs as files of the chart: `python -m agentworld_operator.resources.write FOLDER`."""

import sys
from pathlib import Path

import yaml

from agentworld_operator.resources.crd import crd
from agentworld_operator.resources.kinds import KINDS, Kind

_HEAD = """\
# Generated from the records in platform/agentworld/cluster/records by `make manifests`.
# Change those; `make verify` fails where this file is another one.
"""


def manifests() -> dict[str, str]:
    """The text of each file, by its name."""
    return {f"{kind.plural}.yaml": _text(kind) for kind in KINDS}


def _text(kind: Kind) -> str:
    return _HEAD + yaml.safe_dump(crd(kind), sort_keys=False, width=100)


def main(folder: Path) -> None:
    """Writes all files, and deletes those without a record."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = manifests()
    for path in set(folder.glob("*.yaml")) - {folder / name for name in contents}:
        path.unlink()
    for name, text in contents.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
