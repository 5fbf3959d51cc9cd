"""Values of the chart that name its images by their digests.

`python tools/image_values.py --control NAME@DIGEST --train NAME@DIGEST` prints them.
`--into charts/agentworld/values.yaml` writes them into a chart that is released.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import yaml

Values = dict[str, Any]

_REFERENCE = re.compile(
    r"(?P<name>([a-z0-9.-]+(:[0-9]+)?/)?[a-z0-9._-]+(/[a-z0-9._-]+)*)"
    r"(:[\w.-]+)?@(?P<digest>sha256:[0-9a-f]{64})"
)


class Image(NamedTuple):
    """An image as a registry serves it."""

    name: str
    """With its registry."""
    digest: str

    @classmethod
    def parse(cls, text: str) -> "Image":
        """From NAME@DIGEST, as `docker image inspect` prints it after a push or a pull."""
        match = _REFERENCE.fullmatch(text)
        if match is None:
            raise argparse.ArgumentTypeError(
                f"{text!r} names no image by its digest, as registry.example/name@sha256:...; push"
                " the image, and take the digest that the registry has for it"
            )
        return cls(_with_registry(match["name"]), match["digest"])


def _with_registry(name: str) -> str:
    """The name that a cluster pulls, where Docker leaves its own registry out."""
    first, _, path = name.partition("/")
    if path and ("." in first or ":" in first or first == "localhost"):
        return name
    return f"docker.io/{name}" if path else f"docker.io/library/{name}"


def image_values(control: Image, train: Image, postgres: Image | None) -> Values:
    """Raises ValueError where the chart's two images have nothing of their names in common."""
    registry = _common_folder(control.name, train.name)
    if not registry:
        raise ValueError(
            f"{control.name} and {train.name} are in two registries; push both into one"
        )
    values: Values = {"registry": registry}
    for key, image in {"control": control, "train": train}.items():
        values[key] = {"name": image.name.removeprefix(f"{registry}/"), "digest": image.digest}
    if postgres:
        values["postgres"] = postgres._asdict()
    return {"images": values}


def _common_folder(*names: str) -> str:
    folders = [name.split("/")[:-1] for name in names]
    same = takewhile(lambda parts: len(set(parts)) == 1, zip(*folders, strict=False))
    return "/".join(parts[0] for parts in same)


def replace_values(text: str, values: Values) -> str:
    """The text of a values file with other values, and every comment; raises ValueError for a
    value that it has not got.
    """
    missing = dict(_leaves(values))
    edits = []
    for path, node in _scalars(yaml.compose(text, yaml.SafeLoader)):
        if path in missing:
            edits.append((node.start_mark.index, node.end_mark.index, missing.pop(path)))
    if missing:
        raise ValueError(f"it has no value {next(iter(missing))}; name the chart's values.yaml")
    for start, end, value in sorted(edits, reverse=True):
        text = text[:start] + json.dumps(value) + text[end:]
    return text


def _leaves(values: Values, path: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def _scalars(node: yaml.Node | None, path: str = "") -> Iterator[tuple[str, yaml.ScalarNode]]:
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if isinstance(value, yaml.ScalarNode):
            yield f"{path}{key.value}", value
        yield from _scalars(value, f"{path}{key.value}.")


def main() -> None:
    """Prints the values, or writes them into a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, is_required in (("control", True), ("train", True), ("postgres", False)):
        parser.add_argument(
            f"--{name}", type=Image.parse, required=is_required, metavar="NAME@DIGEST"
        )
    parser.add_argument("--into", type=Path, metavar="FILE", help="the values.yaml of a chart")
    words = parser.parse_args()
    try:
        values = image_values(words.control, words.train, words.postgres)
        if words.into is None:
            sys.stdout.write(yaml.safe_dump(values, sort_keys=False, width=200))
        else:
            text = words.into.read_text(encoding="utf-8")
            words.into.write_text(replace_values(text, values), encoding="utf-8")
    except OSError as error:
        parser.error(f"cannot read or write {words.into}: {error.strerror}")
    except (ValueError, yaml.YAMLError) as error:
        parser.error(f"{words.into}: {error}" if words.into else str(error))


if __name__ == "__main__":
    main()
