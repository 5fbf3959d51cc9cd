"""From a trajectory to a sample: notes for each turn, a prompt variant, and the targets.

CPT and SFT train on a whole episode but for the masked turns. RL gets exactly one turn for
each trajectory, because samples with a shared prefix collapse the variance of its rewards
(Qwen-AgentWorld section 3.4.2): one at random among those that show output, for a bare
prompt line rewards almost every guess. What comes after that turn is cut off. A held-out
sample is judged at every turn.
"""

from collections.abc import Sequence

from agentworld.data.chance import chance
from agentworld.data.masking import is_kept, turn_class
from agentworld.domains.terminal.history import TurnNote, annotate
from agentworld.domains.terminal.prompts import prompt_parts, variants_for
from agentworld.recipes.data import PrepareRecipe
from agentworld.records.sample import Pool, Sample, SampleTurn
from agentworld.records.trajectory import Trajectory


def pool_of(recipe: PrepareRecipe, trajectory: Trajectory, digest: str) -> Pool:
    """Which pool a whole trajectory goes to: each to one, whatever else is collected."""
    if trajectory.held_out:
        return "held_out"
    place = chance(recipe.seed, "pool", digest)
    if place < recipe.cpt_share:
        return "cpt"
    return "sft" if place < recipe.cpt_share + recipe.sft_share else "rl"


def cut(recipe: PrepareRecipe, trajectory: Trajectory, digest: str, pool: Pool) -> Sample:
    """A pool's sample of a trajectory."""
    notes = annotate(trajectory.initial_state, trajectory.turns)
    targets = _targets(recipe, trajectory, notes, digest, pool)
    end = targets.index(True) + 1 if pool == "rl" else len(targets)
    turns = zip(trajectory.turns[:end], notes, targets, strict=False)
    variants = variants_for(pool)
    variant = variants[int(chance(recipe.seed, "variant", digest) * len(variants))]
    return Sample(
        trajectory=digest,
        domain=trajectory.domain,
        prompt=prompt_parts(trajectory.initial_state, variant),
        turns=tuple(
            SampleTurn(
                action=turn.action,
                observation=turn.observation,
                state=turn.state,
                target=target,
                **note._asdict(),
            )
            for turn, note, target in turns
        ),
    )


def _targets(
    recipe: PrepareRecipe,
    trajectory: Trajectory,
    notes: Sequence[TurnNote],
    digest: str,
    pool: Pool,
) -> list[bool]:
    if pool == "held_out":
        return [True] * len(notes)
    if pool == "rl":
        shows = [index for index, note in enumerate(notes) if note.has_output]
        choice = shows or list(range(len(notes)))
        target = choice[int(chance(recipe.seed, "target", digest) * len(choice))]
        return [index == target for index in range(len(notes))]
    return [
        is_kept(recipe.mask, turn_class(turn.action, turn.observation), recipe.seed, digest, index)
        for index, turn in enumerate(trajectory.turns)
    ]
