"""What a tokenizer for terminals must not cut or join: prompt lines, messages, commands, words."""

from agentworld.domains.package_text import read_text


def pretokenizer_pattern() -> str:
    """A regular expression that matches one piece."""
    return "|".join(read_text(__package__, "pretokenizer.txt").splitlines())
