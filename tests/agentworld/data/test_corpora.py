"""The documents of corpora, in any file that importers read."""

import gzip
import json
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from agentworld.data.corpora import open_corpora
from agentworld.errors import InputError
from agentworld.recipes.train import CorpusRecipe
from agentworld.records.corpus import Corpus, Document


def open_corpus(address: Path, digest: str | None = None) -> Corpus:
    recipe = CorpusRecipe(address=str(address), content=digest, weight=0.5)
    return open_corpora({"law": recipe})["law"]


def test_texts_and_answers_are_read_from_every_kind_of_file(tmp_path: Path) -> None:
    answer = {"prompt": "Who?", "completion": "Me.", "text": "other", "id": 3}
    lines = "\n".join(map(json.dumps, [{"text": "one"}, answer]))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "b.csv").write_text('text\n"two, three"\n')
    parquet.write_table(pyarrow.table({"text": ["four"], "n": [1]}), tmp_path / "c.parquet")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/d.txt").write_text("five\n\nsix")
    for name in ("README.md", "LICENSE.txt", ".hidden.txt"):
        (tmp_path / name).write_text("no document")
    assert list(open_corpus(tmp_path).read()) == [
        Document("one"),
        Document("Me.", "Who?"),
        Document("two, three"),
        Document("four"),
        Document("five\n\nsix"),
    ]


def test_a_corpus_is_identified_by_its_content_and_not_by_its_address(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/x.txt").write_text("text")
    digest = open_corpus(tmp_path / "a").content
    (tmp_path / "a").rename(tmp_path / "b")
    assert open_corpus(tmp_path / "b", digest).content == digest
    (tmp_path / "b/x.txt").write_text("other")
    with pytest.raises(InputError, match=r"corpus law at .*/b has the digest sha256:\w+, and the"):
        open_corpus(tmp_path / "b", digest)


def test_a_corpus_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("text")
    documents = open_corpus(tmp_path).read()
    assert next(documents) == Document("text")
    (tmp_path / "x.txt").write_text("other")
    with pytest.raises(InputError, match="corpus law at .* was changed while it was read"):
        next(documents)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("x.jsonl", b'{"text": "a"}\n{"words": 1}', r"x\.jsonl line 2: it has no texts in `text`"),
        ("x.jsonl", b'{"text": "a"}\n{"text":', r"x\.jsonl line 2: it is not JSON"),
        ("x.json", b'{"prompt": "a", "completion": 1}', r"x\.json: it has no texts in `text`"),
        ("x.txt", b"\xff\xfe", r"x\.txt: it is not text in UTF-8"),
        ("x.parquet", b"PAR1", r"x\.parquet: x\.parquet cannot be read"),
    ],
)
def test_an_unreadable_document_is_reported_in_one_sentence_with_its_file(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=f"the corpus law is wrong at {problem}.*; correct it$"):
        list(open_corpus(tmp_path / name).read())


def test_an_address_without_documents_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no recordings; name a file"):
        open_corpus(tmp_path)
