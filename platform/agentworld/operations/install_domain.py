"""Installs the Debian packages that the environments of a domain need."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable

from agentworld.domains.base import domain_of
from agentworld.domains.live import LiveDomain, live_domain, live_domain_names
from agentworld.errors import EnvironmentUnavailable
from agentworld.records.base import Record

MOST_SECONDS = 300.0
"""The time limit of a whole installation."""


class Installation(Record):
    """The result of an installation."""

    domain: str
    installed: tuple[str, ...] = ()
    """The packages that this machine lacked."""
    unavailable: str = ""
    """Why no environment can be opened although the packages are installed; empty if one can."""


def install_domain(name: str, on_progress: Callable[[str], None]) -> Installation:
    """Installs the missing packages; a domain without environments needs none.

    `on_progress` is called with each step before it begins. Raises InputError for an unknown name,
    and EnvironmentUnavailable if packages cannot be installed here.
    """
    if domain_of(name).name not in live_domain_names():
        return Installation(domain=name)
    live = live_domain(name)
    missing = [program.package for program in live.programs if program.find() is None]
    packages = tuple(dict.fromkeys(missing))
    if packages:
        _install(packages, on_progress)
    return Installation(domain=name, installed=packages, unavailable=_obstacle(live))


def _obstacle(live: LiveDomain) -> str:
    try:
        live.check_available()
    except EnvironmentUnavailable as error:
        return str(error)
    return ""


def _install(packages: tuple[str, ...], on_progress: Callable[[str], None]) -> None:
    words = " ".join(packages)
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise EnvironmentUnavailable(
            f"{words} cannot be installed from here, for that takes root and apt-get; run `sudo"
            f" apt-get install {words}` (or your system's like), then this command again"
        )
    on_progress(f"installs {words}, in at most {MOST_SECONDS / 60:g} minutes")
    deadline = time.monotonic() + MOST_SECONDS
    for command in ("apt-get update", f"apt-get install -y --no-install-recommends {words}"):
        on_progress(f"runs {command}")
        _run(command, deadline)


def _run(command: str, deadline: float) -> None:
    try:
        done = subprocess.run(
            command.split(),
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=max(0.0, deadline - time.monotonic()),
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise EnvironmentUnavailable(
            f"`{command}` was ended, for an installation may take {MOST_SECONDS:g} s; run it"
            " yourself"
        ) from error
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        reason = lines[-1][:200] if lines else f"exit status {done.returncode}"
        raise EnvironmentUnavailable(f"`{command}` failed ({reason}); run it yourself to see all")
