"""Live terminals; each episode's shell runs in its own sandbox."""

from contextlib import AbstractAsyncContextManager, aclosing

from agentworld.domains.live import Environment, LiveDomain, LiveSettings
from agentworld.domains.live_defaults import BaseLiveDomain
from agentworld.domains.programs import PYTHON, Program
from agentworld.domains.sandbox import SANDBOX_PROGRAMS
from agentworld.domains.terminal.environment import TerminalEnvironment
from agentworld.domains.terminal.explorers import new_explorer
from agentworld.domains.terminal.process import SandboxedTerminal
from agentworld.domains.terminal.tasks import NAME, TerminalTask, solved_task


class LiveTerminals(BaseLiveDomain[TerminalTask]):
    """See `LiveDomain`."""

    programs = (
        *SANDBOX_PROGRAMS,
        PYTHON,
        Program("less", "less", path="/usr/bin:/bin"),
        Program("vi", "vim-tiny", path="/usr/bin:/bin"),
    )
    """The programs of the sandbox, and those that explorers and tasks use."""

    def open(self, settings: LiveSettings) -> AbstractAsyncContextManager[Environment]:
        """An environment whose sandbox starts with the first episode."""
        settings.check_no_options(NAME)
        return aclosing(
            TerminalEnvironment(SandboxedTerminal, domain=NAME, seconds=settings.step_seconds)
        )


DOMAIN: LiveDomain = LiveTerminals(solved_task, new_explorer)
