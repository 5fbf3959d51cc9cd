"""The receipt of a pipeline step: what it read, what it made, how long it took."""

from agentworld.records.base import Digest, Record


class StepReceipt(Record):
    """Written last; a folder with a receipt is a finished step and is used again."""

    step: str
    key: Digest
    """Over the recipe's part, the inputs' digests and the code."""
    recipe: Digest
    inputs: dict[str, Digest]
    code: Digest
    output: Digest
    seconds: float
    peak_memory_gib: float
