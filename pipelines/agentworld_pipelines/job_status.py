"""Reads the status of a TrainJob or a Job and its pods."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from agentworld.cluster.api_resources import Object

State = Literal["running", "waiting", "complete", "failed"]
_STATES: tuple[tuple[str, State], ...] = (
    ("Complete", "complete"),
    ("Failed", "failed"),
    ("Suspended", "waiting"),
)
_ORDINARY = ("ContainerCreating", "PodInitializing")


class JobStatus(NamedTuple):
    """The state, and its reason if there is one."""

    state: State
    reason: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether the state is final."""
        return self.state in ("complete", "failed")


def job_status(job: Object) -> JobStatus:
    """From its conditions; a job without conditions is running."""
    conditions = {
        condition["type"]: condition for condition in job.get("status", {}).get("conditions", ())
    }
    for kind, state in _STATES:
        condition = conditions.get(kind, {})
        if condition.get("status") == "True":
            parts = [condition.get("reason", ""), condition.get("message", "")]
            return JobStatus(state, ": ".join(part for part in parts if part))
    return JobStatus("running")


def progress_of(job: Object) -> str:
    """The progress that a Trainer observed; empty if it does not observe any."""
    trainer_status = job.get("status", {}).get("trainerStatus", {})
    done, remaining_seconds = (
        trainer_status.get("progressPercentage"),
        trainer_status.get("estimatedRemainingSeconds"),
    )
    parts = [f"{done} %"] if done is not None else []
    if remaining_seconds is not None:
        parts.append(f"{duration_text(remaining_seconds)} left")
    return ", ".join(parts)


def duration_text(seconds: float) -> str:
    """An approximate duration."""
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{round(seconds)} s"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours else f"{minutes} min"


def first_problem(pods: Sequence[Object]) -> str:
    """The first problem that kept a pod from running or ended it; empty if there is none.

    If one process of many fails, all others are ended soon after it, each with its own reason.
    """
    problems = sorted(problem for pod in pods for problem in _problems(pod))
    return problems[0][1] if problems else ""


def refusal_of_pods(events: Sequence[Object], job: Object) -> str:
    """Why a job has no pods, from the newest of these events about it; empty without a reason.

    A TrainJob's pods are created for objects whose names begin with its own.
    """
    name, creation_time = job["metadata"]["name"], job["metadata"]["creationTimestamp"]
    messages = [
        (str(event.get("lastTimestamp") or ""), str(event.get("message") or ""))
        for event in events
        if str(event["involvedObject"].get("name")).startswith(name)
    ]
    newest, message = max(messages, default=("", ""))
    return f"{name} can make no pod: {message}" if newest >= creation_time else ""


def _problems(pod: Object) -> Iterator[tuple[str, str]]:
    """The times and texts of a pod's problems."""
    name, status = pod["metadata"]["name"], pod.get("status", {})
    if status.get("reason"):  # such as Evicted
        yield "", f"{name}: {status['reason']}{_message_suffix(status)}"
    for container in status.get("containerStatuses", ()):
        for state in (container.get("state", {}), container.get("lastState", {})):
            ended, waiting = state.get("terminated", {}), state.get("waiting", {})
            if ended.get("exitCode"):
                cause = f"{ended.get('reason', 'Error')}, exit code {ended['exitCode']}"
                yield ended.get("finishedAt") or "~", f"{name}: {cause}{_message_suffix(ended)}"
            if waiting.get("reason", _ORDINARY[0]) not in _ORDINARY:
                yield "~", f"{name}: {waiting['reason']}{_message_suffix(waiting)}"
    for condition in status.get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            yield (
                "~",
                f"{name}: {condition.get('reason', 'not scheduled')}{_message_suffix(condition)}",
            )


def _message_suffix(state: Object) -> str:
    return f" ({state['message'].strip()})" if state.get("message") else ""
