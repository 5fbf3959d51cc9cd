"""The store of pinned simulators: for each a manifest, a model's files, and reports about it.

    simulators/HEX/manifest.json   canonical JSON: HEX is what `sha256sum` says of it
    simulators/HEX/model/          hard links to the files that the manifest names
    simulators/HEX/reports/        evaluations, each named by its own digest
    simulators/files/              every file of every model once, named by its digest

A model is copied in and never linked to where it came from, for there somebody may change it.
The manifest is written last: a folder without one is what a killed pin left behind.
"""

import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

from agentworld.errors import EvidenceError, InputError, NotFound
from agentworld.records.base import Digest, digest_bytes, digest_file
from agentworld.records.checkpoint import ArtifactManifest, model_files
from agentworld.records.file import input_errors, read_regular, sync
from agentworld.records.progress import OnProgress, ProgressCounter, ignore_progress
from agentworld.records.report import Report, WorldModelReport, read_report
from agentworld.records.simulator import SimulatorManifest
from agentworld.records.validation import Validation
from agentworld.storage.folder import Disk
from agentworld.storage.model_folder import check_safe

_MANIFEST = "manifest.json"
_HEX = re.compile("[0-9a-f]{64}")
_START = re.compile("[0-9a-f]{0,64}")
_READ_ONLY = 0o444


class PinnedSimulator(NamedTuple):
    """A simulator in the store; its folder is named by the manifest's digest."""

    folder: Path
    manifest: SimulatorManifest

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Raises InputError for another folder, EvidenceError if the manifest was changed."""
        path = folder / _MANIFEST
        if not _HEX.fullmatch(folder.name) or not path.is_file():
            raise InputError(
                f"{folder} is not a pinned simulator; name the folder that was printed"
            )
        if _digest(path) != f"sha256:{folder.name}":
            raise EvidenceError(f"{path} is not the pinned manifest; restore it")
        return cls(folder, SimulatorManifest.read(path))

    @property
    def digest(self) -> Digest:
        """The digest that identifies the simulator."""
        return f"sha256:{self.folder.name}"

    @property
    def model(self) -> Path:
        """The folder of the model; null for an endpoint."""
        return self.folder / "model"

    @property
    def size_bytes(self) -> int:
        """The size of the model's files."""
        return sum(path.stat().st_size for path in self.model.rglob("*") if path.is_file())

    @property
    def reports(self) -> list[Digest]:
        """The evaluations of the simulator, and of agents in it."""
        return [f"sha256:{path.stem}" for path in self._report_files]

    @property
    def world_report(self) -> WorldModelReport | None:
        """The newest attached evaluation of its weights."""
        reports = self._newest_first()
        return next((report for report in reports if isinstance(report, WorldModelReport)), None)

    @property
    def validation(self) -> Validation | None:
        """The validation in the newest attached evaluation; null without one."""
        validations = (report.validation(self._subjects) for report in self._newest_first())
        return next((validation for validation in validations if validation), None)

    def attach(self, report: Report) -> None:
        """Attaches an evaluation; raises InputError if it has another subject."""
        if not report.subjects & self._subjects:
            about = ", ".join(sorted(report.subjects)) or "nothing that it names"
            raise InputError(
                f"the report is about {about} and not about {self.digest} or its weights; attach"
                " it to its subject"
            )
        _freeze(self.folder, f"reports/{_hex(report.digest)}.json", report.canonical)

    def verify(self, on_progress: OnProgress = ignore_progress) -> None:
        """Raises EvidenceError naming the first file that has changed since it was pinned or
        attached.
        """
        for path in self._report_files:
            if _digest(path) != f"sha256:{path.stem}":
                raise EvidenceError(f"{path} is not the attached report; restore it")
        if self.manifest.artifact is None:
            return
        try:
            ArtifactManifest(files=self.manifest.files).verify(self.model, on_progress)
            check_safe(self.model)
        except InputError as error:
            raise EvidenceError(str(error)) from error

    @property
    def _subjects(self) -> set[Digest]:
        """The possible subjects of its reports: the simulator, or its weights."""
        return {self.digest, *([self.manifest.artifact] if self.manifest.artifact else ())}

    def _newest_first(self) -> Iterator[Report]:
        """Its reports, the newest attached first."""
        by_age = sorted(self._report_files, key=lambda path: path.stat().st_mtime)
        return map(read_report, reversed(by_age))

    @property
    def _report_files(self) -> list[Path]:
        return sorted((self.folder / "reports").glob("*.json"))


class SimulatorStore:
    """The simulators in a job's store. Files are immutable and stored once."""

    def __init__(self, store: Path) -> None:
        self._root = store / "simulators"

    def import_model(
        self, model: Path, on_progress: OnProgress = ignore_progress
    ) -> ArtifactManifest:
        """Copies a model's files into the store; raises InputError for an unsafe one."""
        check_safe(model)
        files = model_files(model)
        # Each file is read at its source, and again after it was written or found here.
        counter = ProgressCounter(
            on_progress, 2 * sum(path.stat().st_size for path in files.values())
        )
        return ArtifactManifest(
            files={name: self._import_file(path, counter) for name, path in files.items()}
        )

    def keep(self, manifest: SimulatorManifest) -> PinnedSimulator:
        """Creates a simulator from imported files; repeating it repairs its files."""
        folder = self._root / _hex(manifest.digest)
        for name, digest in manifest.files.items():
            self._link(digest, folder / "model" / name)
        _freeze(folder, _MANIFEST, manifest.canonical)
        return PinnedSimulator.read(folder)

    def all(self) -> list[PinnedSimulator]:
        """All simulators pinned here, in the order of the digests."""
        return [PinnedSimulator.read(folder) for folder in self._folders()]

    def digests(self) -> list[Digest]:
        """The digests of all simulators pinned here; reads no manifest."""
        return [f"sha256:{folder.name}" for folder in self._folders()]

    def find(self, start: str) -> PinnedSimulator:
        """The simulator whose digest starts with `start`; raises NotFound, or InputError if several
        match.
        """
        start = start if start.startswith("sha256:") else f"sha256:{start}"
        folders = self._folders(_hex(start)) if _START.fullmatch(_hex(start)) else []
        if not folders:
            digests = [f"sha256:{folder.name}" for folder in self._folders()]
            names = ", ".join(digests) or "none yet; run `agentworld demo`"
            raise NotFound(f"there is no simulator {start} in {self._root}; simulators are {names}")
        if len(folders) > 1:
            matches = ", ".join(f"sha256:{folder.name}" for folder in folders)
            raise InputError(f"{start} is the start of {matches}; give more characters")
        return PinnedSimulator.read(folders[0])

    def _folders(self, start: str = "") -> list[Path]:
        # A complete name is looked up directly.
        name = start if _HEX.fullmatch(start) else f"{start}*"
        manifests = self._root.glob(f"{name}/{_MANIFEST}")
        return sorted(path.parent for path in manifests if _HEX.fullmatch(path.parent.name))

    def _file(self, digest: Digest) -> Path:
        return self._root / "files" / _hex(digest)

    def _import_file(self, path: Path, counter: ProgressCounter) -> Digest:
        digest = digest_file(path, counter.add)
        target = self._file(digest)
        if target.is_file() and digest_file(target, counter.add) == digest:
            return digest
        with self._draft() as draft:
            shutil.copyfile(path, draft)
            if digest_file(draft, counter.add) != digest:
                raise InputError(
                    f"{path} changed while it was read; try again when no process writes it"
                )
            draft.chmod(_READ_ONLY)
            sync(draft)
            draft.replace(target)
        return digest

    def _link(self, digest: Digest, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._draft() as draft:
            try:
                draft.hardlink_to(self._file(digest))
            except OSError:  # too many links, or a disk without hard links
                shutil.copy2(self._file(digest), draft)
            draft.replace(path)

    @contextmanager
    def _draft(self) -> Iterator[Path]:
        """A temporary name beside the stored files; no file has it afterwards."""
        draft = self._file(uuid.uuid4().hex + ".draft")
        draft.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield draft
        finally:
            # Also after a replace, which does nothing if both are links to one file.
            draft.unlink(missing_ok=True)


def _freeze(folder: Path, name: str, data: bytes) -> None:
    Disk(folder).write(name, data)
    (folder / name).chmod(_READ_ONLY)


def _digest(path: Path) -> Digest:
    """The digest of a small file."""
    with input_errors(path):
        return digest_bytes(read_regular(path))


def _hex(digest: Digest) -> str:
    return digest.removeprefix("sha256:")
