"""The answers of endpoints in a store in a bucket."""

from pathlib import Path

import pytest

from agentworld.operations.answers import open_answers
from agentworld.records.base import now
from agentworld.runner.remote import local_store
from agentworld.scoring.answers import Answer
from make import records

pytestmark = pytest.mark.waits  # a server of buckets


def test_an_answer_is_stored_in_the_bucket_at_once_for_other_pods(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, question = f"{bucket}/{tmp_path.name}", records.digest("question")
    counts = {"num_prompt_tokens": 1, "num_cached_tokens": 0, "num_tokens": 1}
    answer = Answer(text="besa", thought="", is_whole=True, model="m", at=now(), **counts)
    monkeypatch.setenv("AGENTWORLD_SCRATCH", str(tmp_path / "first"))
    open_answers(local_store(store)).add(question, answer)
    monkeypatch.setenv("AGENTWORLD_SCRATCH", str(tmp_path / "second"))
    assert open_answers(local_store(store)).find(question) == answer
