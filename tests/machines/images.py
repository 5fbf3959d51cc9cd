"""The project's images, built on demand and cached by a hash of their sources.

The base image is this machine's own Debian, without a registry. Podman's store is separate, so that
none of the machine's settings are used or changed.
"""

import ast
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from platform import freedesktop_os_release
from tempfile import NamedTemporaryFile
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "agentworld/images"
_BASE_PACKAGES = "python3,python3-venv"
_PACKAGES_OF = {
    "control": _BASE_PACKAGES,
    "train": f"{_BASE_PACKAGES},bubblewrap,less,vim-tiny,g++,python3-dev",
    "engine-cpu": f"{_BASE_PACKAGES},libnuma1",
}
_PACKAGES = (
    *("Dockerfile", ".dockerignore", "tools/install_pinned.py"),
    *(f"tools/constraints/{name}.txt" for name in ("product", "test", "vllm")),
)
_OURS = (
    *("pyproject.toml", "tools/requirements.py", "LICENSE", "README.md"),
    *("platform/**/*", "operators/**/*", "pipelines/**/*"),
)
_MADE_OF = {
    "control": (*_PACKAGES, *_OURS),
    "train": (*_PACKAGES, *_OURS),
    "engine-cpu": _PACKAGES,
}
_KEPT = 2
_BLOBS = FOLDER / "blobs"
"""The blobs of the images' layouts by digest: most layers are shared."""
PODMAN = ("podman", f"--root={FOLDER / 'podman'}", "--runroot=/run/agentworld-podman")


class Image(NamedTuple):
    """An image in podman's store and as an OCI layout, under a name of its own."""

    name: str
    """The image's name with its tag."""
    layout: Path

    @property
    def digest(self) -> str:
        """The digest of its manifest."""
        index = json.loads((self.layout / "index.json").read_text())
        return str(index["manifests"][0]["digest"])

    @property
    def pinned_name(self) -> str:
        """Its name with the digest, as a cluster refers to images."""
        return f"{self.name.rpartition(':')[0]}@{self.digest}"

    def blobs(self) -> list[Path]:
        """The files of its manifest, its configuration and its layers."""
        manifest = json.loads(_blob(self.digest).read_text())
        parts = [manifest["config"], *manifest["layers"]]
        return [_blob(digest) for digest in (self.digest, *(part["digest"] for part in parts))]

    def inspect(self) -> dict:
        """Podman's metadata."""
        (image,) = json.loads(podman("image", "inspect", self.name))
        return image


def built(target: str) -> Image:
    """A target of the Dockerfile; does nothing if it was built from the same files."""
    base = _base(target, _PACKAGES_OF[target])
    digest = hashlib.sha256(base.encode())
    for path in _made_of(target):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    name = f"localhost/agentworld/{target}:{digest.hexdigest()[:16]}"
    with _kept(name) as layout:
        if layout:
            _build(target, name, base)
            _save(name, layout)
    return Image(name, _layout(name))


def postgres() -> Image:
    """Debian's PostgreSQL with the parts of the official image that the chart uses."""
    base, entry = _base("postgres", "postgresql"), Path(__file__).with_name("postgres.sh")
    lines = (
        f"FROM {base}\nRUN groupmod -g 999 postgres && usermod -u 999 postgres"
        " && ln -s /usr/lib/postgresql/*/bin/* /usr/local/bin/"
        f"\nCOPY {entry.name} /usr/local/bin/docker-entrypoint.sh"
        "\nUSER 999:999\nSTOPSIGNAL SIGINT\n"
    )
    return _of_lines("postgres", lines, entry)


def pause() -> Image:
    """The container that holds a pod's namespaces: a busybox that sleeps."""
    path = Path(shutil.which("busybox") or "/bin/busybox").resolve()
    entry = json.dumps(["/bin/busybox", "sleep", "2147483647"])
    lines = f"FROM scratch\nCOPY {path.name} /bin/busybox\nENTRYPOINT {entry}\n"
    return _of_lines("pause", lines, path)


def _of_lines(name: str, lines: str, file: Path) -> Image:
    """An image of a few lines of a Dockerfile and a file that they copy."""
    digest = hashlib.sha256(lines.encode() + file.read_bytes()).hexdigest()
    full_name = f"localhost/{name}:{digest[:16]}"
    with _kept(full_name) as layout:
        if layout:
            words = ("-q", "--isolation=chroot", f"--tag={full_name}", "--file=-", str(file.parent))
            podman("build", *words, stdin=lines)
            _save(full_name, layout)
    return Image(full_name, _layout(full_name))


def podman(*arguments: str, stdin: str = "") -> str:
    """Podman's output; fails with its error message."""
    command = [*PODMAN, *arguments]
    # Podman inherits and holds the lock of builds, so the lock is kept if this process is killed.
    result = subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=False, close_fds=False
    )
    assert result.returncode == 0, result.stderr[-4000:]
    return result.stdout


def _base(image: str, packages: str) -> str:
    """A Debian with these packages for one kind of image; the newest ones are kept."""
    lists = sorted(Path("/etc/apt").glob("sources.list.d/*.sources"))
    lists += [path for path in [Path("/etc/apt/sources.list")] if path.exists()]
    command = [
        *("mmdebstrap", "--variant=minbase", f"--include={packages}", "--quiet"),
        *("--aptopt=Acquire::Check-Valid-Until false", "--aptopt=Acquire::Check-Date false"),
        *("--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*"),
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        # The machine's name and package sources are not part of an image.
        "--customize-hook=cd $1/etc && rm -rf apt/sources.list* apt/apt.conf.d/99*",
        "--customize-hook=cd $1/etc && rm -f hostname resolv.conf",
        *(freedesktop_os_release()["VERSION_CODENAME"], "-", *map(str, lists)),
    ]
    words = "".join([*command, *(path.read_text() for path in lists)])
    digest = hashlib.sha256(words.encode()).hexdigest()
    name = f"localhost/agentworld-base/{image}:{digest[:16]}"
    with _kept(name) as layout:
        if layout:
            archive = layout.with_suffix(".root")
            with archive.open("wb") as file:
                subprocess.run(command, stdout=file, check=True)
            podman("import", "-q", str(archive), name)
            archive.unlink()
            layout.mkdir()
    return name


def _made_of(target: str) -> list[Path]:
    files = {path for pattern in _MADE_OF[target] for path in ROOT.glob(pattern) if path.is_file()}
    return sorted(path for path in files if "__pycache__" not in path.parts)


def _build(target: str, name: str, base: str) -> None:
    settings = dict(_pip_settings())
    lines = [f"{key} = {value}" for key, value in settings.items()]
    folders = sorted(_named_here(word) for value in settings.values() for word in value.split())
    with NamedTemporaryFile("w") as config:
        config.write("\n".join(["[global]", *lines, ""]))
        config.flush()
        podman(
            *("build", "-q", "--isolation=chroot", "--network=host", f"--target={target}"),
            *(f"--build-arg=BASE={base}", f"--secret=id=pip,src={config.name}", f"--tag={name}"),
            *(f"--volume={folder}:{folder}:ro" for folder in folders if folder),
            str(ROOT),
        )


def _pip_settings() -> Iterator[tuple[str, str]]:
    """The pip settings of this machine, from files and the environment."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for line in output.splitlines():
        key, _, value = line.partition("=")
        yield key.rpartition(".")[2], ast.literal_eval(value)


def _named_here(word: str) -> str:
    """The folder or file of this machine that a setting names; an index's files are beside it."""
    path = Path(word.removeprefix("file://"))
    if not path.is_absolute() or not path.exists():
        return ""
    return str(path.parent if word.startswith("file://") else path)


def _layout(name: str) -> Path:
    repository, _, tag = name.removeprefix("localhost/").rpartition(":")
    return FOLDER / repository / tag


def _blob(digest: str) -> Path:
    return _BLOBS / digest.replace(":", "/")


@contextmanager
def _kept(name: str) -> Iterator[Path | None]:
    """The location for an image's layout, unless it exists; older ones are removed."""
    layout = _layout(name)
    layout.parent.mkdir(parents=True, exist_ok=True)
    with (layout.parent / ".lock").open("w") as lock, (FOLDER / ".builds").open("w") as builds:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if layout.exists():
            os.utime(layout)
            yield None
            return
        os.set_inheritable(builds.fileno(), True)
        with suppress(BlockingIOError):
            fcntl.flock(builds, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove_killed_builds()
        fcntl.flock(builds, fcntl.LOCK_SH)
        yield layout
        _forget_old(layout.parent)
        with suppress(BlockingIOError):
            fcntl.flock(builds, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Also removes leftovers of killed builds, which belong to no process while no build is
            # running.
            podman("image", "prune", "--force", "--external", "--filter=until=24h")
            _forget_old_blobs()


def _remove_killed_builds() -> None:
    """Removes their containers, which stay mounted; without a running build there are no others."""
    if containers := external_containers():
        podman("rm", "--force", *containers)


def external_containers() -> list[str]:
    """The ids of the containers in which builds run, or ran before a kill."""
    containers = json.loads(podman("ps", "--all", "--external", "--format=json")) or ()
    return [container["Id"] for container in containers if container["State"] == "storage"]


def _forget_old(folder: Path) -> None:
    """Removes all but the most recently used: several checkouts may alternate."""
    layouts = [path for path in folder.glob("[!.]*") if path.is_dir()]
    layouts.sort(key=lambda path: path.stat().st_mtime)
    for layout in layouts[:-_KEPT]:
        podman("image", "rm", "--force", f"localhost/{folder.relative_to(FOLDER)}:{layout.name}")
        shutil.rmtree(layout)


def _forget_old_blobs() -> None:
    names = ("*/[!.]*/index.json", "agentworld/*/[!.]*/index.json")
    layouts = [index.parent for pattern in names for index in FOLDER.glob(pattern)]
    blobs = {blob for layout in layouts for blob in Image("", layout).blobs()}
    for blob in _BLOBS.glob("*/*"):
        if blob not in blobs:
            blob.unlink()


def _save(name: str, layout: Path) -> None:
    """Layers are shared between images, so none is written twice."""
    unfinished = layout.with_name(f".{layout.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    _BLOBS.mkdir(exist_ok=True)
    (unfinished / "blobs").symlink_to(_BLOBS)
    podman("save", "-q", "--uncompressed", "--format=oci-dir", f"--output={unfinished}", name)
    unfinished.rename(layout)


if (
    __name__ == "__main__"
):  # builds in the background of other tests; tests that need an image wait for it
    for target in _MADE_OF:
        built(target)
    postgres()
