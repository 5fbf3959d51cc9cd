"""The environment variables of a simulator's engine: pinned, because they choose its kernels.

An engine gets no other variables of its user's shell. Variables that allow changes of a running
engine, or load code that no digest covers, are refused by name.
"""

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from agentworld.records.base import Name

_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile("(^|_)(KEY|TOKEN|SECRET|PASSWORD)$")

_OVER_HTTP = "would let others change its weights while it runs"
_CODE = "loads code or files that no digest covers"
_RESERVED_REASON = "is reserved for the platform"

_REFUSED = {
    "VLLM_SERVER_DEV_MODE": _OVER_HTTP,
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": _OVER_HTTP,
    "VLLM_ALLOW_INSECURE_SERIALIZATION": _OVER_HTTP,
    "VLLM_ELASTIC_EP_SCALE_UP_LAUNCH": _OVER_HTTP,
    "VLLM_LORA_RESOLVER_CACHE_DIR": _OVER_HTTP,
    "VLLM_LORA_RESOLVER_HF_REPO_LIST": _OVER_HTTP,
    "VLLM_PLUGINS": _CODE,
    "VLLM_MODEL_REDIRECT_PATH": _CODE,
    "VLLM_TEST_FORCE_LOAD_FORMAT": _CODE,
    "LD_AUDIT": _CODE,
    "LD_PRELOAD": _CODE,
    "PYTHONHOME": _CODE,
    "PYTHONPATH": _CODE,
    "PYTHONSTARTUP": _CODE,
    "PYTHONUSERBASE": _CODE,
    "HOME": _RESERVED_REASON,
    "PATH": _RESERVED_REASON,
    "HF_HUB_OFFLINE": _RESERVED_REASON,
    "TRANSFORMERS_OFFLINE": _RESERVED_REASON,
}

_REFUSED_ARGUMENTS = {
    "--enable-elastic-ep": _OVER_HTTP,
    "--enable-fault-tolerance": _OVER_HTTP,
    "--enable-sleep-mode": _OVER_HTTP,
    "--weight-transfer-config": _OVER_HTTP,
    "--middleware": _CODE,
}


def _check(environment: dict[str, str]) -> dict[str, str]:
    for name in environment:
        if problem := _problem(name):
            raise PydanticCustomError("environment", "{problem}", {"problem": problem})
    return environment


def _problem(name: str) -> str | None:
    if not _NAME.fullmatch(name):
        return f"{name[:80]!r} is not the name of a variable; correct it"
    if _SECRET.search(name):
        return f"{name} names a secret, and manifests are widely readable; leave it out"
    return f"{name} {_REFUSED[name]}; leave it out" if name in _REFUSED else None


EngineEnvironment = Annotated[dict[str, Name], AfterValidator(_check)]
"""Values by name."""


def refused_argument(arguments: Sequence[str]) -> str | None:
    """The reason why an engine may not be started with these arguments; null if it may."""
    for argument in arguments:
        # `--name value`, `--name=value`, `--name.part value`, with dashes or not.
        name = re.split(r"[=.]", argument, maxsplit=1)[0].replace("_", "-")
        if name in _REFUSED_ARGUMENTS:
            return f"{name} {_REFUSED_ARGUMENTS[name]}"
    return None
