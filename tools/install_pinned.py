"""Installs what a virtual environment's distributions require and these files pin; nothing else.

vLLM asks for more than text models use: what nobody pinned stays away.
Arguments: ENVIRONMENT FILE ...
"""

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def main(environment: Path, files: list[str]) -> None:
    lines = [line for file in files for line in Path(file).read_text().splitlines()]
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    (packages,) = environment.glob("lib/python3*/site-packages")
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin/python")]
    while missing := _missing(packages, set(pins)):
        pinned_requirements = [f"{name}=={pins[name]}" for name in sorted(missing)]
        subprocess.run([*pip, "install", "-q", "--no-deps", *pinned_requirements], check=True)


def _missing(packages: Path, pinned: set[str]) -> set[str]:
    """Of what is pinned: what something there requires, with the extras that it is required for."""
    installed = {
        canonicalize_name(distribution.name): distribution
        for distribution in distributions(path=[str(packages)])
    }
    required = {(name, "") for name in installed}
    while True:
        requirements = {
            (canonicalize_name(one.name), extra)
            for name, asked_extra in required
            if name in installed
            for one in _requirements(installed[name].requires or [], asked_extra)
            for extra in ("", *one.extras)
        }
        if requirements <= required:
            return {name for name, _ in required if name in pinned} - set(installed)
        required |= requirements


def _requirements(lines: list[str], extra: str) -> Iterator[Requirement]:
    for requirement in map(Requirement, lines):
        if not requirement.marker or requirement.marker.evaluate({"extra": extra}):
            yield requirement


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
