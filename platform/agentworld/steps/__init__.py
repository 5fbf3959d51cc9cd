"""The steps of the main job, each a function from folders to a folder; `STEPS` is their order."""

STEPS = (
    "collect",
    "prepare",
    "cpt",
    "sft",
    "rl",
    "evaluate",
    "register",
    "simulate",
    "agent",
    "validate",
    "audit",
)
