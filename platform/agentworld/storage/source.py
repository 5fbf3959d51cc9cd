"""The files of a source: a path or an address, plain or compressed, read as a stream.

Other sources have an address such as `mlflow:NAME`, and are read as JSON lines. Other packages add
such sources by entry points of the group `agentworld.sources`.
"""

import gzip
import hashlib
import io
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import fsspec

from agentworld.errors import InputError
from agentworld.kinds import Kinds
from agentworld.records.base import Digest, digest_json
from agentworld.records.file import open_regular
from agentworld.records.garbled import redact
from agentworld.records.progress import OnProgress
from agentworld.storage.streams import LineStream, Meter, Stream, driver_errors, redact_errors

_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_BESIDE = re.compile(
    r"(?i)(licen[cs]e|notice|readme|sources)(\..*)?|.*\.(md|txt|lock|py|ya?ml|patch|diff|pred)"
)
"""Files beside recordings that are not recordings."""
_TEXT = re.compile(r"(?i).*\.txt")
_ABOUT = re.compile(r"(?i)(licen[cs]e|notice|readme|sources)(\..*)?")
"""Files beside a corpus of texts that are not texts."""
_PIECE_BYTES = 1 << 20
_DIGITS_OF_NAME = 12
_LOCAL = "file://"
_WEB = ("http://", "https://")
_LINES = Kinds[Callable[[str], Iterator[bytes]]](
    group="agentworld.sources",
    noun="source of recordings",
    attribute="read_lines",
    modules={
        "ledger": "agentworld.operations.recorded_episodes",
        "mlflow": "agentworld.lineage.traces",
    },
)
"""Readers of lines by the scheme of an address; each gets the part after `:`."""
UNREADABLE = (OSError, EOFError, zlib.error)
"""The errors of reading a missing or damaged file."""


class SourceFile(NamedTuple):
    """One file of a source."""

    address: str
    name: str
    """Relative to the source, as in a quarantine."""
    size: int = 0
    """In bytes, as stored; 0 if unknown."""
    meter: Meter | None = None
    """Counts the bytes that are read."""
    content: Digest | None = None
    """The digest of its bytes if its name has the start of it; else null."""

    @property
    def suffix(self) -> str:
        """Its format's suffix, such as `.jsonl`, without that of the compression; empty if it has
        none.
        """
        if _kind_of(self.address):
            return ".jsonl"
        suffixes = [suffix.lower() for suffix in Path(self.path).suffixes]
        return next((suffix for suffix in reversed(suffixes) if suffix not in _COMPRESSIONS), "")

    @property
    def path(self) -> str:
        """Its name without the query of a URL."""
        return self.name.partition("?")[0] if self.address.startswith(_WEB) else self.name

    @contextmanager
    def open(self) -> Iterator[io.BufferedIOBase]:
        """Opens it decompressed; opening and reading raise UNREADABLE."""
        suffix = "" if _kind_of(self.address) else Path(self.path).suffix
        compression = _COMPRESSIONS.get(suffix.lower())
        with self._open_as_it_is() as file:
            if compression == "gzip":
                yield gzip.GzipFile(fileobj=file)
            elif compression:
                import pyarrow  # noqa: PLC0415  it takes a third of a second

                yield io.BufferedReader(pyarrow.CompressedInputStream(file, compression))
            else:
                yield io.BufferedReader(cast(io.RawIOBase, file))

    @property
    def digest(self) -> Digest:
        """The digest of its stored bytes; raises OSError if they cannot be read."""
        if self.content:
            return self.content
        sha256 = hashlib.sha256()
        with self._open_as_it_is() as file:
            while piece := file.read(_PIECE_BYTES):
                sha256.update(piece)
        return "sha256:" + sha256.hexdigest()

    def sibling(self, path: str) -> "SourceFile":
        """The file at a path relative to this one's folder; it may not exist."""
        folder, name = self.address.rpartition("/")[0], path
        while name.startswith("../"):
            folder, name = folder.rpartition("/")[0], name.removeprefix("../")
        return SourceFile(f"{folder}/{name}", path)

    @contextmanager
    def _open_as_it_is(self) -> Iterator[BinaryIO]:
        # A reader of lines may be another package's: its errors keep their class.
        errors = redact_errors if _kind_of(self.address) else driver_errors
        with ExitStack() as stack:
            with errors():
                file = stack.enter_context(self._stored())
            yield cast(BinaryIO, Stream(file, self.meter, errors))

    def _stored(self) -> AbstractContextManager[BinaryIO]:
        if kind := _kind_of(self.address):
            lines = _LINES.find(kind)(self.address.removeprefix(f"{kind}:"))
            return cast(BinaryIO, io.BufferedReader(LineStream(lines)))
        if self.address.startswith(_LOCAL):
            return open_regular(Path(self.address.removeprefix(_LOCAL)))
        return cast(AbstractContextManager[BinaryIO], fsspec.open(self.address, "rb"))


class ReadProgress:
    """The number of bytes read of a source's files, or of files, if sizes are unknown.

    Readers look at the start of a file first and then read it again, so each file counts at most
    its size.
    """

    def __init__(self, files: Sequence[SourceFile], on_progress: OnProgress) -> None:
        self._files = [file._replace(meter=Meter()) for file in files]
        self._before = [0, *accumulate(file.size for file in files)]
        self._on_progress = on_progress

    def with_meter(self, number: int) -> SourceFile:
        """A file whose reads are counted."""
        return self._files[number]

    def show(self, number: int) -> None:
        """Reports all files before this one as read, and the counted part of this one."""
        total = self._before[-1]
        if not total:
            self._on_progress(number, len(self._files))
            return
        file = self._files[number] if number < len(self._files) else None
        part = min(file.size, file.meter.num_bytes) if file and file.meter else 0
        self._on_progress(self._before[number] + part, total)


def files_of(source: str, *, texts: bool = False) -> list[SourceFile]:
    """The files of a source in the order of their names, without hidden ones; in a folder, files
    that end in `.txt` are included only with `texts`.

    Raises InputError if there are none.
    """
    if _kind_of(source):
        return [SourceFile(source, source)]
    try:
        with driver_errors():
            filesystem, path = _find_driver(source)
            # A web server also responds to folders.
            if not source.endswith("/") and filesystem.isfile(path):
                sizes = {path: filesystem.size(path)}
            else:
                details = filesystem.find(path, detail=True)
                sizes = {name: details[name].get("size") for name in sorted(details)}
            paths = [*sizes]
            addresses = [filesystem.unstrip_protocol(full_path) for full_path in paths]
    except OSError as error:
        problem = redact(f"cannot read {source}: {error}; check the address")
        raise InputError(problem) from error
    is_web = source.startswith(_WEB)
    if paths == [path]:
        # A query may be a signature, which can change every day.
        names = [(path.partition("?")[0] if is_web else path).rpartition("/")[2]]
    else:
        names = [full_path.removeprefix(path.rstrip("/") + "/") for full_path in paths]
        names = [redact(name) for name in names] if is_web else names
    whole = zip(addresses, names, (size or 0 for size in sizes.values()), strict=True)
    files = [SourceFile(*fields) for fields in whole]
    recordings = [file for file in files if paths == [path] or _is_content(file.path, texts)]
    if not recordings:
        problem = f"{redact(source)} has no recordings; name a file, or a folder of them"
        raise InputError(problem)
    return sorted(_distinct(recordings), key=lambda file: file.name)


def _find_driver(source: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """The driver of an address, and its path; raises ValueError if it is not an address."""
    try:
        driver, path = fsspec.core.url_to_fs(source)
    except TypeError as error:  # the address lacks an argument of the driver's, such as a host
        raise ValueError(str(error)) from error
    return driver, path


def _distinct(files: Sequence[SourceFile]) -> Iterator[SourceFile]:
    """Makes names unique: files whose names differ only in a secret are read, and get the start of
    their content's digest. A signature may change, and its digest could be guessed.
    """
    names, copies = Counter(file.name for file in files), Counter[str]()
    for file in files:
        name = file.name
        if names[name] == 1:
            yield file
            continue
        content = _digest(file)
        start = content.removeprefix("sha256:")[:_DIGITS_OF_NAME]
        name += f"{'&' if '?' in name else '?'}content={start}"
        copies[name] += 1
        name += f"-{copies[name]}" if copies[name] > 1 else ""
        yield file._replace(name=name, content=content)


def _kind_of(address: str) -> str:
    """The scheme of an address that is not a file; empty for a path, and for `s3://`."""
    start, colon, rest = address.partition(":")
    is_file = not colon or rest.startswith(("//", ":"))
    return "" if is_file or start not in _LINES.names else start


def _is_content(name: str, texts: bool) -> bool:
    *folders, file = name.split("/")
    if any(part.startswith(".") for part in (*folders, file)):
        return False
    if texts and _TEXT.fullmatch(file):
        return not _ABOUT.fullmatch(file)
    return not _BESIDE.fullmatch(file)


def digest_of(source: str, *, texts: bool = False) -> Digest:
    """The digest over the content of all files of a source, by their names."""
    return digest_json({file.name: _digest(file) for file in files_of(source, texts=texts)})


def _digest(file: SourceFile) -> Digest:
    try:
        return file.digest
    except OSError as error:
        problem = redact(f"cannot read {file.name}: {error}; check the path")
        raise InputError(problem) from error
