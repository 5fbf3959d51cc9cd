"""The domains: action and observation grammar, prompts, live environments."""
