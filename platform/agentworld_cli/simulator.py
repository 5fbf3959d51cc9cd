"""Simulators: create, show and serve them."""

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.filesize import decimal

from agentworld_cli.show import (
    DEFAULT_RECIPE,
    DEFAULT_STORE,
    ExistingStore,
    Json,
    RecipeName,
    Store,
    brief,
    console,
    plain,
    show_json,
    show_record,
)

if TYPE_CHECKING:
    from agentworld.operations.simulators import Validity
    from agentworld.recipes import Recipe
    from agentworld.storage.simulators import PinnedSimulator

app = typer.Typer(help="Pin, import, serve and verify simulators.", no_args_is_help=True)

_WORLD_RECIPE = "world"

_Which = Annotated[
    str,
    typer.Argument(
        metavar="DIGEST|ALIAS", help="The digest of a pinned simulator, its start, or an alias."
    ),
]
_Text = Annotated[
    str, typer.Option(metavar="FILE|WORDS", help="The system prompt: what the model simulates.")
]
_Domains = Annotated[
    list[str],
    typer.Option(
        "--domain",
        metavar="NAME",
        help="A domain that it simulates, see `domain list`; repeatable.",
    ),
]


@app.command()
def pin(
    version: Annotated[
        str,
        typer.Argument(
            metavar="NAME@VERSION|FOLDER",
            help="A registered world model, or the folder of a finished `world-model register`.",
        ),
    ],
    recipe: RecipeName = DEFAULT_RECIPE,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Pin a world model, with everything that affects its responses, as a simulator."""
    from agentworld.lineage.base import VersionRef
    from agentworld.operations.registry import check_store
    from agentworld.runner.folders import VERSION
    from agentworld.steps.run import run_by_name
    from agentworld.storage.simulators import PinnedSimulator

    if not (Path(version) / VERSION).is_file():
        VersionRef.parse(version)
    check_store(Path(store))
    with redirect_stdout(sys.stderr):
        folder = run_by_name("simulate", recipe, store, version)
    _show_pinned(PinnedSimulator.read(Path(folder)), as_json=as_json)


@app.command("import")
def import_(
    model: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER",
            help="The folder of a causal language model: safetensors, tokenizer, chat template.",
        ),
    ],
    text: _Text = "",
    domains: _Domains = [],  # noqa: B006 - typer reads it and changes nothing
    recipe: RecipeName = _WORLD_RECIPE,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Pin external weights as a simulator; nothing is trained."""
    from agentworld.operations.import_world import import_world
    from agentworld.recipes import load_recipe, recipe_path
    from agentworld_cli.views import show_progress

    world_recipe = _describe(load_recipe(recipe_path(recipe)), text, domains)
    with show_progress("import") as on_progress:
        simulator = import_world(world_recipe, Path(store), Path(model), on_progress)
    _show_pinned(simulator, as_json=as_json)


@app.command()
def prompt(
    endpoint: Annotated[
        str, typer.Option(metavar="URL", help="The address of an OpenAI-compatible endpoint.")
    ],
    model: Annotated[str, typer.Option(metavar="NAME", help="The model's name at the endpoint.")],
    text: _Text,
    domains: _Domains = [],  # noqa: B006 - typer reads it and changes nothing
    recipe: RecipeName = _WORLD_RECIPE,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Pin an OpenAI-compatible endpoint and a system prompt as a simulator.

    If the endpoint needs a key, set AGENTWORLD_ENGINE_API_KEY; no file holds the key. An audit
    cannot verify which weights an endpoint serves.
    """
    from agentworld.operations.prompt_world import endpoint_at, prompt_world
    from agentworld.recipes import load_recipe, recipe_path

    world_recipe = _describe(load_recipe(recipe_path(recipe)), text, domains)
    simulator = prompt_world(world_recipe, Path(store), endpoint_at(endpoint, model))
    _show_pinned(simulator, as_json=as_json)


@app.command("attach")
def attach_(
    simulator: _Which,
    report: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="The report.json of an `evaluate stages` or `agent validate`."
        ),
    ],
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Attach an evaluation to a simulator, so that a gate can use its figures."""
    from agentworld.operations.simulators import attach, find
    from agentworld.records.report import read_report

    pinned_simulator = find(simulator, Path(store))
    attach(pinned_simulator, read_report(Path(report)), Path(store))
    _show_pinned(pinned_simulator, as_json=as_json)


@app.command()
def show(
    simulator: _Which,
    model_signing: Annotated[
        bool,
        typer.Option(
            "--model-signing", help="Print the in-toto statement of OpenSSF model signing."
        ),
    ] = False,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Print the manifest of a simulator, its evaluations and whether they validate it."""
    from agentworld.operations.simulators import find, sheet, signing_statement

    pinned_simulator = find(simulator, Path(store))
    if model_signing:
        sys.stdout.buffer.write(signing_statement(pinned_simulator).canonical)
    else:
        show_record(sheet(pinned_simulator, Path(store)), as_json=as_json)


@app.command("list")
def list_simulators(store: ExistingStore = DEFAULT_STORE, as_json: Json = False) -> None:
    """List the simulators of a store.

    In the console: /simulators.
    """
    from agentworld.operations.simulators import summaries

    rows = summaries(Path(store))
    if as_json:
        show_json(rows)
        return
    for row in rows:
        state = _validation_state(row)
        names = f", {' '.join(row.aliases)}" if row.aliases else ""
        size = decimal(row.size_bytes) if row.verifiable else "cannot be verified"
        weights = brief(row.world_model) if row.world_model[:7] == "sha256:" else row.world_model
        print(f"{brief(row.simulator)}  {plain(weights)}, {state}, {size}{names}")


@app.command()
def verify(simulator: _Which, store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """Compare every file of a simulator with its manifest, and name the first that differs."""
    from agentworld.operations.simulators import find
    from agentworld_cli.views import show_progress

    pinned_simulator = find(simulator, Path(store))
    with show_progress("verify") as on_progress:
        pinned_simulator.verify(on_progress)
    result = {"simulator": pinned_simulator.digest, "files": len(pinned_simulator.manifest.files)}
    if as_json:
        show_json(result)
    elif pinned_simulator.manifest.artifact:
        print(f"{pinned_simulator.digest} and its {result['files']} files are as they were pinned")
    else:
        print(
            f"{pinned_simulator.digest} is unchanged; the model behind its endpoint cannot be"
            " verified"
        )


@app.command()
def serve(
    simulator: _Which,
    access: Annotated[
        str,
        typer.Option(
            metavar="local|FILE",
            help="Who may call: `local` for every user of this machine, or an access file.",
        ),
    ],
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="The port to listen on; else a free one.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="The most requests that the engine gets at once.")
    ] = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Serve a simulator to agents on this machine (127.0.0.1) until you interrupt it."""
    from agentworld.operations.serving import pinned_engine, serve_locally
    from agentworld.operations.simulators import find
    from agentworld.serving.local import ListenOptions

    pinned_simulator = find(simulator, Path(store))
    engine = pinned_engine(pinned_simulator.manifest)
    if concurrency:
        engine = engine.model_copy(update={"concurrency": concurrency})
    logs = Path(store) / "logs" / pinned_simulator.folder.name
    with serve_locally(
        pinned_simulator.folder, engine, Path(store), logs, ListenOptions(access, port)
    ) as local:
        console.print(f"{simulator} answers at {local.url}", soft_wrap=True)
        local.wait()


def _show_pinned(simulator: "PinnedSimulator", *, as_json: bool) -> None:
    """Prints the folder, which the next command takes as input."""
    from agentworld.operations.simulators import Validity

    validity = Validity.of(simulator)
    if as_json:
        summary = {"simulator": simulator.digest, "folder": str(simulator.folder)}
        show_json({**summary, **validity.model_dump(mode="json")})
        return
    if not validity.validated:
        sys.stderr.write(f"unvalidated: {'; '.join(validity.problems)}\n")
    print(simulator.folder)


def _validation_state(validity: "Validity") -> str:
    """A short text with the number of responses."""
    state = "validated" if validity.validated else "unvalidated"
    if validity.answers is None:
        return state
    words = f"{state} by {validity.answers.num} answers"
    bad = {"missing": validity.answers.missing, "cut off": validity.answers.cut_off}
    return ", ".join([words, *(f"{num} {label}" for label, num in bad.items() if num)])


def _describe(recipe: "Recipe", text: str, domains: list[str]) -> "Recipe":
    """The recipe with the given system prompt and domains."""
    from agentworld.operations.pinning import with_world

    prompt = _words(text) or None
    names = domains or list(recipe.simulate.domains) or (["text"] if prompt else [])
    return with_world(recipe, domains=dict.fromkeys(names, prompt)) if names else recipe


def _words(text: str) -> str:
    """The content of a text file, or the text itself; a single word is the name of a file."""
    from agentworld.errors import InputError

    if text.count(" ") and not _is_file(text):
        return text
    try:
        return Path(text).read_text(encoding="utf-8").rstrip("\n") if text else ""
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {text}: {error}; give a text file, or words") from error


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except OSError:  # the text may be longer than any file name
        return False
