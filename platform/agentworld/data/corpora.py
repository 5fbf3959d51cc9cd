"""Reads the corpora of a recipe: texts, or prompts with completions, in the files of an address.

A row of JSON lines, JSON, CSV or Parquet has the field `text`, or `prompt` and `completion`. A file
that ends in `.txt` is one text.
"""

from collections.abc import Iterator, Mapping
from functools import partial

from pydantic import JsonValue

from agentworld.data.importers.rows import MOST_ROW_BYTES
from agentworld.data.importers.tables import table_rows
from agentworld.errors import InputError
from agentworld.recipes.train import CorpusRecipe
from agentworld.records.base import Digest
from agentworld.records.corpus import Corpus, Document
from agentworld.records.garbled import redact
from agentworld.storage.source import UNREADABLE, SourceFile, digest_of, files_of

_TEXT = ".txt"
_FIELDS = ("text", "prompt", "completion")


def open_corpora(recipes: Mapping[str, CorpusRecipe]) -> dict[str, Corpus]:
    """Each corpus by its name; raises InputError if one cannot be read, or has another digest
    than its recipe.
    """
    return {name: _open(name, recipe) for name, recipe in recipes.items()}


def _open(name: str, recipe: CorpusRecipe) -> Corpus:
    digest = digest_of(recipe.address, texts=True)
    if recipe.content and recipe.content != digest:
        raise InputError(
            f"the corpus {name} at {redact(recipe.address)} has the digest {digest}, and the recipe"
            f" names {recipe.content}; restore its files, or name the new digest"
        )
    read = partial(_documents, name, recipe.address, digest)
    return Corpus(digest, recipe.weight, read)


def _documents(name: str, address: str, digest: Digest) -> Iterator[Document]:
    for file in files_of(address, texts=True):
        yield from _text(name, file) if file.suffix == _TEXT else _rows(name, file)
    if digest_of(address, texts=True) != digest:
        raise InputError(
            f"the corpus {name} at {redact(address)} was changed while it was read; start the step"
            " again after its files are complete"
        )


def _text(name: str, file: SourceFile) -> Iterator[Document]:
    try:
        with file.open() as stream:
            data = stream.read(MOST_ROW_BYTES + 1)
        text = data.decode("utf-8-sig")
    except (*UNREADABLE, UnicodeDecodeError) as error:
        raise _wrong(name, file, "", f"it is not text in UTF-8: {error}") from error
    if len(data) > MOST_ROW_BYTES:
        raise _wrong(name, file, "", f"it is longer than {MOST_ROW_BYTES:,} bytes; split it")
    yield Document(text)


def _rows(name: str, file: SourceFile) -> Iterator[Document]:
    for row in table_rows(file, _FIELDS):
        document = None if row.problem else _document(row.value)
        if document is None:
            problem = row.problem or "it has no texts in `text`, or in `prompt` and `completion`"
            raise _wrong(name, file, row.place, problem)
        yield document


def _document(row: JsonValue) -> Document | None:
    match row:
        case {"prompt": str(prompt), "completion": str(completion)}:
            return Document(completion, prompt)
        case {"text": str(text)}:
            return Document(text)
    return None


def _wrong(name: str, file: SourceFile, place: str, problem: str) -> InputError:
    location = f"{file.name} {place}".rstrip()
    return InputError(f"the corpus {name} is wrong at {location}: {redact(problem)}; correct it")
