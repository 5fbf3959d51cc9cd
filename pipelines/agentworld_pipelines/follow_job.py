"""Runs a step in other pods, from its own pod: creates or finds its TrainJob or Job, and follows
it. The follower may end at any time, and the job continues; the same step finds it again by its
name. So nothing here owns the job, and only a person ends a running one.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agentworld import errors
from agentworld.cluster.api_resources import Object
from agentworld.cluster.client import ApiServer, Cluster, configuration
from agentworld.cluster.names import PIPELINES
from agentworld.domains.base import domain_names
from agentworld.errors import EnvironmentUnavailable, InputError, PipelineError, StoreError
from agentworld.recipes import load_recipe, recipe_path
from agentworld.recipes.environment import from_environment
from agentworld.runner.code import code_digest
from agentworld.runner.progress import ProgressFile, progress_path, read_progress
from agentworld.runner.remote import fetch, on_store
from agentworld.steps.run import folder_for
from agentworld.storage.receipts import RECEIPT, read_receipt
from agentworld.storage.working_copy import address_of
from agentworld_pipelines.follower import Finished, Follower
from agentworld_pipelines.job_parts import name_of
from agentworld_pipelines.job_reporter import JobReporter, Pods, ProgressReporter
from agentworld_pipelines.job_status import JobStatus
from agentworld_pipelines.output import write_line
from agentworld_pipelines.placement import Place
from agentworld_pipelines.settings import ClusterSettings, namespace_of
from agentworld_pipelines.step_job import pod_of_job, stage_job, step_job
from agentworld_pipelines.train_job import pods_of, train_job

_RETRY_HINT = "run the step again to resume"


@on_store
def train_on_nodes(stage: str, recipe: str, store: str, *inputs: str, nodes: str) -> str:
    """Trains a stage on its own nodes, unless that is done; returns the stage's folder.

    Raises InputError, PipelineError if the training failed, and ClusterError.
    """
    folder = folder_for(stage, recipe, store, *inputs)
    progress = ProgressFile(Path(store), stage)
    if (folder / RECEIPT).exists():
        progress.finish("reused", folder, read_receipt(folder).seconds)
        return str(folder)
    place = Place.model_validate_json(nodes)
    assert place.nodes is not None
    addresses = [address_of(address) for address in (recipe, store, *inputs)]
    build, find_pods = (train_job, pods_of) if place.nodes.count > 1 else (stage_job, pod_of_job)
    built = build(stage, addresses, folder, place)
    task = _Task(stage, Path(store), built, find_pods(built["metadata"]["name"]))
    return _done(
        task,
        from_environment(ClusterSettings),
        lambda: str(folder) if fetch(folder / RECEIPT).exists() else None,
    )


def run_in_job(step: str, arguments: Sequence[str], place: str, finished: Finished) -> str:
    """The folder of a step that a Job runs in another pod.

    The step checks in this pod whether it is finished, for which it needs no live environment.
    Raises InputError, PipelineError if the step failed, and ClusterError.
    """
    recipe, home = arguments[0], Path(arguments[1])
    settings = from_environment(ClusterSettings)
    addresses = [address_of(argument) for argument in arguments]
    code = code_digest(step, tuple(domain_names()))  # all: the step's are not known yet
    name = name_of(step, [*addresses, load_recipe(recipe_path(recipe)).digest, code])
    step_place, profile = Place.model_validate_json(place), settings.seccomp_profile
    built = step_job(name, step, addresses, step_place, seccomp_profile=profile)
    write_line(f"this pod can have no sandbox for {step}; a Job of its own does it")
    # The attempt in this pod reported a failure, although the Job may be running.
    ProgressFile(home, step).begin()
    return _done(_Task(step, home, built, pod_of_job(name)), settings, finished)


class _Task(NamedTuple):
    """The work of a job."""

    step: str
    store: Path
    built: Object
    pods: Pods

    @property
    def name(self) -> str:
        return str(self.built["metadata"]["name"])

    @property
    def description(self) -> str:
        """The job in words, for messages."""
        return f"the {self.built['kind']} {self.name}"


def _done(task: _Task, settings: ClusterSettings, finished: Finished) -> str:
    """The step's folder, after its job has succeeded."""
    server = ApiServer(configuration(settings.kubeconfig))
    cluster = Cluster(server, namespace_of(settings), PIPELINES)
    reporter = JobReporter(cluster, task.name, task.pods)
    progress_reporter = ProgressReporter(task.store, task.step, settings.progress_seconds)
    follower = Follower(cluster, task.built, settings)
    uid = follower.begin(ProgressFile(task.store, task.step).begin, finished)
    if uid is None:
        return _wait_until_finished(task, finished, is_removed=False, settings=settings)

    def report(job: Object) -> None:
        reporter.report(job)
        progress_reporter.report(job)

    status = follower.follow(uid, report)
    if status is not None and status.state == "failed":
        raise _failure(task, status, reporter.problem)
    return _wait_until_finished(task, finished, is_removed=status is None, settings=settings)


def _failure(task: _Task, status: JobStatus, problem: str) -> PipelineError:
    with suppress(StoreError):
        fetch(progress_path(task.store, task.step))
    progress = read_progress(task.store, task.step)
    kind = getattr(errors, progress.failure, Exception) if progress else Exception
    retryable = not issubclass(kind, (InputError, EnvironmentUnavailable))
    sentences = [
        f"{task.description} failed ({status.reason})",
        problem,
        f"{task.step} says: {progress.sentence}" if progress and progress.sentence else "",
        _RETRY_HINT if retryable else "no retry helps before that is put right",
    ]
    return PipelineError(
        "; ".join(sentence for sentence in sentences if sentence), retryable=retryable
    )


def _wait_until_finished(
    task: _Task, finished: Finished, *, is_removed: bool, settings: ClusterSettings
) -> str:
    """Waits for the step's folder: some file systems show another node's file late."""
    deadline = time.monotonic() + settings.settle_seconds
    while (folder := finished()) is None:
        if time.monotonic() > deadline:
            if is_removed:
                raise PipelineError(
                    f"{task.description} was deleted before it was complete; {_RETRY_HINT}",
                    retryable=True,
                )
            raise PipelineError(
                f"{task.description} is complete and {task.step} is not finished in {task.store}; "
                "see that its nodes mount the same store as the step"
            )
        time.sleep(min(1.0, settings.look_seconds))
    return folder
