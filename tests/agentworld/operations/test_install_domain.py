"""`domain install`, with a simulated apt-get."""

from pathlib import Path

import pytest

from agentworld.domains.programs import Program
from agentworld.errors import EnvironmentUnavailable, InputError
from agentworld.operations import install_domain as install_module
from agentworld.operations.install_domain import Installation, install_domain
from make.live_domains import ScriptedDomain, registered

TOOL, OTHER_TOOL = Program("world-tool", "world-tools"), Program("world-pipe", "world-tools")
INSTALL = (
    "printf '#!/bin/sh\\n' >$BIN/world-tool; cp $BIN/world-tool $BIN/world-pipe; chmod +x $BIN/*"
)


class Machine:
    """A Debian on which this process is root; `ran` has apt-get's arguments."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self._log = folder / "log"

    @property
    def ran(self) -> list[str]:
        return self._log.read_text().splitlines() if self._log.exists() else []

    def write_apt_get(self, install: str) -> None:
        """Writes an apt-get that runs this command to install."""
        script = self.bin / "apt-get"
        script.write_text(
            f'#!/bin/sh\nBIN={self.bin}\necho "$DEBIAN_FRONTEND $*" >>{self._log}\n'
            f'if [ "$1" = install ]; then {install}; fi\n'
        )
        script.chmod(0o755)


@pytest.fixture
def machine(tmp_path, monkeypatch) -> Machine:
    debian = Machine(tmp_path)
    debian.write_apt_get(INSTALL)
    monkeypatch.setenv("PATH", f"{debian.bin}:/usr/bin:/bin")
    monkeypatch.setattr(install_module.os, "geteuid", lambda: 0)
    registered(monkeypatch, "text", ScriptedDomain(programs=(TOOL, OTHER_TOOL)))
    return debian


def test_missing_packages_are_announced_and_installed_once(machine):
    announcements: list[tuple[str, int]] = []
    result = install_domain("text", lambda step: announcements.append((step, len(machine.ran))))
    assert (result.installed, result.unavailable) == (("world-tools",), "")
    update, install = "apt-get update", "apt-get install -y --no-install-recommends world-tools"
    assert announcements == [
        ("installs world-tools, in at most 5 minutes", 0),
        (f"runs {update}", 0),
        (f"runs {install}", 1),
    ]
    assert machine.ran == [
        f"noninteractive {c.removeprefix('apt-get ')}" for c in (update, install)
    ]
    assert install_domain("text", pytest.fail).installed == ()


def test_a_user_other_than_root_gets_the_install_command(machine, monkeypatch):
    monkeypatch.setattr(install_module.os, "geteuid", lambda: 1000)
    with pytest.raises(EnvironmentUnavailable, match="run `sudo apt-get install world-tools` "):
        install_domain("text", print)
    assert machine.ran == []


@pytest.mark.usefixtures("machine")
def test_a_system_without_apt_get_gets_the_install_command(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EnvironmentUnavailable, match="takes root and apt-get; run `sudo"):
        install_domain("text", print)


def test_a_failed_installation_raises_with_its_last_output(machine):
    machine.write_apt_get("echo 'E: no such package' >&2; exit 100")
    with pytest.raises(EnvironmentUnavailable, match=r"world-tools` failed \(E: no such package\)"):
        install_domain("text", print)


def test_an_installation_is_stopped_at_its_time_limit(machine, monkeypatch):
    machine.write_apt_get("exec sleep 600")
    monkeypatch.setattr(install_module, "MOST_SECONDS", 0.2)
    with pytest.raises(EnvironmentUnavailable, match="was ended, for an installation may take 0.2"):
        install_domain("text", print)


def test_a_problem_that_packages_cannot_fix_is_reported_after_the_installation(
    machine, monkeypatch
):
    def refuse() -> None:
        raise EnvironmentUnavailable("no sandbox: allow unprivileged user namespaces")

    domain = ScriptedDomain(programs=(TOOL,))
    monkeypatch.setattr(domain, "check_available", refuse)
    registered(monkeypatch, "text", domain)
    result = install_domain("text", print)
    assert result.installed == ("world-tools",)
    assert result.unavailable == "no sandbox: allow unprivileged user namespaces"
    assert len(machine.ran) == 2


def test_a_domain_of_recorded_logs_installs_nothing(machine):
    assert install_domain("screen", print) == Installation(domain="screen")
    assert machine.ran == []


def test_an_unknown_domain_is_refused():
    with pytest.raises(InputError, match="there is no domain 'nowhere'"):
        install_domain("nowhere", print)
