"""The invented words of generated tasks: 2,000 words of two syllables, too many to memorise.

A twentieth of the words occurs in held-out episodes only. A world model that predicts such a word
must have copied it from the history, because no training episode has it.
"""

import random
import re
from functools import cache
from typing import NamedTuple

NUM_WORDS = 2_000
_HELD_OUT_SHARE = 20  # one word in twenty
_NUM_NAMES = 6
_NUM_CONTENTS = 40
_UNSEEN_IN = 6
_NUM_HALVES = 64
_CONSONANTS = "bdfgjklmnprstvz"
_WORD = re.compile(r"[A-Za-z]+")


@cache
def all_words() -> tuple[str, ...]:
    """The whole vocabulary, always the same and in the same order: `kolmir`, `tanbes`, ..."""
    rng = random.Random("agentworld terminal words")
    syllables = [a + vowel + b for a in _CONSONANTS for vowel in "aeiou" for b in _CONSONANTS]
    halves = rng.sample(syllables, 2 * _NUM_HALVES)
    words = [first + last for first in halves[:_NUM_HALVES] for last in halves[_NUM_HALVES:]]
    return tuple(rng.sample(words, NUM_WORDS))


@cache
def held_out_words() -> tuple[str, ...]:
    """The words that are reserved for held-out episodes."""
    return all_words()[::_HELD_OUT_SHARE]


@cache
def training_words() -> tuple[str, ...]:
    """The words that training episodes may use."""
    exclusions = set(held_out_words())
    return tuple(word for word in all_words() if word not in exclusions)


def has_unseen_word(text: str) -> bool:
    """Whether a text has a word that is reserved for held-out episodes."""
    return not _unseen().isdisjoint(_WORD.findall(text))


@cache
def _unseen() -> frozenset[str]:
    return frozenset(held_out_words())


class EpisodeWords(NamedTuple):
    """The words of one episode."""

    names: list[str]
    """Names of files and folders: few, so that an episode uses the same name again."""
    contents: list[str]
    """Contents of files: many, so that two files rarely have the same content."""


def episode_words(rng: random.Random, *, held_out: bool) -> EpisodeWords:
    """Draws words from the training vocabulary.

    In a held-out episode, one word in six of either kind is reserved for held-out episodes.
    """
    names = _draw(rng, _NUM_NAMES, held_out=held_out)
    return EpisodeWords(names, _draw(rng, _NUM_CONTENTS, held_out=held_out))


def _draw(rng: random.Random, num_words: int, *, held_out: bool) -> list[str]:
    num_unseen = round(num_words / _UNSEEN_IN) if held_out else 0
    words = rng.sample(training_words(), num_words - num_unseen)
    words += rng.sample(held_out_words(), num_unseen)
    rng.shuffle(words)
    return words
