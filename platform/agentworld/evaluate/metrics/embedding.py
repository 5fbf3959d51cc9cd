"""How near a prediction is to the truth in meaning: the cosine of their embeddings."""

from pathlib import Path
from threading import Lock

from agentworld.domains.base import Domain
from agentworld.scoring.embedding import EmbeddingReward

_UNUSED_DISTANCE = 0.0


class EmbeddingSimilarity:
    """Of an encoder in a folder; a long text counts as far as the encoder reads it."""

    def __init__(self, folder: Path) -> None:
        """Raises InputError for a folder without one."""
        self._encoder = EmbeddingReward(folder, _UNUSED_DISTANCE)
        self._lock = Lock()  # a tokenizer truncates by a setting of its own

    def __call__(self, domain: Domain, predicted: str, truth: str) -> float:
        """At most 1; what has no word is as near as it is equal."""
        predicted_text, truth_text = domain.normalise(predicted), domain.normalise(truth)
        if predicted_text == truth_text or not (predicted_text.strip() and truth_text.strip()):
            return float(predicted_text == truth_text)
        with self._lock:
            return min(1.0, 1.0 - self._encoder.distance(predicted_text, truth_text))
