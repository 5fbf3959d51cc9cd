"""The TrainJobs of Kubeflow's Trainer for an API server, by the types of its own Python package.

Nothing is left open: what those types have no field for does not stay in an object, and a value of
another type is refused.
"""

from collections.abc import Mapping
from typing import Any

from kubeflow_trainer_api.models.trainer_v1alpha1_train_job_spec import TrainerV1alpha1TrainJobSpec
from kubeflow_trainer_api.models.trainer_v1alpha1_train_job_status import (
    TrainerV1alpha1TrainJobStatus,
)
from pydantic import BaseModel

Schema = dict[str, Any]

NAME = "trainjobs.trainer.kubeflow.org"
_QUANTITY = {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?(m|[kMGTPE]i?|Ki)?$"}
_KEPT = ("type", "items", "properties", "additionalProperties", "required", "format")


def crd() -> Schema:
    """The definition that an API server takes."""
    parts = {
        "spec": _schema(TrainerV1alpha1TrainJobSpec),
        "status": _schema(TrainerV1alpha1TrainJobStatus),
    }
    whole = {"type": "object", "required": ["spec"], "properties": parts}
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": whole},
        "subresources": {"status": {}},
    }
    plural, _, group = NAME.partition(".")
    names = {"kind": "TrainJob", "listKind": "TrainJobList", "plural": plural}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def _schema(model: type[BaseModel]) -> Schema:
    told = model.model_json_schema(by_alias=True)
    return _structural(told, told.get("$defs", {}))


def _structural(node: Mapping[str, Any], defs: Mapping[str, Any]) -> Schema:
    kinds = [kind for kind in node.get("anyOf", ()) if kind != {"type": "null"}]
    if kinds:
        (node,) = kinds
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        return dict(_QUANTITY) if name.endswith("Quantity") else _structural(defs[name], defs)
    if node.get("additionalProperties") is True:  # who manages which fields
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    found = {word: node[word] for word in _KEPT if word in node}
    for word in ("items", "additionalProperties"):
        if word in found:
            found[word] = _structural(found[word], defs)
    if "properties" in found:
        told = found["properties"].items()
        found["properties"] = {name: _structural(each, defs) for name, each in told}
    return found
