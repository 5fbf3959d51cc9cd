"""Converts recorded logs into trajectories; one module for each form of log."""

from agentworld.data.importers.base import (
    Importer,
    ImportOptions,
    ImportResult,
    form_of,
    importer_of,
)

__all__ = ["ImportOptions", "ImportResult", "Importer", "form_of", "importer_of"]
