"""The page of the reference about the values of the chart, from values.yaml and its schema."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from reference_text import default, head, page, row
from values_schema import Schema, schema

_VALUES = Path(__file__).parents[1] / "charts/agentworld/values.yaml"
_TYPES = {
    "string": "text",
    "boolean": "yes or no",
    "integer": "whole number",
    "number": "number",
    "array": "list",
    "object": "mapping",
}
# By a value's last name, where no comment of values.yaml explains it.
_MEANINGS = {
    "enabled": "Whether it is installed",
    "existingSecret": "The name of a Secret",
    "extraEnv": "More environment variables of its pods, as in `env` of a container",
    "nodeSelector": "Labels of the nodes that its pods may use",
    "podAnnotations": "More annotations of its pods",
    "podLabels": "More labels of its pods; the chart's own win",
    "priorityClassName": "The PriorityClass of its pods; the cluster's default if empty",
    "pullPolicy": "When nodes pull an image",
    "replicas": "How many pods it has",
    "resources": "Requests and limits of its pods",
    "serviceAccount": "The ServiceAccount of its pods: annotations give it an identity in a cloud;"
    " with `create: false` it must exist",
    "size": "The size of its claim",
    "storageClass": "The StorageClass of its claim; the cluster's default if empty",
    "tolerations": "Taints of nodes that its pods tolerate",
    "topologySpreadConstraints": "How its pods are spread; over nodes if empty. The chart adds"
    " the `labelSelector`",
    "type": "The type of its Service",
}


def values() -> str:
    """A table for each section of values.yaml, with a row for each value that it explains."""
    text = _VALUES.read_text(encoding="utf-8")
    defaults = yaml.safe_load(text)
    text_of_page = page(
        "Chart values",
        "Set a value with `helm install --set service.replicas=3`, or put several into a file and"
        " name it with `--values`. A value with a wrong name or type is refused."
        " [Kubernetes](../guides/kubernetes.md) installs the chart.",
    )
    for section, described in schema(text)["properties"].items():
        if section in defaults:
            rows = _rows(section, described, defaults[section])
            table = head("value", "type", "default", "meaning") + "".join(rows)
            text_of_page += f"\n## {section}\n\n{table}"
    return text_of_page


def _rows(path: str, described: Schema, value: Any) -> Iterator[str]:
    meaning = described.get("description") or _MEANINGS.get(path.rpartition(".")[2])
    if meaning:
        yield row(f"`{path}`", _type(described), default(value), meaning)
        return
    for name, inner in described["properties"].items():
        yield from _rows(f"{path}.{name}", inner, value[name])


def _type(described: Schema) -> str:
    if "enum" in described:
        return " or ".join(f"`{choice}`" for choice in described["enum"])
    return _TYPES[described.get("type", "object")]
