"""Which of the processes that do one step together this is, as whoever launched them says."""

from typing import Self

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings


class Ranks(BaseSettings):
    """By torchrun's variables; one process alone where there are none."""

    rank: int = Field(0, ge=0, validation_alias="RANK")
    """The process's number, from 0; the first one locks, reports and writes."""
    world_size: int = Field(1, gt=0, validation_alias="WORLD_SIZE")
    """How many processes do the step together."""
    local_rank: int = Field(0, ge=0, validation_alias="LOCAL_RANK")
    """The process's number on its machine, which is its GPU's."""
    local_world_size: int | None = Field(None, gt=0, validation_alias="LOCAL_WORLD_SIZE")
    """How many processes its machine has; unset means that there is one machine."""

    @model_validator(mode="after")
    def _is_one_of_them(self) -> Self:
        if self.rank >= self.world_size:
            raise ValueError(
                f"rank {self.rank} is none of {self.world_size} processes, which count from 0;"
                " set RANK and WORLD_SIZE both, or neither"
            )
        return self

    @property
    def is_first(self) -> bool:
        """Whether it is this one that locks, tells and writes."""
        return self.rank == 0

    @property
    def is_of_several_machines(self) -> bool:
        """Whether not all of them see one disk."""
        return self.local_world_size is not None and self.local_world_size < self.world_size
