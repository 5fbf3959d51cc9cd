"""Makes a sample from a trajectory: the tags of each turn, a prompt variant, and the targets.

CPT and SFT train on all turns of an episode except the masked ones. RL gets exactly one turn of
each trajectory, because samples with a shared prefix collapse the variance of rewards
(Qwen-AgentWorld section 3.4.2). It is drawn from the turns with the tag `output`, because almost
every guess is right for an empty observation. Later turns are removed. In a held-out sample every
turn is judged.
"""

from collections.abc import Sequence

from agentworld.data.controls import control_instruction
from agentworld.data.hash_uniform import hash_uniform
from agentworld.data.masking import is_kept, turn_class
from agentworld.domains.base import OUTPUT, Start, domain_of
from agentworld.domains.state_fields import change_tag
from agentworld.recipes.data import PrepareRecipe
from agentworld.records.sample import Pool, Sample, SampleTurn
from agentworld.records.trajectory import Trajectory, Turn


def pool_of(recipe: PrepareRecipe, trajectory: Trajectory, digest: str) -> Pool:
    """The pool of a trajectory, the same for all trials of its task; other tasks do not matter."""
    if trajectory.held_out:
        return "held_out"
    place = hash_uniform(recipe.seed, "pool", trajectory.task_id or digest)
    if place < recipe.cpt_share:
        return "cpt"
    return "sft" if place < recipe.cpt_share + recipe.sft_share else "rl"


def make_sample(recipe: PrepareRecipe, trajectory: Trajectory, digest: str, pool: Pool) -> Sample:
    """A pool's sample of a trajectory."""
    domain = domain_of(trajectory.domain)
    start = Start(domain=trajectory.domain, text=trajectory.initial_state, tools=trajectory.tools)
    tags = domain.tags(start, trajectory.turns)
    selection = _targets(recipe, trajectory, tags, digest, pool)
    # A model cannot answer with white space alone, so such a turn is not a target.
    visible = [bool(turn.observation.strip()) for turn in trajectory.turns]
    targets = [target and is_visible for target, is_visible in zip(selection, visible, strict=True)]
    end = targets.index(True) + 1 if pool == "rl" and True in targets else len(targets)
    turns = zip(trajectory.turns[:end], tags, targets, strict=False)
    variants = domain.variants(pool)
    variant = variants[int(hash_uniform(recipe.seed, "variant", digest) * len(variants))]
    sample_turns = tuple(
        SampleTurn(
            action=turn.action,
            observation=turn.observation,
            state=turn.state,
            tags=tuple(sorted(turn_tags | _change_tags(turn))),
            target=target,
        )
        for turn, turn_tags, target in turns
    )
    prompt = domain.prompt(start, variant)
    if pool != "held_out" and (text := control_instruction(recipe, domain, sample_turns, digest)):
        prompt = prompt.model_copy(update={"simulation_instruction": text})
    return Sample(trajectory=digest, domain=trajectory.domain, prompt=prompt, turns=sample_turns)


def _change_tags(turn: Turn) -> set[str]:
    return set() if turn.num_changed is None else {change_tag(turn.num_changed)}


def _targets(
    recipe: PrepareRecipe,
    trajectory: Trajectory,
    tags: Sequence[frozenset[str]],
    digest: str,
    pool: Pool,
) -> list[bool]:
    if pool == "held_out":
        return [True] * len(tags)
    if pool == "rl":
        visible_turns = [index for index, turn_tags in enumerate(tags) if OUTPUT in turn_tags]
        choice = visible_turns or list(range(len(tags)))
        target = choice[int(hash_uniform(recipe.seed, "target", digest) * len(choice))]
        return [index == target for index in range(len(tags))]
    return [
        is_kept(recipe.mask, turn_class(turn.action, turn.observation), recipe.seed, digest, index)
        for index, turn in enumerate(trajectory.turns)
    ]
