"""The control image is small and unprivileged, and its error for a command of another image names
the missing extra.

The image of steps has the programs of live environments. A build removes the leftovers of killed
builds.
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
# Prints the libraries of the image, of which only the last is expected, and the build's settings.
PROBE = f"""
import glob, importlib.util, json
there = [name for name in {LIBRARIES} if importlib.util.find_spec(name)]
print(json.dumps([there, glob.glob("/etc/pip*") + glob.glob("/etc/apt/sources.list*")]))
"""


@pytest.fixture(scope="module")
def control() -> images.Image:
    return images.built("control")


def run(image: images.Image, *words: str, entrypoint: str = "") -> subprocess.CompletedProcess[str]:
    """Runs an image with a read-only root file system, and without a network."""
    command = [
        *(*images.PODMAN, "run", "--rm", "--read-only", "--network=none", "--runtime=runc"),
        *("--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096"),
        *((f"--entrypoint={entrypoint}",) if entrypoint else ()),
        *(image.name, *words),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


# Prints the missing programs of live environments.
MISSING_PROGRAMS = """
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
    result = run(control, "run", "open", "--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert "Usage: agentworld" in result.stdout
    result = run(control, "demo")
    assert result.returncode == 2
    match = re.fullmatch(
        r"error: (\w+) is not installed here; install agentworld\[train\]\n", result.stderr
    )
    assert match, result.stderr
    assert match[1] in {"psutil", "pyarrow"}


def test_the_image_of_steps_has_every_program_of_the_live_environments():
    result = run(images.built("train"), "-c", MISSING_PROGRAMS, entrypoint="python")
    assert (result.stdout, result.returncode) == ("[]\n", 0), result.stderr


BUSYBOX = Path("/bin/busybox").resolve()
DOCKERFILE = f'FROM scratch\nCOPY {BUSYBOX.name} /busybox\nRUN ["/busybox", "sleep", "100"]\n'
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
    with TemporaryDirectory(dir="/run") as run_folder:  # podman takes 50 characters at most
        folders = f"--root={tmp_path / 'podman'}", f"--runroot={run_folder}"
        monkeypatch.setattr(images, "PODMAN", ("podman", *folders))
        yield tmp_path


def is_free(lock: Path) -> bool:
    with lock.open("w") as file, suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def test_a_build_removes_leftovers_of_killed_builds_and_keeps_running_builds(store):
    command = [sys.executable, "-c", BUILD, DOCKERFILE, str(BUSYBOX), str(store), *images.PODMAN]
    environment = os.environ | {"PYTHONPATH": str(images.ROOT / "tests")}
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        wait_for(images.external_containers)
        process.kill()  # its podman continues
        process.wait()
        pause_image = images.pause()
        assert images.external_containers()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    wait_for(lambda: is_free(store / ".builds"))
    shutil.rmtree(pause_image.layout)
    images.pause()
    assert images.external_containers() == []
    assert str(store) not in Path("/proc/mounts").read_text()
