"""OpenAPI links from each answer to the next requests, so that a generic client finds the way from
a run to its steps.
"""

_Links = dict[int | str, dict[str, object]]


def _links(**operations: dict[str, object]) -> _Links:
    """The links of an endpoint's answer; an operation has the name of its function."""
    links = {name: {"operationId": name, **link} for name, link in operations.items()}
    return {200: {"links": links}}


_RUN = "$response.body#/run/id"
OF_A_RUN = _links(
    reset={"requestBody": {"run": _RUN}},
    get_run={"parameters": {"run": _RUN}},
    close_run={"parameters": {"run": _RUN}},
)

_EPISODE = "$response.body#/episode"
OF_AN_EPISODE = _links(
    step={"requestBody": {"episode": _EPISODE, "step": 1}},
    get_state={"parameters": {"episode": _EPISODE}},
    close_episode={"parameters": {"episode": _EPISODE}},
)
