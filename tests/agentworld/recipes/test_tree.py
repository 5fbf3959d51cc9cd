import re
from pathlib import Path

import pytest
import yaml

from agentworld.errors import InputError, InvalidFile
from agentworld.recipes import load_recipe
from agentworld.recipes.endpoint import EndpointRecipe
from agentworld.recipes.traces import TracesRecipe
from agentworld.recipes.train import LoraRecipe
from agentworld.records.gate import Gate


def test_a_recipe_has_no_gate_by_default(tmp_path):
    (tmp_path / "mine.yaml").write_text("name: mine\n")
    assert load_recipe(tmp_path / "mine.yaml").gate == ()


def test_a_gate_is_a_list_of_metrics_with_minimum_values(tmp_path):
    (tmp_path / "mine.yaml").write_text("name: mine\ngate: [{metric: rl.rule, least: 0.5}]\n")
    assert load_recipe(tmp_path / "mine.yaml").gate == (Gate(metric="rl.rule", least=0.5),)


@pytest.mark.parametrize(
    ("clause", "problem"),
    [
        ("{metric: rl.rule}", "gate.0.least: Field required"),
        ("{metric: rl.rule, least: .nan}", "gate.0.least"),
        ("{metric: rl.rule, least: high}", "gate.0.least"),
        ("{metric: '', least: 0.5}", "gate.0.metric"),
        ("{metric: rl.rule, least: 0.5, most: 1}", "gate.0.most"),
        ("rl.rule=0.5", "gate.0"),
    ],
)
def test_an_invalid_gate_is_refused_with_its_field(tmp_path, clause, problem):
    (tmp_path / "mine.yaml").write_text(f"name: mine\ngate: [{clause}]\n")
    with pytest.raises(InputError, match=f"is wrong at {problem}"):
        load_recipe(tmp_path / "mine.yaml")


@pytest.mark.parametrize(
    "field",
    [
        *("engine.concurrency", "engine.cache_blocks", "engine.batch_tokens"),
        *("evaluate.num_resamples", "validation.num_resamples", "nightly.num_resamples"),
        *("model.vocabulary_size", "model.num_layers", "model.num_key_value_heads"),
        *("cpt.epochs", "cpt.checkpoint_every", "cpt.muon_learning_rate"),
        *("rl.num_steps", "rl.prompts_per_step", "rl.group_size", "rl.max_tokens"),
        *("rl.temperature", "rl.checkpoint_every", "agent.rl.learning_rate"),
    ],
)
def test_a_value_of_zero_that_no_step_could_use_is_refused_with_its_field(tmp_path, field):
    value: object = 0
    for name in reversed(field.split(".")):
        value = {name: value}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(value))
    with pytest.raises(InputError, match=f"is wrong at {field}: "):
        load_recipe(tmp_path / "mine.yaml")


def test_the_recipes_in_the_training_guide_are_valid(tmp_path):
    guide = (Path(__file__).parents[3] / "docs/guides/training.md").read_text()
    recipes = []
    for block in re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL):
        (tmp_path / "my-world.yaml").write_text(block)
        recipes.append(load_recipe(tmp_path / "my-world.yaml"))
    base, validated, mixed, lora, parallel, judged = recipes
    assert (base.model.base, base.sft.reasoning) == ("/models/my-base", "recorded-state")
    assert base.collect.record_state
    assert validated.sft.validate_every == 50
    assert mixed.cpt.corpora.keys() == {"licences"}
    assert lora.sft.lora == LoraRecipe()
    assert judged.rl.reward.rubric == "endpoint"
    assert judged.rl.reward.endpoint.key_from == "JUDGE_KEY"
    assert parallel.sft.sequence_parallel == 4


@pytest.mark.parametrize("source", ["sk-rimo-4711", "AIzaRimo4711", "teacher key", "a/key"])
def test_a_secret_key_in_a_recipe_is_refused_and_not_printed(tmp_path, source):
    traces = {"teacher": {"key_from": source}}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"name": "mine", "traces": traces}))
    message = r"traces.teacher.key_from: .* do not write the key itself"
    with pytest.raises(InvalidFile, match=message) as error:
        load_recipe(tmp_path / "mine.yaml")
    assert source not in str(error.value)


@pytest.mark.parametrize("source", ["", "TEACHER_KEY", "/var/run/secrets/teacher/key"])
def test_key_from_accepts_a_variable_name_or_a_file_path(source):
    assert EndpointRecipe(key_from=source).key_from == source


def test_the_identity_of_traces_depends_on_the_request_and_not_on_the_address():
    address = {"url": "http://elsewhere", "key_from": "A_KEY"}
    endpoint = EndpointRecipe(**address, concurrency=1, timeout_seconds=1)
    recipe = TracesRecipe()
    other_recipe = TracesRecipe(teacher=endpoint, judge=endpoint)
    assert other_recipe.identity == recipe.identity == recipe
    for field in ({"model": "m"}, {"max_tokens": 9}, {"fields": {"top_p": 0.9}}):
        assert TracesRecipe(teacher=EndpointRecipe(**field)).identity != recipe.identity
