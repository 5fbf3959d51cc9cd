"""The base model that a recipe names: a folder, or an address that is fetched into the store.

    /models/mine                          a folder
    s3://bucket/models/mine               a folder in an object store, or wherever fsspec reaches
    models:/NAME/3, or NAME@3             a version of the store's registry, whoever registered it
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
    """A base model by the digest over all its files."""

    digest: Digest
    address: str | None
    """Without what is secret; null for a folder, which is read where it is."""
    folder: Callable[[], Path]
    """Its files; raises StoreError where those that were fetched were changed since."""
    checkpoint: Checkpoint | None
    """The record of the training of this project that made it; null for any other base."""


def find_base(base: str, store: Path) -> Base:
    """Fetches what is not in the store yet; raises InputError for what names no model, and
    StoreError where it cannot be had, or the registry does not answer.
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
    checkpoint = _beside(folder, digest) or _registered(digest, store)
    return Base(digest, None, lambda: folder, checkpoint)


def world_model_of(artifact: Digest, store: Path) -> WorldModel | None:
    """A version that weights were registered as; null where they never were.

    Raises as `find_world_model`.
    """
    registry = existing_registry(store)
    if registry is None:
        return None
    refs = registry.world_models_of(artifact)
    _, world_model = find_world_model(refs, registry, trusted_steps(store))
    return world_model


def _beside(folder: Path, artifact: Digest) -> Checkpoint | None:
    """The record of the stage whose folder these files are in, where it is of them."""
    with suppress(InputError):  # it may be a file of somebody else's
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
