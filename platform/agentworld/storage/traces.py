"""A folder of traces: their manifest, and one file of JSON lines."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from agentworld.errors import InputError
from agentworld.records.base import Digest, JsonObject, digest_bytes, digest_file, first_problem
from agentworld.records.file import input_errors, read_lines, write_whole
from agentworld.records.traces import Trace, TraceSet

MANIFEST = "traces.json"
_FILE = "traces.jsonl"


def write_traces(
    folder: Path, data: Digest, recipe: JsonObject, traces: Sequence[Trace]
) -> TraceSet:
    """Writes the traces of a data set, and their manifest last."""
    content = b"".join(trace.canonical + b"\n" for trace in traces)
    write_whole(folder / _FILE, content)
    trace_set = TraceSet(
        data=data,
        recipe=recipe,
        file=_FILE,
        content=digest_bytes(content),
        num_traces=len(traces),
    )
    trace_set.write(folder / MANIFEST)
    return trace_set


def read_trace_set(folder: Path) -> TraceSet:
    """The manifest of a folder of traces."""
    return TraceSet.read(folder / MANIFEST)


def read_traces(folder: Path) -> list[Trace]:
    """All traces of a folder; raises InputError if the file does not match the manifest."""
    trace_set = read_trace_set(folder)
    path = folder / trace_set.file
    if digest_file(path) != trace_set.content:
        raise InputError(f"the traces of {path} do not match its {MANIFEST}; make them again")
    with input_errors(path):
        return [_parse(line, path) for line in read_lines(path)]


def _parse(line: bytes, path: Path) -> Trace:
    try:
        return Trace.model_validate_json(line)
    except ValidationError as error:
        raise InputError(f"{path} has an invalid trace: {first_problem(error)}") from error
