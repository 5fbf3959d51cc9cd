"""The vocabulary of failure, named by the boundary that failed.

    AgentworldError
    |-- InputError          the user gave us something wrong; a retry cannot help
    |   |-- NotFound             what was named is not there
    |   |-- InvalidFile          a file that a person wrote has wrong values
    |   `-- Conflict             it is there, in a state that refuses this
    |-- AccessError         the caller may not, or not now
    |-- EnvironmentFailure  a live environment
    |   |-- EnvironmentUnavailable  none can be opened on this machine
    |   `-- EnvironmentBroken       this episode has none any more (timeout, flood, exit)
    |-- EngineError         the process that runs a model
    |-- JudgeError          no verdict; the sample is a hole, never a zero
    |-- SimulatorError      the simulator service refused or is gone
    |-- EvidenceError       a record that does not verify
    |-- ClusterError        the Kubernetes API refused or is gone
    |   `-- UnknownPath     the Kubernetes API does not know a kind, or not yet
    |-- PipelineError       the Kubeflow Pipelines server failed or is gone, or a run of it failed
    |-- Preempted           this process, or one that it trains with, ended; begun again, it goes on
    `-- StoreError          a disk, a database, a registry

A message is one sentence: what, which value, what to do.
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
"""How an engine fails:

    engine      it is gone, not ready, or answers with what is no answer
    starting    no replica of it is there yet, and one may start
    slow        it gave no answer within its time
    open        it failed so often that it is not asked for a while
    capacity    it, or the queue before it, takes no more requests for now
    refused     it does not take this request, or is not the one that was asked for
    context     the messages do not fit into its context
    cut-off     its model did not come to an end
    unparsable  its model said nothing that can be used
    unsure      its model said something, and not surely enough
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
    """The thing exists, but its state does not allow the request: a closed run, a step out of
    order.
    """


AccessFailure = Literal["unauthorised", "forbidden", "limit", "unavailable"]
"""How a caller is turned away:

    unauthorised  the credential is missing or unknown
    forbidden     the caller lacks the role for this, or the tenant may not use the simulator
    limit         the tenant has reached a limit
    unavailable   the cluster that knows the credential does not answer
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
    """A record that does not verify: unsigned, changed after signing, or signed by an unknown
    key.
    """


class ClusterError(AgentworldError):
    """The Kubernetes API refused a request or cannot be reached; `status` is the HTTP status,
    or 0.
    """

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
    """This process, or one that it trains with, was told to end; its finished work is kept."""

    retryable = True


class StoreError(AgentworldError):
    """A disk, a database or a registry failed."""

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        super().__init__(message)
        self.retryable = retryable
