"""What a tokenizer for terminals must not cut or join: prompt lines, messages, commands, words."""

from importlib import resources


def pretokenizer_pattern() -> str:
    """A regular expression that matches one piece."""
    text = resources.files(__package__).joinpath("pretokenizer.txt").read_text()
    return "|".join(text.splitlines())
