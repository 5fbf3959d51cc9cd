"""Whether an object is as it was built: others may add to it, and may change nothing."""

from collections.abc import Mapping, Sequence


def is_as_built(built: object, current: object) -> bool:
    """Whether all that was built is in what was found."""
    match built, current:
        case Mapping(), Mapping():
            return all(is_as_built(value, current.get(name)) for name, value in built.items())
        case str(), _:
            return built == current
        case Sequence(), Sequence():
            same = len(built) == len(current)
            return same and all(map(is_as_built, built, current))
        # What is empty is left out by an API server.
        case Mapping() | Sequence(), None:
            return not built
    return built == current
