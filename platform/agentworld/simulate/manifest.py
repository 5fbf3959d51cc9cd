"""Pinning a simulator, and refusing to serve anything else than what was pinned."""

from collections.abc import Mapping
from pathlib import Path

from agentworld.domains.terminal.prompts import DOMAIN, prompt_parts
from agentworld.engine.programs import engine_arguments, engine_version
from agentworld.errors import InputError
from agentworld.recipes.serve import EngineRecipe, SimulateRecipe
from agentworld.records.base import Digest
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.simulator import EnginePin, Sampling, SimulatorManifest
from agentworld.rendering.messages import RENDERER, system_text
from agentworld.rendering.parse import PARSER


def pin(
    artifact: ArtifactManifest,
    recipe: SimulateRecipe,
    engine: EngineRecipe,
    *,
    lock: Digest,
    context_tokens: int,
) -> SimulatorManifest:
    """Freezes a checkpoint with this code, this engine and `lock`, what the engine came from."""
    _check_seeds(recipe.sampling, engine)
    return SimulatorManifest(
        artifact=artifact.digest,
        files=artifact.files,
        system_prompt=_system_prompt(),
        control_text=recipe.control_text,
        sampling=recipe.sampling,
        context_tokens=context_tokens,
        engine=EnginePin(
            kind=engine.kind,
            version=engine_version(engine.kind),
            lock=lock,
            arguments=engine_arguments(engine, context_tokens),
        ),
        renderer=RENDERER,
        parser=PARSER,
        domains=(DOMAIN,),
    )


def check_files(manifest: SimulatorManifest, model_folder: Path) -> None:
    """Raises InputError naming the first file that is not the pinned one."""
    artifact = ArtifactManifest(files=manifest.files)
    if artifact.digest != manifest.artifact:
        raise InputError(
            f"the manifest's files make {artifact.digest} and not its artifact"
            f" {manifest.artifact}; pin anew"
        )
    artifact.verify(model_folder)


def check_code(manifest: SimulatorManifest) -> None:
    """Raises InputError where this code would ask or read otherwise than was pinned."""
    pinned = {
        "renderer": (manifest.renderer, RENDERER),
        "parser": (manifest.parser, PARSER),
        "system_prompt": (manifest.system_prompt, _system_prompt()),
        "domains": (manifest.domains, (DOMAIN,)),
    }
    _check_equal(pinned)


def check_engine(manifest: SimulatorManifest, engine: EngineRecipe) -> None:
    """Raises InputError where this engine is not the pinned one."""
    here = engine_arguments(engine, manifest.context_tokens)
    pinned = {
        "engine.kind": (manifest.engine.kind, engine.kind),
        "engine.version": (manifest.engine.version, engine_version(engine.kind)),
        "engine.arguments": (manifest.engine.arguments, here),
    }
    _check_equal(pinned)


def _check_equal(pinned: Mapping[str, tuple[object, object]]) -> None:
    for name, (wanted, found) in pinned.items():
        if wanted != found:
            raise InputError(
                f"the manifest pins {name} {wanted!r} and here it is {found!r}; pin anew"
            )


def _check_seeds(sampling: Sampling, engine: EngineRecipe) -> None:
    if sampling.seed_policy == "seeded" and engine.kind == "transformers-serve":
        raise InputError(
            "transformers-serve draws all answers from one stream and takes no seed; set"
            " sampling.seed_policy to refuse"
        )


def _system_prompt() -> str:
    return system_text(prompt_parts(""))
