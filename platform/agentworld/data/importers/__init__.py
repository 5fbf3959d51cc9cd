"""Recorded logs of any form become trajectories: one module for each form."""

from agentworld.data.importers.base import (
    Importer,
    ImportOptions,
    ImportResult,
    form_of,
    importer_of,
)

__all__ = ["ImportOptions", "ImportResult", "Importer", "form_of", "importer_of"]
