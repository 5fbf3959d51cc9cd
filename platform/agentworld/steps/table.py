"""Every step of the pipelines, one declaration each, in their order.

The code of a step is its module of the same name. No step imports this table, so a new entry does
not change another step's code digest, and repeats no training.
"""

from typing import TYPE_CHECKING

from agentworld.runner.declaration import Input, Kind, Step

if TYPE_CHECKING:
    from agentworld.recipes import Recipe
    from agentworld.records.base import Record

_SIMULATOR = "An alias, a digest or a folder of a simulator; else the recipe's alias."


def _of_collect(recipe: "Recipe") -> "Record":
    """Without the number of processes and the address of recordings, whose digest is an input."""
    return recipe.collect.model_copy(update={"trajectories": None, "num_workers": 1})


def _of_prepare(recipe: "Recipe") -> "Record":
    """Without the number of processes and the addresses of benchmarks; their digests are inputs."""
    return recipe.prepare.model_copy(update={"benchmarks": (), "num_workers": None})


def _of_traces(recipe: "Recipe") -> "list[Record]":
    """Without the addresses of endpoints."""
    return [recipe.traces.identity] if recipe.traces else []


def _of_cpt(recipe: "Recipe") -> "list[Record]":
    """Without the addresses of corpora, whose digests are inputs; with their weights."""
    corpora = {
        name: corpus.model_copy(update={"address": "", "content": None})
        for name, corpus in recipe.cpt.corpora.items()
    }
    return [*_new_model(recipe), recipe.cpt.model_copy(update={"corpora": corpora})]


def _of_sft(recipe: "Recipe") -> "list[Record]":
    return [*_new_model(recipe), recipe.sft]


def _new_model(recipe: "Recipe") -> "list[Record]":
    """The sizes of a new model, if no base is named."""
    return [] if recipe.model.base else [recipe.model]


def _of_rl(recipe: "Recipe") -> "list[Record]":
    return [recipe.rl.model_copy(update={"reward": recipe.rl.reward.identity})]


def _of_evaluate(recipe: "Recipe") -> "list[Record]":
    return [recipe.evaluate.identity, recipe.engine, recipe.simulate.sampling]


def _of_measure(recipe: "Recipe") -> "list[Record]":
    """Without the folder of an embedding model, whose digest is an input."""
    nightly = recipe.nightly.model_copy(update={"embedding_model": None})
    return [nightly, _of_collect(recipe), _of_prepare(recipe)]


_TABLE = (
    Step(
        "collect",
        does="Record episodes of explorers in live environments, or import recorded ones.",
        makes="the trajectories",
        recipe=lambda recipe: [_of_collect(recipe)],
        kind="live",
        pipelines=("world_model", "agent"),
        command="data collect",
    ),
    Step(
        "prepare",
        does="Turn trajectories into training samples, in disjoint pools.",
        makes="the data set",
        recipe=lambda recipe: [_of_prepare(recipe)],
        inputs=(Input("collected", "collect", reads_files=True),),
        pipelines=("world_model",),
        command="data prepare",
    ),
    Step(
        "traces",
        does="Have a teacher write thoughts and observations for SFT, and a judge select them.",
        makes="the traces",
        recipe=_of_traces,
        inputs=(Input("data", "prepare", reads_files=True),),
        pipelines=("world_model",),
        optional=True,
        command="data traces",
    ),
    Step(
        "cpt",
        does="Train the first stage: continual pre-training on every kind of turn.",
        makes="the checkpoint's files",
        recipe=_of_cpt,
        inputs=(Input("data", "prepare", reads_files=True),),
        kind="training",
        pipelines=("world_model",),
        command="train cpt",
    ),
    Step(
        "sft",
        does="Fine-tune the CPT checkpoint, or the recipe's base, on examples (SFT).",
        makes="the checkpoint's files",
        recipe=_of_sft,
        inputs=(
            Input("data", "prepare", reads_files=True),
            Input("parent", "cpt", reads_files=True, default=""),
            Input("traces", "traces", reads_files=True, default=""),
        ),
        kind="training",
        pipelines=("world_model",),
        command="train sft",
    ),
    Step(
        "rl",
        does="Train the SFT checkpoint, or the recipe's base, by RL on its predictions.",
        makes="the checkpoint's files",
        recipe=_of_rl,
        inputs=(
            Input("data", "prepare", reads_files=True),
            Input("parent", "sft", reads_files=True, default=""),
        ),
        kind="training",
        pipelines=("world_model",),
        command="train rl",
    ),
    Step(
        "evaluate",
        does="Score the stages and four baselines on held-out episodes.",
        makes="the report",
        recipe=_of_evaluate,
        inputs=(
            Input("data", "prepare", reads_files=True),
            Input("cpt", "cpt", reads_files=True, default=""),
            Input("sft", "sft", reads_files=True, default=""),
            Input("rl", "rl", reads_files=True, default=""),
        ),
        pipelines=("world_model",),
        command="evaluate stages",
    ),
    Step(
        "gate",
        does="Compare the report with the gate; a refused model ends the run without a failure.",
        makes="the verdict",
        recipe=lambda recipe: recipe.gate,
        inputs=(Input("report", "evaluate"),),
        pipelines=("world_model",),
    ),
    Step(
        "register",
        does="Register the last stage as a new version of the world model.",
        makes="the files of the last stage",
        recipe=lambda _: (),
        inputs=(
            Input("report", "evaluate"),
            Input("cpt", "cpt", default=""),
            Input("sft", "sft", default=""),
            Input("rl", "rl", default=""),
        ),
        pipelines=("world_model",),
        command="world-model register",
    ),
    Step(
        "simulate",
        does="Pin a version of the world model as a simulator.",
        makes="the simulator",
        recipe=lambda recipe: [recipe.simulate, recipe.engine],
        inputs=(
            Input("version", help="NAME@VERSION, or the folder of a finished step `register`."),
        ),
        pipelines=("world_model",),
        command="simulator pin",
    ),
    Step(
        "deploy",
        does="Point the recipe's alias at a simulator that passed its gate.",
        makes="the record of the move",
        recipe=lambda recipe: [recipe.deploy, *recipe.gate],
        inputs=(Input("simulator", help="The folder of a simulator."),),
        kind="deployment",
        pipelines=("world_model",),
    ),
    Step(
        "imitate",
        does="Train an agent to imitate explorers, starting from its simulator's weights.",
        makes="the checkpoint's files",
        recipe=lambda recipe: [recipe.agent],
        inputs=(
            Input("collected", "collect", reads_files=True),
            Input("simulator", help=_SIMULATOR, default=""),
        ),
        pipelines=("agent",),
        command="train imitate",
    ),
    Step(
        "open_run",
        does="Open the agent's run with its first weights and one simulator, which never change.",
        makes="the record of the run, open",
        recipe=lambda recipe: [recipe.agent],
        inputs=(Input("imitated", "imitate"),),
        pipelines=("agent",),
    ),
    Step(
        "agent",
        does="Train the agent by RL in the simulator of its run alone.",
        makes="the checkpoint's files",
        recipe=lambda recipe: [recipe.agent],
        inputs=(Input("imitated", "imitate", reads_files=True), Input("run", "open_run")),
        pipelines=("agent",),
        command="train agent",
    ),
    Step(
        "close_run",
        does="Sign the weights that the run made, and close the run.",
        makes="the record of the run, closed",
        recipe=lambda _: (),
        inputs=(Input("agent", "agent"),),
        pipelines=("agent",),
    ),
    Step(
        "validate",
        does="Test an agent before and after RL, in the simulator and live.",
        makes="the report",
        recipe=lambda recipe: [recipe.validation, recipe.engine, recipe.agent],
        inputs=(
            Input("imitated", "imitate", reads_files=True),
            Input("agent", "agent", reads_files=True),
            Input(
                "simulator", help="An alias or a digest; else the simulator of its run.", default=""
            ),
        ),
        kind="live",
        pipelines=("agent",),
        command="agent validate",
    ),
    Step(
        "register_agent",
        does="Register a validated agent as a new version.",
        makes="the agent's files",
        recipe=lambda recipe: [recipe.agent],
        inputs=(
            Input("agent", "agent", reads_files=True),
            Input("closed", "close_run"),
            Input("validation", "validate"),
        ),
        pipelines=("agent",),
        command="agent register",
    ),
    Step(
        "audit",
        does="Trace the agent to its data; fail if a link is missing.",
        makes="the chain",
        recipe=lambda _: (),
        inputs=(Input("registered", "register_agent"), Input("validation", "validate")),
        pipelines=("agent",),
    ),
    Step(
        "measure",
        does="Compare a served simulator with fresh live episodes, and attach the report to it.",
        makes="the report",
        recipe=_of_measure,
        inputs=(
            Input("simulator", help=_SIMULATOR),
            Input("job", help="Names a measurement, which the same name continues."),
        ),
        kind="live",
        pipelines=("nightly",),
        command="evaluate served",
    ),
)

STEPS = {step.name: step for step in _TABLE}

CONCLUDE = "conclude"
"""The last task of every pipeline; it has no result, so it is not a step of the table."""


def names_of(kind: Kind) -> tuple[str, ...]:
    """The steps of a kind."""
    return tuple(step.name for step in _TABLE if step.kind == kind)


def steps_of(*pipelines: str, optional: bool = False) -> tuple[str, ...]:
    """The steps of any of these pipelines, in their order; with the optional ones if asked."""
    steps = (step for step in _TABLE if optional or not step.optional)
    return tuple(step.name for step in steps if {*step.pipelines} & {*pipelines})


MAIN_JOB = steps_of("world_model", "agent")
AFTER_GATE = MAIN_JOB[MAIN_JOB.index("gate") + 1 :]
"""The steps that are skipped if a gate refuses."""
