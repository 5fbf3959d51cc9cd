"""A kind of statement: the reading of a counter."""

from agentworld.records.base import digest_json
from agentworld.records.statements.base import LedgerColumns, SignedRecord


class Reading(SignedRecord):
    kind = "counter-reading"
    predicate_type = "urn:counter-world:reading:v1"
    folder = "counter-readings"

    counter: str
    value: int
    at: str

    @property
    def columns(self):
        return LedgerColumns(self.counter, "", "", self.at)

    @property
    def subject_digest(self):
        return digest_json(self.value)


KIND = Reading
