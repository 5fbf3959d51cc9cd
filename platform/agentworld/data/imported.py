"""Imports recorded episodes of any form into the form that explorers write.

A record that is not an episode goes to quarantine, and the import continues. If a source marks
episodes as held out, exactly these are held out. Otherwise a share of the tasks is held out; the
name of a task decides, so one more episode changes nothing for other tasks.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TextIO

from pydantic import ValidationError

from agentworld.data.contents import COPY, Contents
from agentworld.data.hash_uniform import hash_uniform
from agentworld.data.import_state import ImportState, beginning_of, forget_state, load_state
from agentworld.data.importers import Importer, ImportResult, form_of, importer_of
from agentworld.data.importers.base import ImportOptions
from agentworld.data.secret_search import redact_text
from agentworld.errors import InputError
from agentworld.recipes.data import CollectRecipe
from agentworld.recipes.problems import all_problems
from agentworld.records.base import Digest, digest_file
from agentworld.records.collected import Collected
from agentworld.records.file import sync
from agentworld.records.garbled import redact
from agentworld.records.progress import OnProgress
from agentworld.records.quarantine import QUARANTINE, QuarantinedRecord, count_reason
from agentworld.records.trajectory import Trajectory
from agentworld.storage.source import ReadProgress, SourceFile, digest_of, files_of
from agentworld.storage.trajectories import MANIFEST, read_trajectories, write_trajectories

NO_TURN = "record without a turn"
_PER_CHUNK = 1_000
_MOST_CHARACTERS = 1 << 24
"""The limit for the turns of a chunk, except its last trajectory: a chunk is in memory."""
_LONGEST_REASON = 4_000
"""In characters; the rest of a note's reason is ignored."""
_DOMAIN = "text"


class Recordings(NamedTuple):
    """A source whose form is known."""

    files: Sequence[SourceFile]
    form: str
    importer: Importer
    options: ImportOptions
    domain: str

    def read(self, file: SourceFile) -> Iterator[ImportResult]:
        """The result of each record of a file; secrets in problems and notes are replaced."""
        for item in self.importer.read(file, self.options, self.domain):
            yield _redact_item(item)


def _redact_item(item: ImportResult) -> ImportResult:
    notes = Counter[str]()
    for reason, number in item.notes.items():
        notes[_redact_reason(reason[:_LONGEST_REASON])] += number
    problem = redact_text(item.problem) if item.problem else ""
    return item._replace(problem=problem, notes=notes)


@lru_cache(1_000)
def _redact_reason(reason: str) -> str:
    """A reason without secrets; cached, because most records have the same few reasons."""
    return redact_text(reason)


def open_recordings(recipe: CollectRecipe) -> Recordings:
    """The source that a recipe names; raises InputError if it cannot be read."""
    files = files_of(recipe.trajectories or "")
    form = recipe.format or form_of(files)
    importer = importer_of(form)
    try:
        options = importer.options.model_validate(recipe.options)
    except ValidationError as error:
        wrong = all_problems(importer.options, error, None)[0]
        raise InputError(
            f"the options of {form} are wrong at {wrong.field}: {wrong.message}"
        ) from error
    return Recordings(files, form, importer, options, recipe.domain or _DOMAIN)


def import_trajectories(
    recipe: CollectRecipe, content: Digest, out: Path, on_progress: OnProgress
) -> Digest:
    """Writes the episodes of a source and its quarantine into a folder; returns their digest.

    A repeated import continues where it was killed, and makes the same bytes. Raises InputError if
    the source has no episode, or if its content changed.
    """
    source = recipe.trajectories or ""
    recordings = open_recordings(recipe)
    out.mkdir(parents=True, exist_ok=True)
    state = load_state(out, recipe, content)
    try:
        manifest = _import(recipe, recordings, state, out, on_progress)
    except _Marked:
        beginning = beginning_of(recipe, content, has_marks=True)
        manifest = _import(recipe, recordings, beginning, out, on_progress)
    if digest_of(source) != content:
        forget_state(out)
        raise InputError(
            f"{redact(source)} changed while it was read; stop the program that writes"
            " it and try again"
        )
    if not manifest.chunks:
        num = manifest.num_quarantined
        raise InputError(_describe_empty(redact(source), recordings.form, num, out))
    manifest.write(out / MANIFEST)
    forget_state(out)
    return manifest.digest


class _Marked(Exception):
    """An episode is marked as held out."""


def _import(
    recipe: CollectRecipe,
    recordings: Recordings,
    state: ImportState,
    out: Path,
    on_progress: OnProgress,
) -> Collected:
    """Raises _Marked at the first episode marked as held out, unless the state expects marks."""
    files = recordings.files
    progress = ReadProgress(files, on_progress)
    with (out / QUARANTINE).open("a", encoding="utf-8") as quarantine:
        quarantine.truncate(state.quarantine_bytes)
        tally = _Tally(out, recordings, quarantine, state.collected)
        for number, file in enumerate(files):
            if number < state.file:
                continue
            skip = state.records if number == state.file else 0
            items = recordings.read(progress.with_meter(number))
            for count, item in enumerate(items, 1):
                progress.show(number)
                if count <= skip:
                    continue
                if item.problem and recipe.strict:
                    raise InputError(f"{file.name} {item.place} is not an episode: {item.problem}")
                if item.trajectory and item.trajectory.held_out and not state.has_marks:
                    raise _Marked
                if tally.add(file, item if state.has_marks else _assign_hold_out(recipe, item)):
                    position = {"file": number, "records": count, **tally.position()}
                    state.model_copy(update=position).save(out)
            progress.show(number + 1)
        return tally.finish()


def _assign_hold_out(recipe: CollectRecipe, item: ImportResult) -> ImportResult:
    """Decides by the name of the task, or by the trajectory's digest, whether it is held out."""
    if item.trajectory is None:
        return item
    key = item.trajectory.task_id or item.trajectory.digest
    is_held_out = hash_uniform(recipe.seed, "held out", key) < recipe.held_out_share
    return item._replace(trajectory=item.trajectory.model_copy(update={"held_out": is_held_out}))


class _Tally:
    """Writes chunks and the quarantine, and counts what is in them."""

    def __init__(
        self, out: Path, recordings: Recordings, quarantine: TextIO, before: Collected
    ) -> None:
        """`before` is the progress of the killed import."""
        self._out = out
        self._recordings = recordings
        self._quarantine = quarantine
        self._quarantined = Counter(before.quarantined)
        self._chunk: list[Trajectory] = []
        self._num_characters = 0
        self._chunks = dict(before.chunks)
        self._notes = Counter(before.notes)
        self._episodes = Counter(
            {False: before.num_trajectories, True: before.num_held_out_trajectories}
        )
        self._transitions = Counter(
            {False: before.num_transitions, True: before.num_held_out_transitions}
        )
        self._domains = set(before.domains)
        self._contents = Contents()
        for name in self._chunks:
            for trajectory in read_trajectories(out / name):
                self._contents.add(trajectory)

    def add(self, file: SourceFile, item: ImportResult) -> bool:
        """Adds the result of one record; true if this filled a chunk, which is then written."""
        for reason, number in item.notes.items():
            count_reason(self._notes, reason, number)
        trajectory = item.trajectory
        if trajectory is None:
            record = QuarantinedRecord(file=file.name, place=item.place, problem=item.problem)
            print(record.model_dump_json(), file=self._quarantine)
            count_reason(self._quarantined, record.reason)
        elif not trajectory.turns:
            self._notes[NO_TURN] += 1
        else:
            if not self._contents.add(trajectory):
                self._notes[COPY] += 1
            self._domains.add(trajectory.domain)
            self._episodes[trajectory.held_out] += 1
            self._transitions[trajectory.held_out] += len(trajectory.turns)
            self._chunk.append(trajectory)
            self._num_characters += _num_characters(trajectory)
            if len(self._chunk) == _PER_CHUNK or self._num_characters > _MOST_CHARACTERS:
                self._write_chunk()
                return True
        return False

    def position(self) -> dict[str, object]:
        """The progress; valid only after a chunk was written."""
        self._quarantine.flush()
        path = self._out / QUARANTINE
        sync(path)
        return {
            "quarantine_bytes": path.stat().st_size,
            "collected": self._to_collected(),
        }

    def finish(self) -> Collected:
        """Writes the last chunk; returns the manifest of everything that was added."""
        if self._chunk:
            self._write_chunk()
        return self._to_collected()

    def _to_collected(self) -> Collected:
        return Collected(
            chunks=self._chunks,
            domains=tuple(sorted(self._domains)),
            num_trajectories=self._episodes[False],
            num_transitions=self._transitions[False],
            num_held_out_trajectories=self._episodes[True],
            num_held_out_transitions=self._transitions[True],
            form=self._recordings.form,
            options=self._recordings.options.model_dump(mode="json", exclude_defaults=True),
            num_quarantined=self._quarantined.total(),
            quarantined=dict(sorted(self._quarantined.items())),
            notes=dict(sorted((+self._notes).items())),
        )

    def _write_chunk(self) -> None:
        name = f"recorded-{len(self._chunks):05d}.jsonl"
        write_trajectories(self._out / name, self._chunk)
        self._chunks[name] = digest_file(self._out / name)
        self._chunk, self._num_characters = [], 0


def _num_characters(trajectory: Trajectory) -> int:
    return sum(len(turn.action) + len(turn.observation) for turn in trajectory.turns)


def _describe_empty(source: str, form: str, num: int, out: Path) -> str:
    with (out / QUARANTINE).open(encoding="utf-8", newline="\n") as lines:
        first_line = lines.readline()
    if not first_line:
        return f"{source} has no episode of the form {form}; name another source or form"
    first = QuarantinedRecord.model_validate_json(first_line)
    return (
        f"{source} has no episode of the form {form}; the first of {num} records that are none"
        f" is {first.file} {first.place}: {first.problem}"
    )
