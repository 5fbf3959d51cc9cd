"""Existing runs and episodes for Schemathesis, because requests with random names are refused
early.

NAMES is a file with a JSON list of `[run, episode, simulator, artifact, envelope]`; each episode
has one step, each run an agent of the artifact, whose name is the run's, and the envelope is of its
validation. No route is named.
"""

import itertools
import json
import os
from pathlib import Path

import schemathesis

_NAMES = itertools.cycle(json.loads(Path(os.environ["NAMES"]).read_text()))
_TURNS = itertools.count()


@schemathesis.hook
def before_call(_context, case, _kwargs) -> None:
    """Three of four requests name what is there; those that follow a link do so already."""
    limit = case.body.get("timeout_s") if isinstance(case.body, dict) else None
    if isinstance(limit, float | int) and limit > 0:
        case.body["timeout_s"] = 60  # who does not wait gets no answer, which is no mistake
    if case.meta.phase.name == "stateful" or next(_TURNS) % 4 == 0:
        return
    run, episode, simulator, artifact, envelope = next(_NAMES)
    known = {"run": run, "alias": run, "episode": episode, "episode_id": episode, "step": 2}
    known |= {"name": run, "artifact": artifact, "kind": "validation", "envelope": envelope}
    known |= {"model": simulator, "simulator": simulator}
    known |= {"messages": [{"role": "user", "content": "echo b"}]}
    for part in (case.path_parameters, case.query, case.body):
        if isinstance(part, dict):
            part.update({name: known[name] for name in part.keys() & known.keys()})
