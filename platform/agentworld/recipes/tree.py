"""The recipe of a whole job: a part for each step, in the order of the data."""

from pydantic import Field

from agentworld.recipes.data import CollectRecipe, PrepareRecipe
from agentworld.recipes.serve import (
    DeployRecipe,
    EngineRecipe,
    EvaluateRecipe,
    NightlyRecipe,
    SimulateRecipe,
    ValidateRecipe,
)
from agentworld.recipes.traces import TracesRecipe
from agentworld.recipes.train import (
    AgentRecipe,
    CptRecipe,
    ModelRecipe,
    NextTokenRecipe,
    WorldRlRecipe,
)
from agentworld.records.base import Record
from agentworld.records.gate import Gate


class Recipe(Record):
    """Frozen; each step stores its resolved parts beside its result."""

    name: str
    """The name of the recipe and of its results."""
    collect: CollectRecipe = CollectRecipe()
    prepare: PrepareRecipe = PrepareRecipe()
    traces: TracesRecipe | None = Field(None, exclude_if=lambda traces: traces is None)
    """The teacher's traces for SFT; null trains SFT on the recorded observations."""
    model: ModelRecipe = ModelRecipe()
    cpt: CptRecipe = CptRecipe(stage="cpt")
    sft: NextTokenRecipe = NextTokenRecipe(stage="sft")
    rl: WorldRlRecipe = WorldRlRecipe()
    engine: EngineRecipe = EngineRecipe()
    evaluate: EvaluateRecipe = EvaluateRecipe()
    gate: tuple[Gate, ...] = ()
    """The bounds that an evaluation must meet before a version is registered."""
    simulate: SimulateRecipe = SimulateRecipe()
    deploy: DeployRecipe = DeployRecipe()
    agent: AgentRecipe = AgentRecipe()
    validation: ValidateRecipe = ValidateRecipe()
    nightly: NightlyRecipe = NightlyRecipe()
