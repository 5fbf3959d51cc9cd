"""The order of the steps as Kubeflow pipelines; what a step does is in `agentworld.steps`."""
