"""The rank of this process among those that run a step together, from the launcher's variables."""

from typing import Self

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings


class Ranks(BaseSettings):
    """torchrun's variables; a single process if they are not set."""

    rank: int = Field(0, ge=0, validation_alias="RANK")
    """The process's rank, from 0; rank 0 locks, reports and writes."""
    world_size: int = Field(1, gt=0, validation_alias="WORLD_SIZE")
    """The number of processes that run the step together."""
    local_rank: int = Field(0, ge=0, validation_alias="LOCAL_RANK")
    """The process's rank on its machine, which is the number of its GPU."""
    local_world_size: int | None = Field(None, gt=0, validation_alias="LOCAL_WORLD_SIZE")
    """The number of processes on its machine; unset means that there is one machine."""

    @model_validator(mode="after")
    def _is_one_of_them(self) -> Self:
        if self.rank >= self.world_size:
            raise ValueError(
                f"rank {self.rank} is not one of {self.world_size} processes, which count from 0;"
                " set RANK and WORLD_SIZE both, or neither"
            )
        return self

    @property
    def is_first(self) -> bool:
        """Whether this process locks, reports and writes."""
        return self.rank == 0

    @property
    def is_of_several_machines(self) -> bool:
        """Whether the processes run on several machines, which share no disk."""
        return self.local_world_size is not None and self.local_world_size < self.world_size
