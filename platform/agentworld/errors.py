"""The vocabulary of failure, named by the boundary that failed.

    AgentworldError
    |-- InputError          the user gave us something wrong; a retry cannot help
    |   |-- NotFound             what was named is not there
    |   `-- Conflict             it is there, in a state that refuses this
    |-- SandboxError        the live environment
    |   |-- SandboxUnavailable   no sandbox can be had here; nothing may run
    |   `-- SandboxBroken        this session is over (timeout, flood, exit)
    |-- EngineError         the process that runs a model
    |-- JudgeError          no verdict; the sample is a hole, never a zero
    |-- SimulatorError      the simulator service refused or is gone
    `-- StoreError          a disk, a database, a registry

A message is one sentence: what, which value, what to do.
"""


class AgentworldError(Exception):
    """Any failure that this project names; `retryable` says whether a retry can help."""

    retryable = False


class InputError(AgentworldError):
    """The user gave us something wrong: a path, a key, a version, a record."""


class NotFound(InputError):
    """What was named is not there: a run, an episode."""


class Conflict(InputError):
    """It is there, in a state that refuses this: a closed run, a step out of turn."""


class SandboxError(AgentworldError):
    """The live environment failed."""


class SandboxUnavailable(SandboxError):
    """No sandbox can be had on this machine, so no command may run."""


class SandboxBroken(SandboxError):
    """This sandbox session is over: a limit was hit or its shell is gone."""

    retryable = True


class EngineError(AgentworldError):
    """The process that runs a model failed; there is no observation.

    `kind` is one of `engine` (gone, or not ready), `refused`, `context` (too long),
    `cut-off`, `unparsable`.
    """

    def __init__(self, message: str, *, kind: str = "engine", retryable: bool = True) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable


class JudgeError(AgentworldError):
    """A judge gave no verdict; the sample is a hole, never a zero."""

    retryable = True


class SimulatorError(AgentworldError):
    """The simulator service refused a call or cannot be reached."""

    def __init__(self, message: str, *, kind: str = "unavailable", retryable: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable


class StoreError(AgentworldError):
    """A disk, a database or a registry failed."""

    retryable = True
