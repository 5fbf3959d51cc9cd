"""The library: trains language models as simulated environments, serves and audits them."""

__version__ = "0.1.0"
