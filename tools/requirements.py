"""Prints what the project requires, with these extras: an image's layer that rarely changes."""

import sys
import tomllib
from pathlib import Path


def main(extras: list[str]) -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *(project["optional-dependencies"][name] for name in extras)]
    sys.stdout.writelines(f"{line}\n" for lines in groups for line in lines)


if __name__ == "__main__":
    main(sys.argv[1:])
