"""Masks the parts of a shell's observation that cannot be predicted."""

from agentworld.domains.volatile import (
    mask_clocks,
    mask_job_processes,
    mask_temporary_names,
    mask_times,
)


def mask_volatile(text: str) -> str:
    """Masks times, also as `ls -l` and `date` show them, names of temporary files, and processes
    of jobs.
    """
    return mask_job_processes(mask_temporary_names(mask_clocks(mask_times(text))))
