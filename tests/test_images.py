"""The control image: small, without rights, and what it cannot do it says in a sentence."""

import subprocess

import pytest

import images

pytestmark = pytest.mark.slow

MIB = 1 << 20


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


def test_it_is_small(control):
    assert control.inspect()["Size"] < 500 * MIB


def test_its_user_has_a_number_and_no_rights(control):
    assert control.inspect()["Config"]["User"] == "65532:65532"
    assert (
        run(control, "-c", "import os; print(os.getuid())", entrypoint="python").stdout == "65532\n"
    )


@pytest.mark.parametrize("library", ["torch", "transformers", "mlflow", "hatchling"])
def test_it_lacks_what_trains_and_what_builds(control, library):
    done = run(control, "-c", f"import {library}", entrypoint="python")
    assert f"No module named '{library}'" in done.stderr


def test_it_says_nothing_of_where_it_was_built(control):
    left = "import glob; print(glob.glob('/etc/pip*') + glob.glob('/etc/apt/sources.list*'))"
    assert run(control, "-c", left, entrypoint="python").stdout == "[]\n"


@pytest.mark.parametrize(
    "words", [["--help"], ["simulator", "--help"], ["audit", "--help"], ["run", "open", "--help"]]
)
def test_its_command_line_answers(control, words):
    done = run(control, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: agentworld" in done.stdout


def test_the_service_says_what_its_environment_lacks(control):
    done = run(control, "-m", "agentworld.simulate.main", entrypoint="python")
    assert done.returncode == 2
    assert done.stderr == "error: the environment is wrong at ledger_url: Field required\n"


@pytest.mark.parametrize(
    ("words", "library"),
    [
        (["demo"], "psutil"),
        (["train", "cpt", "--data", "/tmp"], "psutil"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_command_for_another_image_says_what_is_not_installed(control, words, library):
    done = run(control, *words)
    assert done.returncode == 2
    assert done.stderr == f"error: {library} is not installed here; install agentworld[train]\n"
