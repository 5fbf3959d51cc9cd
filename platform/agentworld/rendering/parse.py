"""From a model's text to an observation, or to none (Qwen-AgentWorld, evaluation output parser)."""

import re

PARSER = "observation-v2"
"""Named in every simulator manifest; changes whenever a byte of what is parsed does."""

_THOUGHT = re.compile(r"<think>.*?</think>\n{0,2}", re.DOTALL | re.IGNORECASE)
_ORPHAN_CLOSE = re.compile(r"^.*</think>\n{0,2}", re.DOTALL | re.IGNORECASE)
_ORPHAN_OPEN = re.compile(r"<think>.*?(?=<predicted_observation>|\Z)", re.DOTALL | re.IGNORECASE)
_CLOSED_THOUGHT = re.compile(r"(.*)</think>", re.DOTALL | re.IGNORECASE)
_THOUGHT_TAG = re.compile(r"</?think>", re.IGNORECASE)
_ANSWER = re.compile(r".*<predicted_observation>\n?(.*)", re.DOTALL | re.IGNORECASE)
_ANSWER_CLOSE = re.compile(r"\n?</predicted_observation>.*", re.DOTALL | re.IGNORECASE)


def parse_observation(text: str) -> str | None:
    """The observation in a model's text, without thoughts; null where there is none.

    The last `predicted_observation` block wins, its closing tag may be missing, and
    without a block the whole text is the observation, every byte of it. The line breaks that chat
    templates put after a thought, and those inside a block's tags, are not a part of it. An answer
    of nothing but white space is no observation.
    """
    if "<" not in text:  # nothing to look for, which is what most answers are
        return text if text.strip() else None
    text = _THOUGHT.sub("", text)
    text = _ORPHAN_CLOSE.sub("", text)
    text = _ORPHAN_OPEN.sub("", text)
    answer = _ANSWER.match(text)
    if answer:
        text = _ANSWER_CLOSE.sub("", answer[1])
    return text if text.strip() else None


def parse_thought(text: str) -> str:
    """The last thought in a model's text, without its tags; empty where none comes to an end.

    A template that opens the thought in the prompt leaves only the closing tag to the model.
    """
    closed = _CLOSED_THOUGHT.match(text)
    return _THOUGHT_TAG.split(closed[1])[-1].strip() if closed else ""
