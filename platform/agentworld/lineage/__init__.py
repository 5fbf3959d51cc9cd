"""The model registry: a name and a version lead to weights and their origin."""
