"""Types for where a pod runs: names, labels, quantities, tolerations."""

from typing import Annotated

from pydantic import Field, StringConstraints

_DNS = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"

ObjectName = Annotated[str, StringConstraints(pattern=rf"^{_DNS}$", max_length=253)]
LabelKey = Annotated[str, StringConstraints(pattern=rf"^({_DNS}/)?{_LABEL}$", max_length=317)]
LabelValue = Annotated[str, StringConstraints(pattern=rf"^({_LABEL})?$", max_length=63)]
Image = Annotated[str, StringConstraints(pattern=r"^\S+$", max_length=1024)]
ImageByDigest = Annotated[
    str, StringConstraints(pattern=r"^[^\s@]+@sha256:[0-9a-f]{64}$", max_length=1024)
]
Resource = Annotated[str, StringConstraints(pattern=rf"^{_DNS}/{_LABEL}$", max_length=317)]
MountPath = Annotated[str, StringConstraints(pattern=r"^(/[A-Za-z0-9_.-]+)+$")]
SecretKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+$")]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Text = Annotated[str, Field(coerce_numbers_to_str=True, pattern=r"^[^\x00]*$")]
Cpu = Annotated[
    str,
    Field(
        coerce_numbers_to_str=True,
        pattern=r"^([1-9][0-9]{0,5}(m|\.[0-9]{1,3})?|0\.[0-9]{0,2}[1-9])$",
    ),
]
"""A CPU quantity, as `2`, `0.5` or `500m`."""
Bytes = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,5}[MGT]i?$")]
"""A memory quantity, as `512Mi` or `64Gi`."""
