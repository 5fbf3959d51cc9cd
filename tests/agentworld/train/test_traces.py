"""A world model that is trained on the traces of a teacher."""

from pathlib import Path

import pytest
import yaml

from agentworld.records.checkpoint import Checkpoint
from agentworld.runner.step import output_of
from agentworld.steps.run import run_by_name
from make import tracing, training

pytestmark = pytest.mark.compute


def test_a_world_model_trained_on_traces_reproduces_the_teachers_answer(tmp_path):
    from agentworld.rendering.messages import world_messages
    from agentworld.train.model import load_model
    from agentworld.train.parent import Parent

    with tracing.endpoints(lambda _: "<think>so it is</think>kolu\n[0] ~") as server:
        inputs = training.training(tmp_path / "store", sft={"epochs": 30})
        recipe = yaml.safe_load(Path(inputs.recipe).read_text())
        recipe["traces"] = tracing.traces_recipe(server.url).model_dump(mode="json")
        Path(inputs.recipe).write_text(yaml.safe_dump(recipe))
        traces = run_by_name("traces", *inputs)
    step_folder = Path(run_by_name("sft", *inputs, "", traces))
    checkpoint = Checkpoint.read(step_folder / "checkpoint.json")
    assert checkpoint.traces == output_of(traces)
    model, tokenizer, _ = load_model(Parent(step_folder / "model"))
    sample = training.samples()[0]
    messages = world_messages(sample.prompt, (), sample.turns[0].action)
    prompt = tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    output_ids = model.generate(**prompt, max_new_tokens=40)[0, prompt["input_ids"].shape[1] :]
    text = tokenizer.decode(output_ids, skip_special_tokens=True)
    assert text == "<think>so it is</think>kolu\n[0] ~"
