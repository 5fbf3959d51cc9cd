"""The order of the steps as Kubeflow pipelines; `agentworld.steps` implements the steps."""
