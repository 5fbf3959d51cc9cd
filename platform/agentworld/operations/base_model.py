"""Resolves a recipe's base model: a folder, or an address that is downloaded into the store.

    /models/mine                          a folder
    s3://bucket/models/mine               a folder in an object store, or any URL of fsspec
    models:/NAME/3, or NAME@3             a version in the store's registry, of any program
    Qwen/Qwen3-0.6B@<40 hex digits>       a model of a hub, at one commit

A training depends on the digest over all files, not on the base's name.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from agentworld.errors import InputError
from agentworld.lineage.base import WorldModel
from agentworld.operations.ledger import trusted_steps
from agentworld.operations.registry import (
    can_have_registry,
    existing_registry,
    find_world_model,
    registered_model,
)
from agentworld.records.base import Digest
from agentworld.records.checkpoint import ArtifactManifest, Checkpoint
from agentworld.runner.folders import CHECKPOINT
from agentworld.storage.bases import BaseSource, BaseStore
from agentworld.storage.remote_model import RemoteModel

_VERSION = re.compile(r"models:/([^/@\s]+)/(\d{1,9})|([\w-]+)@(\d{1,9})")
_ON_HUB = re.compile(r"((?:[\w.-]+/)?[\w.-]+)@([0-9a-f]{40})")
_UNPINNED = re.compile(r"([\w-][\w.-]*/[\w.-]+)(@.*)?")
_COMMIT = "<40 hexadecimal digits of the commit>"


class Base(NamedTuple):
    """A base model, identified by the digest over all its files."""

    digest: Digest
    address: str | None
    """The address without secrets; null for a folder, which is read in place."""
    folder: Callable[[], Path]
    """Fetches its files; raises StoreError if fetched files were changed since."""
    checkpoint: Checkpoint | None
    """The record of this project's training that made it; null for any other base."""


def find_base(base: str, store: Path) -> Base:
    """Resolves a base model and fetches it if the store lacks it; raises InputError for an invalid
    name, and StoreError if it cannot be fetched or the registry does not answer.
    """
    if source := _source_of(base, store):
        bases = BaseStore(store)
        digest = bases.digest_of(source)
        checkpoint = _registered(digest, store)
        return Base(digest, source.address, partial(bases.folder_of, digest), checkpoint)
    folder = Path(base)
    if not folder.is_dir() and (parts := _UNPINNED.fullmatch(base)):
        raise InputError(
            f"there is no folder {base}, and a hub's model may change under its name; pin one as"
            f" {parts[1]}@{_COMMIT}"
        )
    digest = ArtifactManifest.of(folder).digest
    checkpoint = _trained_here(folder, digest) or _registered(digest, store)
    return Base(digest, None, lambda: folder, checkpoint)


def world_model_of(artifact: Digest, store: Path) -> WorldModel | None:
    """A version that weights are registered as; null if there is none.

    Raises as `find_world_model`.
    """
    registry = existing_registry(store)
    if registry is None:
        return None
    refs = registry.world_models_of(artifact)
    _, world_model = find_world_model(refs, registry, trusted_steps(store))
    return world_model


def _trained_here(folder: Path, artifact: Digest) -> Checkpoint | None:
    """The record of the stage whose folder has these files, if it describes them."""
    with suppress(InputError):  # the file may be of another program
        checkpoint = Checkpoint.read(folder.resolve().with_name(CHECKPOINT))
        return checkpoint if checkpoint.artifact == artifact else None
    return None


def _registered(artifact: Digest, store: Path) -> Checkpoint | None:
    """The last stage of the world model that these files are registered as."""
    world_model = world_model_of(artifact, store) if can_have_registry(store) else None
    return world_model.stages[-1] if world_model else None


def _source_of(base: str, store: Path) -> BaseSource | None:
    """Null for a folder."""
    if "://" in base:
        return RemoteModel(base)
    if Path(base).is_dir():
        return None
    if parts := _VERSION.fullmatch(base):
        return registered_model(store, parts[1] or parts[3], int(parts[2] or parts[4]))
    if base.startswith("models:"):
        raise InputError(
            f"{base} names no version, and an alias may be moved; write models:/NAME/NUMBER"
        )
    if parts := _ON_HUB.fullmatch(base):
        return _hub_model(parts[1], parts[2])
    return None


def _hub_model(name: str, commit: str) -> BaseSource:
    from agentworld.operations.hub_model import HubModel

    return HubModel(name, commit)
