"""The control image: small, without privileges, and a command for another image names what is
missing.

The image of steps has the programs of live environments. The next build removes leftovers of a
killed one.
"""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from machines import images
from waiting import wait_for

pytestmark = pytest.mark.waits

MIB = 1 << 20
LIBRARIES = ("torch", "transformers", "mlflow", "hatchling", "fastapi")
# Tells which of them are there, as the last one has to be, and what tells of the build's place.
PROBE = f"""
import glob, importlib.util, json
there = [name for name in {LIBRARIES} if importlib.util.find_spec(name)]
print(json.dumps([there, glob.glob("/etc/pip*") + glob.glob("/etc/apt/sources.list*")]))
"""


@pytest.fixture(scope="module")
def control() -> images.Image:
    return images.built("control")


def run(image: images.Image, *words: str, entrypoint: str = "") -> subprocess.CompletedProcess[str]:
    """Runs it with a read-only root file system, and without a network."""
    command = [
        *(*images.PODMAN, "run", "--rm", "--read-only", "--network=none", "--runtime=runc"),
        *("--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096"),
        *((f"--entrypoint={entrypoint}",) if entrypoint else ()),
        *(image.name, *words),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


# Tells which programs of live environments are missing.
MISSING = """
import json
from agentworld.domains.live import live_domain, live_domain_names
programs = {program for name in live_domain_names() for program in live_domain(name).programs}
print(json.dumps(sorted(program.name for program in programs if not program.find())))
"""


def test_the_control_image_runs_as_the_unprivileged_user_65532(control):
    assert control.inspect()["Config"]["User"] == "65532:65532"


def test_the_control_image_is_small_without_training_packages_or_build_settings(control):
    assert control.inspect()["Size"] < 500 * MIB
    assert json.loads(run(control, "-c", PROBE, entrypoint="python").stdout) == [["fastapi"], []]


def test_the_control_images_command_line_runs_and_names_a_missing_extra(control):
    done = run(control, "run", "open", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: agentworld" in done.stdout
    done = run(control, "demo")
    assert done.returncode == 2
    lacking = re.fullmatch(
        r"error: (\w+) is not installed here; install agentworld\[train\]\n", done.stderr
    )
    assert lacking, done.stderr
    assert lacking[1] in {"psutil", "pyarrow"}


def test_the_image_of_steps_has_every_program_of_the_live_environments():
    done = run(images.built("train"), "-c", MISSING, entrypoint="python")
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


BUSYBOX = Path("/bin/busybox").resolve()
ENDLESS = f'FROM scratch\nCOPY {BUSYBOX.name} /busybox\nRUN ["/busybox", "sleep", "100"]\n'
BUILD = """
import sys
from pathlib import Path
from machines import images
images.FOLDER, images.PODMAN = Path(sys.argv[3]), sys.argv[4:]
images._of_lines("endless", sys.argv[1], Path(sys.argv[2]))
"""


@pytest.fixture
def store(tmp_path, monkeypatch) -> Iterator[Path]:
    """An empty store of images."""
    monkeypatch.setattr(images, "FOLDER", tmp_path)
    monkeypatch.setattr(images, "_BLOBS", tmp_path / "blobs")
    with TemporaryDirectory(dir="/run") as run:  # podman takes 50 characters at most
        folders = f"--root={tmp_path / 'podman'}", f"--runroot={run}"
        monkeypatch.setattr(images, "PODMAN", ("podman", *folders))
        yield tmp_path


def is_free(lock: Path) -> bool:
    with lock.open("w") as file, suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def test_a_build_removes_leftovers_of_killed_builds_and_keeps_running_builds(store):
    command = [sys.executable, "-c", BUILD, ENDLESS, str(BUSYBOX), str(store), *images.PODMAN]
    environment = os.environ | {"PYTHONPATH": str(images.ROOT / "tests")}
    building = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        wait_for(images.external_containers)
        building.kill()  # its podman goes on
        building.wait()
        pause = images.pause()
        assert images.external_containers()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(building.pid, signal.SIGKILL)
    wait_for(lambda: is_free(store / ".builds"))
    shutil.rmtree(pause.layout)
    images.pause()
    assert images.external_containers() == []
    assert str(store) not in Path("/proc/mounts").read_text()
