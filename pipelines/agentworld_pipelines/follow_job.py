"""A step that other pods do, from its own pod: its TrainJob or Job is made or found, and followed.

The follower may end at any time, and the job goes on without it; the same step begun again finds
it by its name. So nothing here owns the job, and nobody but a person ends one that runs.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from agentworld import errors
from agentworld.cluster.api_resources import Object
from agentworld.cluster.client import EXISTS, NOT_FOUND, ApiServer, Cluster, configuration
from agentworld.cluster.names import BUILT, PIPELINES
from agentworld.cluster.retry import ask_until
from agentworld.domains.base import domain_names
from agentworld.errors import (
    ClusterError,
    EnvironmentUnavailable,
    InputError,
    PipelineError,
    StoreError,
    UnknownPath,
)
from agentworld.recipes import load_recipe, recipe_path
from agentworld.recipes.environment import from_environment
from agentworld.runner.code import code_digest
from agentworld.runner.progress import ProgressFile, progress_path, read_progress
from agentworld.runner.remote import fetch, on_store
from agentworld.steps.run import folder_for
from agentworld.storage.receipts import RECEIPT, read_receipt
from agentworld.storage.working_copy import address_of
from agentworld_pipelines.job_parts import name_of
from agentworld_pipelines.job_reporter import JobReporter, Pods, ProgressReporter
from agentworld_pipelines.job_status import JobStatus, job_status
from agentworld_pipelines.output import write_line
from agentworld_pipelines.placement import Place
from agentworld_pipelines.settings import ClusterSettings, namespace_of
from agentworld_pipelines.step_job import pod_of_job, step_job
from agentworld_pipelines.train_job import pods_of, train_job

Finished = Callable[[], str | None]
"""The step's folder; null where the step is not finished, as far as can be seen."""

_Answer = TypeVar("_Answer")

_RETRY_HINT = "begin the step again, and it resumes from what is kept"


@on_store
def train_on_nodes(stage: str, recipe: str, store: str, *inputs: str, nodes: str) -> str:
    """The folder of a stage that several nodes trained, now or before.

    Raises InputError, PipelineError where the training failed, and ClusterError.
    """
    folder = folder_for(stage, recipe, store, *inputs)
    progress = ProgressFile(Path(store), stage)
    if (folder / RECEIPT).exists():
        progress.finish("reused", folder, read_receipt(folder).seconds)
        return str(folder)
    place = Place.model_validate_json(nodes)
    assert place.nodes is not None
    addresses = [address_of(address) for address in (recipe, store, *inputs)]
    built = train_job(stage, addresses, folder, place)
    pods = pods_of(built["metadata"]["name"])
    task = _Task(stage, Path(store), built, pods)
    return _done(
        task,
        from_environment(ClusterSettings),
        lambda: str(folder) if fetch(folder / RECEIPT).exists() else None,
    )


def run_in_job(step: str, arguments: Sequence[str], place: str, finished: Finished) -> str:
    """The folder of a step that a Job does in another pod than this one.

    The step itself tells here whether it is finished, for it then needs no live environment any
    more. Raises InputError, PipelineError where the step failed, and ClusterError.
    """
    recipe, home = arguments[0], Path(arguments[1])
    settings = from_environment(ClusterSettings)
    addresses = [address_of(argument) for argument in arguments]
    code = code_digest(step, tuple(domain_names()))  # of all domains: whose it runs, it says later
    name = name_of(step, [*addresses, load_recipe(recipe_path(recipe)).digest, code])
    step_place, profile = Place.model_validate_json(place), settings.seccomp_profile
    built = step_job(name, step, addresses, step_place, seccomp_profile=profile)
    write_line(f"this pod can have no sandbox for {step}; a Job of its own does it")
    # What was tried here said that it failed, and the Job may run already.
    ProgressFile(home, step).begin()
    return _done(_Task(step, home, built, pod_of_job(name)), settings, finished)


class _Task(NamedTuple):
    """What a job is to do."""

    step: str
    store: Path
    built: Object
    pods: Pods

    @property
    def name(self) -> str:
        return str(self.built["metadata"]["name"])

    @property
    def description(self) -> str:
        """The job, as a sentence has it."""
        return f"the {self.built['kind']} {self.name}"


def _done(task: _Task, settings: ClusterSettings, finished: Finished) -> str:
    """The step's folder, once its job has ended well."""
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


class Follower:
    """Makes one job be there, and sees it to its end."""

    def __init__(self, cluster: Cluster, built: Object, settings: ClusterSettings) -> None:
        self._cluster = cluster
        self._kind = built["kind"]
        self._name = built["metadata"]["name"]
        self._built = built
        self._settings = settings
        self._is_known = False
        """Whether the API server has answered for this kind."""

    def begin(self, on_create: Callable[[], None], finished: Finished) -> str | None:
        """The uid of the job that does the step, told before a new one is made; null where one
        has just done it.

        One that ended without the step's receipt, or that was built otherwise, is replaced.
        """
        awaited_uid = ""
        while True:
            job = self._ask(self._find)
            if job is None:
                created_job = self._ask(lambda: self._make(on_create))
                if created_job is not None:
                    write_line(f"{self._name} is made")
                    return str(created_job["metadata"]["uid"])
                continue  # somebody was faster
            uid = str(job["metadata"]["uid"])
            is_terminating = "deletionTimestamp" in job["metadata"]
            status = job_status(job)
            if not is_terminating and self._is_as_built(job) and not status.has_ended:
                write_line(f"{self._name} is there already")
                return uid
            if status.state == "complete" and finished():
                return None
            if awaited_uid != uid:
                write_line(
                    f"{self._name} is there and cannot be used again; waiting until it is gone"
                )
                awaited_uid = uid
            if not is_terminating:
                self._ask(partial(self._remove, uid))
            time.sleep(self._settings.look_seconds)

    def follow(self, uid: str, report: Callable[[Object], None]) -> JobStatus | None:
        """How it ended; null where it was taken away before that was seen."""
        while True:
            job = self._ask(self._find, granted=True)
            if job is None or job["metadata"]["uid"] != uid:
                return None
            report(job)
            status = job_status(job)
            if status.has_ended:
                return status
            time.sleep(self._settings.look_seconds)

    def _find(self) -> Object | None:
        return self._cluster.get(self._kind, self._name)

    def _make(self, on_create: Callable[[], None]) -> Object | None:
        on_create()
        try:
            return self._cluster.create(self._built)
        except ClusterError as error:
            if error.status == EXISTS:
                return None
            raise

    def _is_as_built(self, job: Object) -> bool:
        """By what was asked for, as the API server adds to it what it likes."""
        digest = job["metadata"].get("annotations", {}).get(BUILT)
        return bool(digest == self._built["metadata"]["annotations"][BUILT])

    def _remove(self, uid: str) -> None:
        """With its pods first: two jobs would write into one folder."""
        options = {"propagationPolicy": "Foreground", "preconditions": {"uid": uid}}
        try:
            self._cluster.delete(self._kind, self._name, options)
        except ClusterError as error:
            if error.status not in (NOT_FOUND, EXISTS):
                raise

    def _ask(self, ask: Callable[[], _Answer], *, granted: bool = False) -> _Answer:
        try:
            answer = ask_until(
                ask,
                until=time.monotonic() + self._settings.patience_seconds,
                every_seconds=self._settings.look_seconds,
                report=write_line,
                kind_is_known=self._is_known,
                granted=granted,
            )
        except UnknownPath as error:
            if self._kind != "TrainJob":
                raise
            raise ClusterError(
                f"this cluster knows no TrainJob ({error}); install Kubeflow's Trainer, or take "
                "the stage's `nodes` out of the placement",
                status=error.status,
            ) from error
        self._is_known = True
        return answer


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
    """A file that another node wrote is seen late on some file systems."""
    deadline = time.monotonic() + settings.settle_seconds
    while (folder := finished()) is None:
        if time.monotonic() > deadline:
            if is_removed:
                raise PipelineError(
                    f"{task.description} was taken away before it was complete; {_RETRY_HINT}",
                    retryable=True,
                )
            raise PipelineError(
                f"{task.description} is complete and {task.step} is not finished in {task.store}; "
                "see that its nodes mount the same store as the step"
            )
        time.sleep(min(1.0, settings.look_seconds))
    return folder
