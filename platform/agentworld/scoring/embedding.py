"""RWML's reward: whether the prediction is close to the truth in meaning (section 2.2)."""

from functools import lru_cache
from pathlib import Path

import torch
from torch.nn.functional import normalize
from transformers import AutoModel, AutoTokenizer

from agentworld.errors import InputError


class EmbeddingReward:
    """Mean-pooled token vectors of an encoder in a folder; safetensors, and no remote code."""

    def __init__(self, folder: Path, max_distance: float) -> None:
        self._max_distance = max_distance
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            self._model = AutoModel.from_pretrained(
                folder, local_files_only=True, use_safetensors=True
            ).eval()
        except (OSError, ValueError) as error:
            raise InputError(
                f"{folder} holds no embedding model: {str(error).splitlines()[0][:200]}"
            ) from error
        self._max_tokens = self._count_positions()
        # all rollouts of a group have the same truth
        self._embed_cached = lru_cache(maxsize=1024)(self._embed)

    def distance(self, predicted: str, truth: str) -> float:
        """1 - cosine: 0 for equal texts, at most 2."""
        return 1.0 - float(self._embed_cached(predicted) @ self._embed_cached(truth))

    def is_hit(self, predicted: str, truth: str) -> bool:
        """Whether the distance is below tau_d."""
        return self.distance(predicted, truth) < self._max_distance

    def _count_positions(self) -> int | None:
        """The encoder's token limit; null if its config sets none."""
        limit: int | None = getattr(self._model.config, "max_position_embeddings", None)
        if limit is None:
            return None
        embeddings = getattr(self._model, "embeddings", None)
        padding = getattr(getattr(embeddings, "position_embeddings", None), "padding_idx", None)
        if padding is not None:  # RoBERTa counts positions from the one after it
            limit -= padding + 1
        tokens: int = self._tokenizer.model_max_length
        return min(tokens, limit)

    def _embed(self, text: str) -> torch.Tensor:
        tokens = self._tokenizer(
            text, return_tensors="pt", truncation=True, max_length=self._max_tokens
        )
        with torch.inference_mode():
            vectors = self._model(**tokens).last_hidden_state  # (1, T, D)
        return normalize(vectors[0].mean(dim=0), dim=0)  # (D,)
