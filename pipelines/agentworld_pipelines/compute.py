"""CPU, memory and devices, in the forms of a placement and of Kubernetes."""

from pydantic import Field

from agentworld.cluster.records.serving import Resources
from agentworld.cluster.terms import Bytes, Cpu, Resource
from agentworld.records.base import Record


class Accelerator(Record):
    """Devices of one kind."""

    type: Resource
    """The resource's name, as `nvidia.com/gpu`."""
    count: int = Field(1, gt=0)


class CpuMemory(Record):
    """Cores and memory."""

    cpu: Cpu | None = None
    memory: Bytes | None = None


def container_resources(
    requests: CpuMemory, limits: CpuMemory, accelerator: Accelerator | None
) -> Resources:
    """A container's resources; requests for devices equal limits."""
    devices = {accelerator.type: str(accelerator.count)} if accelerator else {}
    return Resources(
        requests=requests.model_dump(exclude_none=True) | devices,
        limits=limits.model_dump(exclude_none=True) | devices,
    )
