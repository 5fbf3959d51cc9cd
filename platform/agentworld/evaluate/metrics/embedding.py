"""The similarity in meaning of prediction and truth: the cosine of their embeddings."""

from pathlib import Path
from threading import Lock

from agentworld.domains.base import Domain
from agentworld.scoring.embedding import EmbeddingReward

_UNUSED_DISTANCE = 0.0


class EmbeddingSimilarity:
    """Uses an encoder in a folder; a text that is too long is truncated."""

    def __init__(self, folder: Path) -> None:
        """Raises InputError for a folder without an encoder."""
        self._encoder = EmbeddingReward(folder, _UNUSED_DISTANCE)
        self._lock = Lock()  # the tokenizer truncates by its own setting

    def __call__(self, domain: Domain, predicted: str, truth: str) -> float:
        """At most 1; if either text is blank, 1 if they are equal and otherwise 0."""
        predicted_text, truth_text = domain.normalise(predicted), domain.normalise(truth)
        if predicted_text == truth_text or not (predicted_text.strip() and truth_text.strip()):
            return float(predicted_text == truth_text)
        with self._lock:
            return min(1.0, 1.0 - self._encoder.distance(predicted_text, truth_text))
