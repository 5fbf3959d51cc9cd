"""The pieces that a shell's tokenizer keeps apart: prompt lines, messages, commands, words."""

from agentworld.domains.package_text import read_text


def pretokenizer_pattern() -> str:
    """A regular expression that matches one piece."""
    return "|".join(read_text(__package__, "pretokenizer.txt").splitlines())
