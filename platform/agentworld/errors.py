"""The errors of this project, named by the part that failed.

    AgentworldError
    |-- InputError          invalid input of the user; a retry cannot help
    |   |-- NotFound             the named thing does not exist
    |   |-- InvalidFile          a file that a person wrote has invalid values
    |   `-- Conflict             the thing's state does not allow the request
    |-- AccessError         the caller is not allowed to do this, or not now
    |-- EnvironmentFailure  a live environment failed
    |   |-- EnvironmentUnavailable  this machine cannot open one
    |   `-- EnvironmentBroken       the episode's environment failed (timeout, flood, exit)
    |-- EngineError         a model server failed
    |-- JudgeError          no verdict; the sample is a hole, never a zero
    |-- SimulatorError      the simulator service refused a request or cannot be reached
    |-- EvidenceError       a record does not verify
    |-- ClusterError        the Kubernetes API refused a request or cannot be reached
    |   `-- UnknownPath     the Kubernetes API does not know a kind, or not yet
    |-- PipelineError       Kubeflow Pipelines failed, cannot be reached, or a run of it failed
    |-- Preempted           this process, or one that it trains with, was ended; rerun it to resume
    `-- StoreError          a disk, a database or a registry failed

A message is one sentence: the problem, the value, and what to do.
"""

from collections.abc import Sequence
from typing import Literal

EngineFailure = Literal[
    "engine",
    "starting",
    "slow",
    "open",
    "capacity",
    "refused",
    "context",
    "cut-off",
    "unparsable",
    "unsure",
]
"""The kinds of an engine's failures:

    engine      it cannot be reached, is not ready, or its response is invalid
    starting    it has no replica yet, and one may start
    slow        it did not answer before the timeout
    open        it failed repeatedly, so its circuit breaker is open
    capacity    it, or the queue before it, accepts no more requests for now
    refused     it refused the request, or is not the pinned engine
    context     the messages do not fit into its context
    cut-off     the model's answer was truncated
    unparsable  the model's answer has no observation
    unsure      the confidence of the model's answer is too low
"""


class AgentworldError(Exception):
    """Any failure that this project names; `retryable` says whether a retry can help."""

    retryable = False


class InputError(AgentworldError):
    """The user gave an invalid path, key, version or record."""


class NotFound(InputError):
    """The named thing does not exist: a run, an episode."""


class InvalidFile(InputError):
    """A file that a person wrote has invalid values; `problems` has a sentence for each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class Conflict(InputError):
    """The thing's state does not allow the request: a closed run, a step out of order."""


AccessFailure = Literal["unauthorised", "forbidden", "limit", "unavailable"]
"""Why a caller is refused:

    unauthorised  the credential is missing or unknown
    forbidden     the caller lacks the role for this, or the tenant may not use the simulator
    limit         the tenant has reached a limit
    unavailable   the cluster that verifies the credential does not answer
"""


class AccessError(AgentworldError):
    """The caller is not allowed to do this, or not now."""

    def __init__(
        self,
        message: str,
        *,
        kind: AccessFailure = "unauthorised",
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retry_after_seconds is not None or kind == "unavailable"
        self.retry_after_seconds = retry_after_seconds


class EnvironmentFailure(AgentworldError):
    """A live environment failed."""


class EnvironmentUnavailable(EnvironmentFailure):
    """This machine cannot open a live environment: it has no sandbox, so no command may run."""


class EnvironmentBroken(EnvironmentFailure):
    """The episode is over without an observation: a limit was hit, or its process is gone."""

    retryable = True


class EngineError(AgentworldError):
    """A model server failed; there is no observation.

    `retry_after_seconds` is the delay before a retry, if known; `queued_seconds` how long the
    request waited in the queue; `num_prompt_tokens` the length of its prompt, if known; `is_down`
    is true if one of our engines refuses connections.
    """

    queued_seconds = 0.0
    num_prompt_tokens = 0
    is_down = False

    def __init__(
        self,
        message: str,
        *,
        kind: EngineFailure = "engine",
        retryable: bool = True,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable
        self.retry_after_seconds = retry_after_seconds


class JudgeError(AgentworldError):
    """A judge gave no verdict; the sample is a hole, never a zero."""

    retryable = True


class SimulatorError(AgentworldError):
    """The simulator service refused a call or cannot be reached."""

    def __init__(
        self,
        message: str,
        *,
        kind: str = "unavailable",
        retryable: bool = False,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable
        self.retry_after_seconds = retry_after_seconds


class EvidenceError(AgentworldError):
    """A record does not verify: it is unsigned, was changed, or is signed by an unknown key."""


class ClusterError(AgentworldError):
    """The Kubernetes API refused a request or cannot be reached; `status` is HTTP's, or 0."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.retryable = status in (0, 409, 429) or status >= 500


class UnknownPath(ClusterError):
    """The Kubernetes API has no such path: the kind is not installed, or not loaded yet."""

    def __init__(self, message: str) -> None:
        super().__init__(message, status=404)


class PipelineError(AgentworldError):
    """The Kubeflow Pipelines server failed or cannot be reached, or a run of it failed."""

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class Preempted(AgentworldError):
    """A signal ended this process, or one that it trains with; its finished work is kept."""

    retryable = True


class StoreError(AgentworldError):
    """A disk, a database or a registry failed."""

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        super().__init__(message)
        self.retryable = retryable
