"""Recipes: one frozen tree for the whole job, loaded from one YAML file."""

from agentworld.recipes.load import load_recipe, recipe_path
from agentworld.recipes.tree import Recipe

__all__ = ["Recipe", "load_recipe", "recipe_path"]
