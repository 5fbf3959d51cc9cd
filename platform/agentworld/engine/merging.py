"""Adds the LoRA weights of a model's folder to the weights of the model."""

from pathlib import Path

from transformers import PreTrainedModel

from agentworld.engine.adapter import ADAPTER, has_adapter


def merge_adapter(model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """The model with the folder's adapter in its weights; without an adapter, the same model."""
    if not has_adapter(folder):
        return model
    from peft import PeftModel

    merged = PeftModel.from_pretrained(model, folder / ADAPTER).merge_and_unload()
    merged.requires_grad_(True)  # PEFT freezes the base model
    return merged
