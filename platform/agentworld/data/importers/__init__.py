"""Recorded logs of any form become trajectories: one module for each form."""

from agentworld.data.importers.base import Importer, importer_of

__all__ = ["Importer", "importer_of"]
