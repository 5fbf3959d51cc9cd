"""The steps of the main job in their order, and which of them each pipeline has."""

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
    "imitate",
    "open_run",
    "agent",
    "close_run",
    "validate",
    "register_agent",
    "audit",
)

AFTER_GATE = STEPS[STEPS.index("gate") + 1 :]
"""What a gate that refuses leaves undone."""

STEPS_OF = {
    "world_model": STEPS[: STEPS.index("imitate")],
    "agent": ("collect", *STEPS[STEPS.index("imitate") :]),
    "nightly": ("measure",),
}
"""Those of each pipeline, in its order; all of them end with `conclude`."""

ALL_STEPS = (*STEPS, "measure", "conclude")
"""With those of the pipelines that are not of the main job."""
