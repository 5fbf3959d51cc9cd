"""Creates a TrainJob or Job once, and follows it to its end."""

import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from agentworld.cluster.api_resources import Object
from agentworld.cluster.client import EXISTS, NOT_FOUND, Cluster
from agentworld.cluster.names import BUILT, RESOURCES
from agentworld.cluster.retry import ask_until
from agentworld.errors import ClusterError, UnknownPath
from agentworld_pipelines.job_parts import resources_in, with_resources
from agentworld_pipelines.job_status import JobStatus, job_status
from agentworld_pipelines.output import write_line
from agentworld_pipelines.settings import ClusterSettings

Finished = Callable[[], str | None]
"""The step's folder; null if the step is not finished, as far as this pod can see."""

_FORBIDDEN, _INVALID = 403, 422

_Answer = TypeVar("_Answer")


class Follower:
    """Creates one job, and follows it to its end."""

    def __init__(self, cluster: Cluster, built: Object, settings: ClusterSettings) -> None:
        self._cluster = cluster
        self._kind = built["kind"]
        self._name = built["metadata"]["name"]
        self._built = built
        self._settings = settings
        self._is_known = False
        """Whether the API server has answered for this kind."""

    def begin(self, on_create: Callable[[], None], finished: Finished) -> str | None:
        """The uid of the step's job, which is created if necessary (`on_create` is called first);
        null if the step has just finished. A job that ended without the step's receipt, or that was
        built from another specification, is replaced.
        """
        awaited_uid = ""
        while True:
            job = self._ask(self._find)
            if job is None:
                created_job = self._ask(lambda: self._make(on_create))
                if created_job is not None:
                    write_line(f"{self._name} is made")
                    return str(created_job["metadata"]["uid"])
                continue  # another follower was faster
            uid = str(job["metadata"]["uid"])
            is_terminating = "deletionTimestamp" in job["metadata"]
            status = job_status(job)
            if not is_terminating and not status.has_ended and self._is_wanted(job):
                write_line(f"{self._name} is there already")
                return uid
            if status.state == "complete" and finished():
                return None
            if awaited_uid != uid:
                write_line(f"{self._name} exists and cannot be reused; waiting for its deletion")
                awaited_uid = uid
            if not is_terminating:
                self._ask(partial(self._remove, uid))
            time.sleep(self._settings.look_seconds)

    def follow(self, uid: str, report: Callable[[Object], None]) -> JobStatus | None:
        """The job's final state; null if it was deleted before that was seen."""
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

    def _is_wanted(self, job: Object) -> bool:
        """Compares the digests of the specifications, because the API server adds fields."""
        built_annotations = self._built["metadata"]["annotations"]
        annotations = job["metadata"].get("annotations", {})
        if annotations.get(BUILT) != built_annotations[BUILT]:
            return False
        if annotations.get(RESOURCES) == built_annotations.get(RESOURCES):
            return True
        return self._resize(job)

    def _resize(self, job: Object) -> bool:
        """Changes the resources of a suspended Job, which Kubernetes allows from 1.36 on; false if
        it does not, and the Job has to be replaced.
        """
        if not job["spec"].get("suspend"):
            return False
        resized = with_resources(job, resources_in(self._built))
        try:
            self._ask(lambda: self._cluster.replace(resized))
        except ClusterError as error:
            if error.status == EXISTS:  # another client, such as Kueue, changed it just now
                newest = self._ask(self._find)
                return newest is not None and self._is_wanted(newest)
            if error.status not in (_FORBIDDEN, _INVALID):
                raise
            return False
        write_line(f"{self._name} is suspended; it has its new resources")
        return True

    def _remove(self, uid: str) -> None:
        """Deletes the pods first, because two jobs must not write into one folder."""
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
                f"this cluster has no TrainJob ({error}); install Kubeflow's Trainer, or "
                "remove the stage's `nodes` from the placement",
                status=error.status,
            ) from error
        self._is_known = True
        return answer
