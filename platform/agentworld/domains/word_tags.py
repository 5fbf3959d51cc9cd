"""The tags that mean the same in every domain whose episodes are made of generated words."""

from agentworld.domains.base import HISTORY, OUTPUT, UNSEEN
from agentworld.domains.words import has_unseen_word
from agentworld.records.trajectory import Turn


def word_tags(turn: Turn, *, has_output: bool, shows_history: bool) -> set[str]:
    """The tags of a turn; `UNSEEN` if it has a word that is reserved for held-out episodes."""
    has_unseen = has_unseen_word(f"{turn.action} {turn.observation}")
    tags = {OUTPUT: has_output, HISTORY: shows_history, UNSEEN: has_unseen}
    return {tag for tag, holds in tags.items() if holds}
