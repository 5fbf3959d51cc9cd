"""Parses a model's text into an observation (Qwen-AgentWorld, evaluation output parser)."""

import re

PARSER = "observation-v2"
"""The version of the parser, pinned in every simulator manifest; it changes whenever a byte of
the parser's output does."""

_THOUGHT = re.compile(r"<think>.*?</think>\n{0,2}", re.DOTALL | re.IGNORECASE)
_ORPHAN_CLOSE = re.compile(r"^.*</think>\n{0,2}", re.DOTALL | re.IGNORECASE)
_ORPHAN_OPEN = re.compile(r"<think>.*?(?=<predicted_observation>|\Z)", re.DOTALL | re.IGNORECASE)
_CLOSED_THOUGHT = re.compile(r"(.*)</think>", re.DOTALL | re.IGNORECASE)
_THOUGHT_TAG = re.compile(r"</?think>", re.IGNORECASE)
_ANSWER = re.compile(r".*<predicted_observation>\n?(.*)", re.DOTALL | re.IGNORECASE)
_ANSWER_CLOSE = re.compile(r"\n?</predicted_observation>.*", re.DOTALL | re.IGNORECASE)


def parse_observation(text: str) -> str | None:
    """The observation in a model's text, without thoughts; null if there is none.

    The last `predicted_observation` block counts; its closing tag may be missing. Without a block
    the whole text is the observation. Line breaks that chat templates put after a thought, and
    those inside a block's tags, are removed. Text of white space alone is not an observation.
    """
    if "<" not in text:  # the common case: no tags
        return text if text.strip() else None
    text = _THOUGHT.sub("", text)
    text = _ORPHAN_CLOSE.sub("", text)
    text = _ORPHAN_OPEN.sub("", text)
    answer = _ANSWER.match(text)
    if answer:
        text = _ANSWER_CLOSE.sub("", answer[1])
    return text if text.strip() else None


def parse_thought(text: str) -> str:
    """The last complete thought in a model's text, without its tags; empty if there is none.

    If a template opens the thought in the prompt, the model writes only the closing tag.
    """
    closed = _CLOSED_THOUGHT.match(text)
    return _THOUGHT_TAG.split(closed[1])[-1].strip() if closed else ""
