"""The library: language models as worlds, served as pinned simulators, audited."""

__version__ = "0.1.0"
