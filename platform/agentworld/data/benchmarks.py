"""The texts of public benchmarks, which training data must not contain.

A file with a recognised form is read as recordings. In any other file, each row is one text: all
strings of the row, or the judged turn of a row of AgentWorldBench.
"""

from collections.abc import Iterator

from pydantic import JsonValue

from agentworld.data.importers import form_of, importer_of
from agentworld.data.importers.rows import rows_of
from agentworld.data.json_strings import strings_of
from agentworld.data.n_grams import text_of
from agentworld.data.secret_search import redact_text
from agentworld.errors import InputError
from agentworld.records.garbled import redact
from agentworld.storage.source import SourceFile, files_of

_DOMAIN = "text"


def benchmark_texts(source: str) -> list[str]:
    """The texts of one benchmark; raises InputError if it has none."""
    texts = [text for file in files_of(source) for text in _texts_of(file, source) if text.strip()]
    if not texts:
        raise InputError(
            f"the benchmark {redact(source)} has no text; name JSON lines or recordings"
        )
    return texts


def _texts_of(file: SourceFile, source: str) -> Iterator[str]:
    try:
        importer = importer_of(form_of([file]))
        items = list(importer.read(file, importer.options(), _DOMAIN))
    except (InputError, ValueError):  # it is of no form, or of one that must be described
        items = []
    if items and all(item.trajectory for item in items):
        yield from (text_of(item.trajectory.turns) for item in items if item.trajectory)
    else:
        for row in rows_of(file):
            if row.problem:
                raise InputError(
                    f"the benchmark {redact(source)} cannot be read whole, at {file.name}"
                    f" {row.place}: {redact_text(row.problem)}; correct it"
                )
            yield _text_of(row.value)


def _text_of(row: JsonValue) -> str:
    match row:
        case {"current_prompt": str(action), "response": [*_, str(observation)]}:
            return f"{action}\n{observation}"  # the turns before it are in other rows too
    return " ".join(strings_of(row))
