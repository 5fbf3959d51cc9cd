"""The receipt of a pipeline step: its inputs, outputs and duration."""

from agentworld.records.base import Digest, Record


class StepReceipt(Record):
    """Written last; a folder with a receipt is a finished step and is reused."""

    step: str
    key: Digest
    """The digest of the recipe's part, the inputs' digests and the code."""
    recipe: Digest
    inputs: dict[str, Digest]
    code: Digest
    output: Digest
    seconds: float
    peak_memory_gib: float
