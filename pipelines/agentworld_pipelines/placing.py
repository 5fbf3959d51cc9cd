"""Applies a placement to Kubeflow tasks."""

from collections.abc import Callable

from kfp import dsl, kubernetes

from agentworld.cluster.pod_security import USER
from agentworld.steps.table import names_of
from agentworld_pipelines.components import COMPONENTS, IMAGE
from agentworld_pipelines.placement import (
    PRIORITY_CLASS,
    QUEUE,
    SCRATCH,
    SHARED_MEMORY,
    Place,
    Placement,
)
from agentworld_pipelines.retries import RETRIES

Step = Callable[..., dsl.PipelineTask]
"""Takes the name of a step and its arguments."""


def step_adder(placement: Placement | None) -> Step:
    """A function that adds a step to the current pipeline, in its place of the placement.

    The step runs every time, and its receipt shows whether work remains. A stage with its own nodes
    gets its place as an argument, because its Job has to run there; so does a step with live
    environments, which its own pod may not allow.
    """
    effective_placement = placement or Placement()

    def step(name: str, /, **arguments: object) -> dsl.PipelineTask:
        step_place = effective_placement.of(name)
        place = step_place.model_copy(update={"image": step_place.image or IMAGE})
        place_json = place.model_dump_json(exclude_defaults=True)
        if place.nodes or (placement and name in names_of("live")):
            arguments["place"] = place_json
        task = COMPONENTS[name](**arguments).set_caching_options(False)
        task.set_container_image(place.image)
        _place(task, place.own_pod)
        return task

    return step


def _place(task: dsl.PipelineTask, place: Place) -> None:
    # Kubeflow enforces the rest of the Pod Security Standard `restricted` itself.
    kubernetes.set_security_context(task, USER, USER, run_as_non_root=True)
    _choose_nodes(task, place)
    _give(task, place)
    _mount(task, place)
    _fill_environment(task, place)
    if place.queue:
        kubernetes.add_pod_label(task, QUEUE, place.queue)
    if place.priority_class:
        kubernetes.add_pod_label(task, PRIORITY_CLASS, place.priority_class)
    for key, value in place.labels.items():
        kubernetes.add_pod_label(task, key, value)
    if place.image_pull_secrets:
        kubernetes.set_image_pull_secrets(task, list(place.image_pull_secrets))
    if retries := place.retries:
        task.set_env_variable(RETRIES, retries.model_dump_json())
        task.set_retry(
            retries.times,
            backoff_duration=f"{retries.wait_seconds}s",
            backoff_factor=retries.factor,
            backoff_max_duration=f"{retries.most_seconds}s",
        )


def _choose_nodes(task: dsl.PipelineTask, place: Place) -> None:
    for key, value in place.node_selector.items():
        kubernetes.add_node_selector(task, key, value)
    for toleration in place.tolerations:
        kubernetes.add_toleration(task, **toleration.model_dump(by_alias=False))


def _give(task: dsl.PipelineTask, place: Place) -> None:
    if place.requests.cpu:
        task.set_cpu_request(place.requests.cpu)
    if place.requests.memory:
        task.set_memory_request(place.requests.memory)
    if place.limits.cpu:
        task.set_cpu_limit(place.limits.cpu)
    if place.limits.memory:
        task.set_memory_limit(place.limits.memory)
    if place.accelerator:
        task.set_accelerator_type(place.accelerator.type)
        task.set_accelerator_limit(place.accelerator.count)


def _mount(task: dsl.PipelineTask, place: Place) -> None:
    if place.shared_memory:
        kubernetes.empty_dir_mount(
            task, "shared-memory", SHARED_MEMORY, medium="Memory", size_limit=place.shared_memory
        )
    if place.scratch:
        kubernetes.empty_dir_mount(task, "scratch", SCRATCH, size_limit=place.scratch)
    for claim, path in place.volumes.items():
        kubernetes.mount_pvc(task, claim, path)


def _fill_environment(task: dsl.PipelineTask, place: Place) -> None:
    for name, value in place.environment.items():
        task.set_env_variable(name, value)
    for secret, variables in place.secrets.items():
        kubernetes.use_secret_as_env(task, secret, variables)
