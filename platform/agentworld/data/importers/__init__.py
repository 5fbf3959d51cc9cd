"""Recorded logs of any form become trajectories: one module for each form."""

from agentworld.data.importers.base import Imported, Importer, ImportOptions, form_of, importer_of

__all__ = ["ImportOptions", "Imported", "Importer", "form_of", "importer_of"]
