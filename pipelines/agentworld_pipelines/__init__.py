"""The order of the steps as a Kubeflow pipeline; what a step does is in `agentworld.steps`."""
