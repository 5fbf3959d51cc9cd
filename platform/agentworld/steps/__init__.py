"""The steps of the main job, each a function from folders to a folder; `STEPS` is their order."""

STEPS = (
    "collect",
    "prepare",
    "cpt",
    "sft",
    "rl",
    "evaluate",
    "gate",
    "register",
    "simulate",
    "deploy",
    "agent",
    "validate",
    "audit",
)

AFTER_GATE = STEPS[STEPS.index("gate") + 1 :]
"""What a gate that refuses leaves undone."""
