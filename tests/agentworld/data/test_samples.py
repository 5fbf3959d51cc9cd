import pytest

from agentworld.data.samples import make_sample, pool_of
from agentworld.domains.base import OUTPUT, Start, domain_of
from agentworld.recipes.data import MaskRecipe, PrepareRecipe
from agentworld.records.trajectory import Turn
from make import records

RECIPE = PrepareRecipe(control_share=0)
SILENT_TURN = ("echo kolu > rimo.txt", "[0] ~")
OUTPUT_TURN = ("cat rimo.txt", "kolu\n[0] ~")


def sample_of(pool, *turns, number=0, recipe=RECIPE):
    return make_sample(recipe, records.trajectory(*turns), records.digest(f"{number}"), pool)


def shell_prompt(variant):
    return domain_of("shell").prompt(Start(domain="shell"), variant)


def test_a_held_out_trajectory_is_in_the_held_out_pool():
    assert pool_of(RECIPE, records.trajectory(held_out=True), records.digest("1")) == "held_out"


def test_the_training_pools_get_their_shares():
    pools = [pool_of(RECIPE, records.trajectory(), records.digest(f"{n}")) for n in range(4_000)]
    shares = {pool: pools.count(pool) / len(pools) for pool in set(pools)}
    assert shares == pytest.approx({"cpt": 0.55, "sft": 0.4, "rl": 0.05}, abs=0.02)


def test_every_held_out_turn_is_a_target():
    echo_turn = ("echo kolu tane besa", "kolu tane besa\n[0] ~")
    assert sample_of("held_out", echo_turn, SILENT_TURN).targets == (0, 1)


@pytest.mark.parametrize(
    ("num_changed", "tag"),
    [(0, "no field changed"), (1, "1 field changed"), (3, "2 or more fields changed"), (None, "")],
)
def test_a_turn_is_tagged_by_the_number_of_fields_that_it_changed(num_changed, tag):
    turn = Turn(action="cd ~", observation="[0] ~", num_changed=num_changed)
    trajectory = records.trajectory(turns=[turn])
    sample = make_sample(RECIPE, trajectory, records.digest("1"), "held_out")
    assert [name for name in sample.turns[0].tags if "changed" in name] == [tag] * bool(tag)


def test_a_masked_turn_stays_as_history():
    recipe = PrepareRecipe(mask=MaskRecipe(echo=0))
    sample = sample_of(
        "cpt", ("echo kolu tane besa", "kolu tane besa\n[0] ~"), OUTPUT_TURN, recipe=recipe
    )
    assert sample.targets == (1,)
    assert len(sample.turns) == 2


@pytest.mark.parametrize("number", range(8))
def test_an_rl_sample_ends_with_its_target_a_turn_that_shows_output(number):
    sample = sample_of(
        "rl", SILENT_TURN, OUTPUT_TURN, SILENT_TURN, OUTPUT_TURN, SILENT_TURN, number=number
    )
    assert sample.targets in {(1,), (3,)}
    assert sample.targets == (len(sample.turns) - 1,)


def test_every_turn_that_shows_output_can_be_the_rl_target():
    samples = [sample_of("rl", OUTPUT_TURN, SILENT_TURN, OUTPUT_TURN, number=n) for n in range(20)]
    assert {sample.targets for sample in samples} == {(0,), (2,)}


def test_the_rl_target_is_a_silent_turn_if_no_turn_shows_output():
    assert sample_of("rl", SILENT_TURN, SILENT_TURN).targets in {(0,), (1,)}


def test_each_pool_uses_its_prompt_variants():
    prompts = {
        pool: {sample_of(pool, OUTPUT_TURN, number=n).prompt for n in range(60)}
        for pool in ("cpt", "sft", "rl", "held_out")
    }
    assert prompts["rl"] == prompts["held_out"] == {shell_prompt(0)}
    assert prompts["cpt"] == {shell_prompt(1)}
    assert prompts["sft"] == {shell_prompt(variant) for variant in range(2, 12)}


def test_a_turn_keeps_its_state_and_gets_its_tags():
    trajectory = records.trajectory(SILENT_TURN, OUTPUT_TURN)
    turn = trajectory.turns[0].model_copy(update={"state": "rimo.txt: kolu"})
    changed_trajectory = trajectory.model_copy(update={"turns": (turn, trajectory.turns[1])})
    first, second = make_sample(RECIPE, changed_trajectory, records.digest("1"), "held_out").turns
    assert (first.state, first.tags) == ("rimo.txt: kolu", ("write",))
    assert (second.state, second.tags) == (None, ("cat", "history", "output"))


def log(*turns, **fields):
    return records.trajectory(*turns, domain="text", **fields)


@pytest.mark.parametrize("number", range(8))
def test_the_rl_target_of_a_log_is_a_turn_that_shows_output(number):
    trajectory = log(("open", ""), ("look", "3 apples"), ("wait", " \n"), ("look", "2 apples"))
    sample = make_sample(RECIPE, trajectory, records.digest(f"{number}"), "rl")
    assert sample.targets in {(1,), (3,)}
    assert [OUTPUT in turn.tags for turn in sample.turns] == [False, True, False, True][
        : len(sample.turns)
    ]


def test_a_log_has_its_initial_state_and_its_tools_in_every_pool():
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    trajectory = log(("look", "3 apples"), tools=tools, initial_state="a shop")
    pools = ("cpt", "sft", "rl", "held_out")
    samples = [make_sample(RECIPE, trajectory, records.digest("1"), pool) for pool in pools]
    assert {sample.domain for sample in samples} == {"text"}
    parts = {(sample.prompt.initial_state, sample.prompt.action_space[:14]) for sample in samples}
    assert parts == {("a shop", '{"name":"look"')}


def test_a_turn_without_output_is_history_and_no_target():
    trajectory = records.trajectory(("set a 1", "\n"), ("get a", "1\n"), domain="text")
    for pool in ("cpt", "held_out", "rl"):
        sample = make_sample(PrepareRecipe(mask={"echo": 1.0}), trajectory, trajectory.digest, pool)
        assert sample.targets == (1,)
        assert sample.turns[0].observation == "\n"


def test_an_episode_without_output_has_no_target_in_any_pool():
    trajectory = records.trajectory(("set a 1", ""), ("set b 2", " \n"), domain="text")
    for pool in ("cpt", "sft", "rl", "held_out"):
        assert make_sample(PrepareRecipe(), trajectory, trajectory.digest, pool).targets == ()
