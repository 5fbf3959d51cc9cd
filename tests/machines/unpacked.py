"""The images of a cluster's nodes, unpacked once: each node starts with all of them.

A containerd's store is kept from one cluster to the next. Missing layers of an image are imported,
so that another version of our own code only costs the layers that differ. A node's own store has
symbolic links into it: a container writes into its own layer, never into an image's.
"""

import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agentworld.engine.process import running as process_running
from machines.images import Image
from waiting import wait_for

NAMESPACE = "k8s.io"
_BLOBS = Path("io.containerd.content.v1.content/blobs/sha256")
_SNAPSHOTS = Path("io.containerd.snapshotter.v1.overlayfs/snapshots")
_DATABASES = (
    Path("io.containerd.metadata.v1.bolt/meta.db"),
    Path("io.containerd.snapshotter.v1.overlayfs/metadata.db"),
)


class UnpackedImages:
    """A store in a folder, for one user at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._root = folder / "root"

    def update(self, images: Sequence[Image]) -> None:
        """Unpacks missing images and removes all others."""
        unfinished = self._folder / "unfinished"
        if unfinished.exists():  # the process that wrote here was killed
            shutil.rmtree(self._folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        unfinished.touch()
        with _containerd(self._folder) as ctr:
            for image in images:
                self._unpack(ctr, image)
            required = {name for image in images for name in (image.name, image.pinned_name)}
            present = set(_output([*ctr, "images", "list", "--quiet"]).split())
            if old_names := sorted(present - required):
                _output([*ctr, "images", "remove", "--sync", *old_names])
        unfinished.unlink()

    def link(self, root: Path) -> None:
        """Creates the root of another containerd that has the same images."""
        for database in _DATABASES:
            (root / database).parent.mkdir(parents=True)
            shutil.copyfile(self._root / database, root / database)
        for folder in (_BLOBS, _SNAPSHOTS):
            (root / folder).mkdir(parents=True, exist_ok=True)
            for path in (self._root / folder).iterdir():
                (root / folder / path.name).symlink_to(path)

    def _unpack(self, ctr: Sequence[str], image: Image) -> None:
        """Imports an image, without the layers that exist here."""
        repository = image.name.rpartition(":")[0]
        words = ("images", "import", "--digests", f"--base-name={repository}", "-")
        with subprocess.Popen([*ctr, *words], stdin=subprocess.PIPE) as process:
            assert process.stdin
            with tarfile.open(fileobj=process.stdin, mode="w|") as archive:
                for name in ("oci-layout", "index.json"):
                    archive.add(image.layout / name, name)
                for blob in image.blobs():
                    if not (self._root / _BLOBS / blob.name).exists():
                        archive.add(blob, f"blobs/sha256/{blob.name}")
        assert process.returncode == 0, f"{image.name} was not unpacked"


@contextmanager
def _containerd(folder: Path) -> Iterator[tuple[str, ...]]:
    """A containerd that runs no container; yields the prefix of a command to it."""
    socket, config = folder / "run/containerd.sock", folder / "containerd.toml"
    config.write_text(
        f'version = 2\nroot = "{folder / "root"}"\nstate = "{folder / "run"}"\n'
        'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n'
        f'[grpc]\n  address = "{socket}"\n'
    )
    # Its mounts end with it.
    command = ["unshare", "--mount", "containerd", f"--config={config}"]
    ctr = ("ctr", f"--address={socket}", f"--namespace={NAMESPACE}")
    with process_running("containerd", command, {}, 0, folder / "containerd.log") as server:

        def answers() -> bool:
            server.check()
            process = subprocess.run([*ctr, "version"], capture_output=True, check=False)
            return process.returncode == 0

        wait_for(answers)
        yield ctr


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
