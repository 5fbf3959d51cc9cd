"""YAML as people write it: `1e-3` is a number, and `off` is a word until a field wants a boolean.

PyYAML reads YAML 1.1, in which `1e-3` is a text, and `off` is false even where a field takes the
word `off`. Booleans remain words here, and pydantic reads `yes`, `no`, `on` and `off` as booleans.
"""

import re

from yaml import Node, SafeLoader

_BOOL = "tag:yaml.org,2002:bool"
_FLOAT = "tag:yaml.org,2002:float"
_EXPONENT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+$")
_TRUE_OR_FALSE = re.compile("(?:true|True|TRUE|false|False|FALSE)$")


class _Loader(SafeLoader):
    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _BOOL]
        for first, resolvers in SafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver(_BOOL, _TRUE_OR_FALSE, list("tTfF"))
_Loader.add_implicit_resolver(_FLOAT, _EXPONENT, list("-+.0123456789"))


def read_yaml(text: str) -> tuple[object, Node | None]:
    """The value of a document, and its nodes, which know their lines; raises YAMLError."""
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        return (loader.construct_document(root), root) if root else (None, None)
    finally:
        loader.dispose()
