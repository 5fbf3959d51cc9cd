"""The common parts of a TrainJob and a Job: metadata, and the pods' settings from a place."""

from collections.abc import Sequence

from agentworld.cluster.api_resources import Object
from agentworld.cluster.names import BUILT, GROUP, RESOURCES, part_labels
from agentworld.records.base import digest_json
from agentworld.records.garbled import redact
from agentworld_pipelines.compute import container_resources
from agentworld_pipelines.placement import (
    PRIORITY_CLASS,
    QUEUE,
    SCRATCH,
    SHARED_MEMORY,
    Place,
)
from agentworld_pipelines.retries import WEEK_SECONDS

STEP = "step"
"""The name of a Job's container that runs the step."""

_NAME_DIGITS = 16


def name_of(step: str, content: object) -> str:
    """A deterministic name, so that a repeated step finds its job."""
    digest = digest_json(content).removeprefix("sha256:")
    return f"agentworld-{step}-{digest[:_NAME_DIGITS]}"


def metadata_of(name: str, component: str, command: Sequence[str], place: Place) -> Object:
    """The command is the step, its recipe, its store and its other arguments."""
    step, recipe, store, *_ = command
    queue_labels = {QUEUE: place.queue, PRIORITY_CLASS: place.priority_class}
    return {
        "name": name,
        "labels": {
            **part_labels(f"agentworld-{component}", "agentworld-pipelines", component=component),
            **{label: value for label, value in queue_labels.items() if value},
        },
        "annotations": {
            f"{GROUP}/step": step,
            f"{GROUP}/recipe": redact(recipe),
            f"{GROUP}/store": redact(store),
        },
    }


def with_digest(job: Object) -> Object:
    """Adds the digest of what the job is built from, without the fields that the server adds."""
    return _annotated(job, {BUILT: digest_json([job["metadata"], job["spec"]])})


def with_resources(job: Object, resources: Object) -> Object:
    """A Job whose step container has these resources.

    They are not part of the specification's digest, because they may change while the Job is
    suspended. Kueue may change them too, so the requested ones are in an annotation.
    """
    template = job["spec"]["template"]
    containers = [
        {**container, "resources": resources} if container["name"] == STEP else container
        for container in template["spec"]["containers"]
    ]
    pod = {**template["spec"], "containers": containers}
    spec = {**job["spec"], "template": {**template, "spec": pod}}
    return _annotated({**job, "spec": spec}, {RESOURCES: digest_json(resources)})


def resources_in(job: Object) -> Object:
    """The resources of a Job's step container."""
    containers = job["spec"]["template"]["spec"]["containers"]
    (container,) = [container for container in containers if container["name"] == STEP]
    return dict(container["resources"])


def deadline_seconds(place: Place) -> int:
    """The deadline of a job; if a person ends its follower, nothing else ends the job."""
    return place.retries.most_seconds if place.retries else WEEK_SECONDS


def resources_of(place: Place) -> Object:
    """A container's resources."""
    resources = container_resources(place.requests, place.limits, place.accelerator)
    return {kind: amounts for kind, amounts in resources.model_dump().items() if amounts}


def environment_of(place: Place) -> list[Object]:
    """Its variables; those of secrets by reference."""
    plain = [{"name": name, "value": value} for name, value in place.environment.items()]
    secret = [
        {"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
        for secret, keys in place.secrets.items()
        for key, variable in keys.items()
    ]
    return [*plain, *secret]


def volumes_of(place: Place) -> list[tuple[Object, str]]:
    """A pod's volumes with their mount paths."""
    mounts: list[tuple[Object, str]] = [
        ({"name": f"volume-{number}", "persistentVolumeClaim": {"claimName": claim}}, path)
        for number, (claim, path) in enumerate(place.volumes.items())
    ]
    if place.scratch:
        mounts.append(({"name": "scratch", "emptyDir": {"sizeLimit": place.scratch}}, SCRATCH))
    if place.shared_memory:
        memory = {"medium": "Memory", "sizeLimit": place.shared_memory}
        mounts.append(({"name": "shared-memory", "emptyDir": memory}, SHARED_MEMORY))
    return mounts


def pod_template(place: Place, pod: Object) -> Object:
    """The template of a pod, with the labels of its place."""
    return {**({"metadata": {"labels": place.labels}} if place.labels else {}), "spec": pod}


def pod_of(place: Place, volumes: Sequence[tuple[Object, str]], container: Object) -> Object:
    """A pod on the nodes of a place, with one container that mounts these volumes."""
    mounts = [{"name": volume["name"], "mountPath": path} for volume, path in volumes]
    whole = {**container, **({"volumeMounts": mounts} if mounts else {})}
    spec = {
        "nodeSelector": place.node_selector,
        "tolerations": [
            toleration.model_dump(exclude_none=True) for toleration in place.tolerations
        ],
        "imagePullSecrets": [{"name": name} for name in place.image_pull_secrets],
        "serviceAccountName": place.service_account,
        "volumes": [volume for volume, _ in volumes],
        "containers": [whole],
    }
    return {field: value for field, value in spec.items() if value}


def _annotated(job: Object, own: Object) -> Object:
    annotations = {**job["metadata"]["annotations"], **own}
    return {**job, "metadata": {**job["metadata"], "annotations": annotations}}
