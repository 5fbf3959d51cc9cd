"""Fixed words replace what nobody can predict in a shell's observation."""

from agentworld.domains.volatile import (
    mask_clocks,
    mask_job_processes,
    mask_temporary_paths,
    mask_times,
)


def mask_volatile(text: str) -> str:
    """Masks times, also in the form of `ls -l` and `date`, temporary paths, and jobs' processes."""
    return mask_job_processes(mask_temporary_paths(mask_clocks(mask_times(text))))
