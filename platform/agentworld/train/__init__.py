"""The training stages: next-token loss, world-model RL, imitation, agent RL."""
