"""What is signed: an in-toto Statement v1, which says something (a predicate) of subjects.

A subject is named for people and meant by its digests.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from agentworld.records.base import Digest, JsonObject, Record

_Hexadecimal = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{2})+$")]


class Subject(Record):
    """What a statement is about."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    name: str
    digests: dict[str, _Hexadecimal] = Field(alias="digest", min_length=1)
    """By the name of the algorithm."""

    @classmethod
    def of(cls, name: str, digest: Digest) -> "Subject":
        """A subject that one digest of ours means."""
        algorithm, value = digest.split(":")
        return cls(name=name, digests={algorithm: value})


class Statement(Record):
    """A predicate of subjects; `canonical` is the one form that is signed."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    statement_type: Literal["https://in-toto.io/Statement/v1"] = Field(
        "https://in-toto.io/Statement/v1", alias="_type"
    )
    subject: tuple[Subject, ...] = Field(min_length=1)
    predicate_type: str = Field(alias="predicateType", min_length=1)
    """A URI; it says what the predicate's keys mean."""
    predicate: JsonObject = Field(min_length=1)

    @classmethod
    def parse(cls, data: bytes) -> "Statement":
        """The inverse of `canonical`, of any JSON form; raises pydantic's ValidationError."""
        return cls.model_validate_json(data, by_name=False)
