"""The control image: small, without rights, and a command for another image says what it lacks."""

import json
import re
import subprocess

import pytest

from machines import images

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
    """With a root file system that is read-only, and without a network."""
    command = [
        *(*images.PODMAN, "run", "--rm", "--read-only", "--network=none", "--runtime=runc"),
        *("--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096"),
        *((f"--entrypoint={entrypoint}",) if entrypoint else ()),
        *(image.name, *words),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_its_user_has_a_number_and_no_rights(control):
    assert control.inspect()["Config"]["User"] == "65532:65532"


def test_it_is_small_and_has_nothing_that_trains_or_builds_or_tells_where_it_was_built(control):
    assert control.inspect()["Size"] < 500 * MIB
    assert json.loads(run(control, "-c", PROBE, entrypoint="python").stdout) == [["fastapi"], []]


def test_its_command_line_answers_and_says_what_a_command_for_another_image_lacks(control):
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
