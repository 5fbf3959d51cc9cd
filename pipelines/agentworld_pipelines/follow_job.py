"""A stage of several nodes, from the step's own pod: its TrainJob is made or found, and followed.

The follower may end at any time, and the TrainJob goes on without it; the same step begun again
finds it by its name. So nothing here owns the TrainJob, and nobody but a person ends one that runs.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from agentworld import errors
from agentworld.audit.receipts import RECEIPT, read_receipt
from agentworld.errors import ClusterError, InputError, PipelineError
from agentworld.recipes.environment import from_environment
from agentworld.steps.progress import ProgressFile, read_progress
from agentworld.steps.stage import stage_folder
from agentworld_pipelines.api_server import (
    EXISTS,
    NOT_FOUND,
    ApiServer,
    Object,
    configuration,
    patiently,
)
from agentworld_pipelines.job_status import JobStatus, job_status
from agentworld_pipelines.placement import Place
from agentworld_pipelines.settings import ClusterSettings, namespace_of
from agentworld_pipelines.tell_job import Meter, Teller, say
from agentworld_pipelines.train_job import BUILT, GROUP, rank_0_in, train_job

_Answer = TypeVar("_Answer")


def followed(stage: str, recipe: str, store: str, *inputs: str, nodes: str) -> str:
    """The folder of a stage that several nodes trained, now or before.

    Raises InputError, PipelineError where the training failed, and ClusterError.
    """
    folder = stage_folder(stage, recipe, store, *inputs)
    progress = ProgressFile(Path(store), stage)
    if (folder / RECEIPT).exists():
        progress.finish("reused", folder, read_receipt(folder).seconds)
        return str(folder)
    place = Place.model_validate_json(nodes)
    assert place.nodes is not None
    settings = from_environment(ClusterSettings)
    server, namespace = ApiServer(configuration(settings.kubeconfig)), namespace_of(settings)
    built = train_job(stage, [recipe, store, *inputs], folder, place)
    teller = Teller(server, namespace, built["metadata"]["name"], rank_0_in(place.nodes))
    meter = Meter(Path(store), stage, settings.tell_seconds)
    follower = Follower(server, namespace, built, settings)
    uid = follower.begin(progress.begin)

    def tell(job: Object) -> None:
        teller.tell(job)
        meter.tell(job)

    status = follower.follow(uid, tell)
    if status is not None and status.state == "failed":
        raise _failure(built["metadata"]["name"], status, teller.trouble, Path(store), stage)
    _wait_for_receipt(folder, built["metadata"]["name"], gone=status is None, settings=settings)
    return str(folder)


class Follower:
    """Makes one TrainJob be there, and sees it to its end."""

    def __init__(
        self, server: ApiServer, namespace: str, built: Object, settings: ClusterSettings
    ) -> None:
        self._server = server
        self._all = f"/apis/{GROUP}/v1alpha1/namespaces/{namespace}/trainjobs"
        self._name = built["metadata"]["name"]
        self._path = f"{self._all}/{self._name}"
        self._built = built
        self._settings = settings

    def begin(self, beginning: Callable[[], None]) -> str:
        """The uid of the TrainJob that trains the stage; told before a new one is made.

        One that ended without the stage's receipt, or that was built otherwise, is replaced.
        """
        removing = ""
        while True:
            found = self._ask(lambda: self._server.find(self._path))
            if found is None:
                made = self._ask(lambda: self._make(beginning))
                if made is not None:
                    say(f"{self._name} is made")
                    return str(made["metadata"]["uid"])
                continue  # somebody was faster
            uid = str(found["metadata"]["uid"])
            going = "deletionTimestamp" in found["metadata"]
            if not going and self._is_as_built(found) and not job_status(found).has_ended:
                say(f"{self._name} is there already")
                return uid
            if removing != uid:
                say(f"{self._name} is there and cannot be used again; waiting until it is gone")
                removing = uid
            if not going:
                self._ask(partial(self._remove, uid))
            time.sleep(self._settings.look_seconds)

    def follow(self, uid: str, tell: Callable[[Object], None]) -> JobStatus | None:
        """How it ended; null where it was taken away before that was seen."""
        while True:
            job = self._ask(lambda: self._server.find(self._path), granted=True)
            if job is None or job["metadata"]["uid"] != uid:
                return None
            tell(job)
            status = job_status(job)
            if status.has_ended:
                return status
            time.sleep(self._settings.look_seconds)

    def _make(self, beginning: Callable[[], None]) -> Object | None:
        beginning()
        try:
            return self._server.call("POST", self._all, body=self._built)
        except ClusterError as error:
            if error.status == EXISTS:
                return None
            if error.status == NOT_FOUND:
                raise ClusterError(
                    f"this cluster or namespace knows no TrainJob ({error}); install Kubeflow's "
                    "Trainer, or take the stage's `nodes` out of the placement",
                    status=NOT_FOUND,
                ) from error
            raise

    def _is_as_built(self, job: Object) -> bool:
        """By what was asked for, as the API server adds to it what it likes."""
        told = job["metadata"].get("annotations", {}).get(BUILT)
        return bool(told == self._built["metadata"]["annotations"][BUILT])

    def _remove(self, uid: str) -> None:
        """With its pods first: two TrainJobs would train in one folder."""
        how = {"propagationPolicy": "Foreground", "preconditions": {"uid": uid}}
        try:
            self._server.call("DELETE", self._path, body=how)
        except ClusterError as error:
            if error.status not in (NOT_FOUND, EXISTS):
                raise

    def _ask(self, ask: Callable[[], _Answer], *, granted: bool = False) -> _Answer:
        return patiently(
            ask,
            until=time.monotonic() + self._settings.patience_seconds,
            every_seconds=self._settings.look_seconds,
            tell=say,
            granted=granted,
        )


def _failure(name: str, status: JobStatus, trouble: str, store: Path, stage: str) -> PipelineError:
    told = read_progress(store, stage)
    kind = getattr(errors, told.failure, Exception) if told else Exception
    helps = not issubclass(kind, InputError)
    words = [
        f"the TrainJob {name} failed ({status.why})",
        trouble,
        f"{stage} says: {told.sentence}" if told and told.sentence else "",
        "begin the step again, and it resumes from its newest checkpoint"
        if helps
        else "no retry helps before that is put right",
    ]
    return PipelineError("; ".join(word for word in words if word), retryable=helps)


def _wait_for_receipt(folder: Path, name: str, *, gone: bool, settings: ClusterSettings) -> None:
    """A file that another node wrote is seen late on some file systems."""
    deadline = time.monotonic() + settings.settle_seconds
    while not (folder / RECEIPT).exists():
        if time.monotonic() > deadline:
            if gone:
                raise PipelineError(
                    f"the TrainJob {name} was taken away before it was complete; "
                    "begin the step again, and it resumes from its newest checkpoint",
                    retryable=True,
                )
            raise PipelineError(
                f"the TrainJob {name} is complete and {folder} has no {RECEIPT}; "
                "see that its nodes mount the same store as the step"
            )
        time.sleep(min(1.0, settings.look_seconds))
