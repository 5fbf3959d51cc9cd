"""The number of an engine's replicas, by its open episodes."""

from typing import NamedTuple

from agentworld.cluster.records.serving import Bounds, Serving


class Scale(NamedTuple):
    """A number of replicas, and since when fewer would be enough."""

    replicas: int
    idle_since: float | None = None


def choose_scale(serving: Serving, current: Scale, open_episodes: int | None, now: float) -> Scale:
    """The next number; `now` is any monotonic time in seconds.

    Scales up at once. Scales down if fewer replicas were enough for all of `idle_seconds`. If the
    number of open episodes is unknown, it does not scale down.
    """
    if serving.suspend:
        return Scale(0)
    bounds = serving.bounds
    if bounds is None:
        return Scale(serving.replicas)
    current = current._replace(replicas=_within(bounds, current.replicas))
    if open_episodes is None:
        return current._replace(idle_since=None)
    needed = _within(bounds, -(-open_episodes // bounds.episodes_per_replica))
    if needed >= current.replicas:
        return Scale(needed)
    since = now if current.idle_since is None else current.idle_since
    return Scale(needed) if now - since >= bounds.idle_seconds else Scale(current.replicas, since)


def _within(bounds: Bounds, replicas: int) -> int:
    return max(bounds.min, min(bounds.max, replicas))
