"""The plan of a training, as text and as JSON."""

import json

import pytest

pytestmark = pytest.mark.compute


def test_a_plan_prints_each_memory_part_and_the_source_of_the_speed(call):
    options = "--tokens 1000000000 --tokens-per-second 1000 --price 2"
    result = call(f"train plan --recipe smoke --gpus 2x8xH100 {options}")
    assert (result.code, result.error) == (0, "")
    lines = result.out.splitlines()
    assert [line.split(":")[0] for line in lines if " of Qwen3ForCausalLM" in line] == [
        "cpt of Qwen3ForCausalLM on 2x8xH100",
        "sft of Qwen3ForCausalLM on 2x8xH100",
    ]
    headings = [line.split() for line in lines if "GiB of each GPU" in line]
    assert headings == [["GiB", "of", "each", "GPU", "load", "training", "save"]] * 2
    first_words = {line.split()[0] for line in lines if line.strip()}
    assert {"weights", "gradients", "optimizer", "activations", "logits", "buffers"} <= first_words
    cpt_line, _sft_line = [line for line in lines if line.startswith("time: ")]
    assert cpt_line == (  # four epochs of the tokens, by sixteen GPUs
        "time: 69.4 hours, 1,111.1 hours of GPUs, at 16,000 tokens a second (your figure of one"
        " GPU); cost: 2,222.22"
    )


def test_the_plan_of_a_model_without_a_known_speed_has_no_time(call):
    result = call("train plan --recipe smoke --gpus 1xH100 --stage cpt --tokens 1000000")
    assert result.out.splitlines()[-1].startswith(
        "time: unknown, because no such model was measured or cited"
    )


def test_a_plan_as_json_has_the_bytes_of_only_the_chosen_stage(call):
    result = call("train plan --recipe smoke --gpus 1xH100 --stage sft --json")
    (plan,) = json.loads(result.out)
    assert (plan["stage"], plan["seconds"], plan["cost"]) == ("sft", None, None)
    weights = {moment: memory["weights"] for moment, memory in plan["memory"]["gpu"].items()}
    assert weights == dict.fromkeys(("load", "training", "save"), 4 * plan["num_weights"])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("--recipe smoke --gpus 8xH999", "'8xH999' names no GPUs; write 8xH100"),
        ("--recipe qwen3-8b --gpus 1xH100", "give a folder with its config.json as --model"),
        ("--recipe qwen3-8b --gpus 1xH100 --model absent", "there is no absent/config.json"),
    ],
)
def test_invalid_plan_options_are_refused_in_one_sentence(call, options, error):
    result = call(f"train plan {options}")
    assert (result.code, result.out) == (2, "")
    assert error in result.error
    assert len(result.error.splitlines()) == 1
