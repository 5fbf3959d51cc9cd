"""The JobSet that Kubeflow's Trainer makes of a TrainJob with a torch runtime, by its own types.

Its container is the TrainJob's, its pods are patched as the TrainJob requests, and Trainer gives
each process its rank. Values without a field in the types fail here.
"""

from typing import Any

Object = dict[str, Any]

PORT = "29400"
_RUNTIME = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "torch-distributed"},
    "spec": {
        "mlPolicy": {"numNodes": 1, "torch": {}},
        "template": {
            "spec": {
                "replicatedJobs": [
                    {
                        "name": "node",
                        "template": {
                            "metadata": {
                                "labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
                            },
                            "spec": {
                                "template": {
                                    "spec": {"containers": [{"name": "node", "image": "pytorch"}]}
                                }
                            },
                        },
                    }
                ]
            }
        },
    },
}


def typed(kind: str, fields: Object) -> Object:
    """Returns these fields, all of which must exist in the type of this name."""
    from kubeflow_trainer_api import models  # half a second

    typed_object: Object = getattr(models, kind).from_dict(fields).to_dict()
    assert typed_object == fields, f"{kind} has no field for a part of it"
    return typed_object


def job_set(job: Object) -> Object:
    """The JobSet with as many pods as the TrainJob has nodes; the caller sets `PET_MASTER_ADDR`."""
    owner = {name: job[name] for name in ("apiVersion", "kind", "metadata", "spec")}
    owner["metadata"] = {"name": job["metadata"]["name"]}
    spec = typed("TrainerV1alpha1TrainJob", owner)["spec"]
    runtime = typed("TrainerV1alpha1ClusterTrainingRuntime", _RUNTIME)["spec"]
    (replicated,) = runtime["template"]["spec"]["replicatedJobs"]
    (container,) = replicated["template"]["spec"]["template"]["spec"]["containers"]
    (patch,) = spec["runtimePatches"]
    (patched,) = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    assert patched["name"] == replicated["name"]
    patched_template = patched["template"]["spec"]["template"]
    pod = dict(patched_template["spec"])
    (mounts,) = pod.pop("containers", [{"name": container["name"]}])
    trainer = spec["trainer"]
    nodes = {"PET_NNODES": str(trainer["numNodes"]), "PET_MASTER_PORT": PORT}
    variables = [{"name": name, "value": value} for name, value in nodes.items()]
    main = {
        **container,
        **mounts,
        "image": trainer["image"],
        "command": trainer["command"],
        "args": trainer["args"],
        "env": [*trainer.get("env", []), *variables],
    }
    if "resourcesPerNode" in trainer:
        main["resources"] = trainer["resourcesPerNode"]
    template = {**patched_template, "spec": {**pod, "containers": [main], "restartPolicy": "Never"}}
    counts = {"completions": trainer["numNodes"], "parallelism": trainer["numNodes"]}
    result = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": owner["metadata"],
        "spec": {
            "replicatedJobs": [
                {
                    "name": replicated["name"],
                    "replicas": 1,
                    "template": {
                        "metadata": replicated["template"]["metadata"],
                        "spec": {**counts, "completionMode": "Indexed", "template": template},
                    },
                }
            ]
        },
    }
    return typed("JobsetV1alpha2JobSet", result)
