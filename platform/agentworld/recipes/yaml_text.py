"""Reads and writes YAML in which `1e-3` is a number, and `off` a text unless a field is a boolean.

PyYAML reads YAML 1.1, in which `1e-3` is a text, and `off` is false even if a field accepts the
text `off`. Here booleans remain texts, and pydantic reads `yes`, `no`, `on` and `off` as booleans.
A date remains a text, as in JSON.
"""

import re
from typing import NamedTuple

import yaml
from yaml import Node, SafeDumper, SafeLoader, YAMLError

from agentworld.recipes.problems import Problem, repeated_keys
from agentworld.records.base import Record

_BOOL = "tag:yaml.org,2002:bool"
_FLOAT = "tag:yaml.org,2002:float"
_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_EXPONENT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+$")
_TRUE_OR_FALSE = re.compile("(?:true|True|TRUE|false|False|FALSE)$")


class _Loader(SafeLoader):
    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in (_BOOL, _TIMESTAMP)]
        for first, resolvers in SafeLoader.yaml_implicit_resolvers.items()
    }


class _Dumper(SafeDumper):
    """Quotes each text that `_Loader` or YAML 1.1 would read as something else."""


_Loader.add_implicit_resolver(_BOOL, _TRUE_OR_FALSE, list("tTfF"))
for _kind in (_Loader, _Dumper):
    _kind.add_implicit_resolver(_FLOAT, _EXPONENT, list("-+.0123456789"))


class Document(NamedTuple):
    """A parsed YAML document with the positions of its nodes."""

    value: object
    root: Node | None
    """The nodes with their lines; merged keys (`<<`) are expanded."""
    repeated: list[Problem]
    """Keys that occur twice in one mapping."""


def read_yaml(text: str) -> Document:
    """Reads one document; raises YAMLError."""
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return Document(None, None, [])
        # before the construction, which puts merged keys beside those that override them
        repeated = repeated_keys(root)
        return Document(loader.construct_document(root), root, repeated)
    except (ValueError, LookupError, AttributeError) as error:
        raise YAMLError(f"a value does not fit its tag, as `!!float x`: {error}") from error
    except RecursionError as error:
        raise YAMLError("it is nested too deeply; write fewer levels") from error
    finally:
        loader.dispose()


def to_yaml(record: Record) -> str:
    """A record as YAML that both `read_yaml` and readers of YAML 1.1 read correctly."""
    return yaml.dump(record.model_dump(mode="json"), Dumper=_Dumper, sort_keys=False)
