"""Whether an object is as it was built: others may add to it, and may change nothing."""

from collections.abc import Mapping, Sequence


def is_as_built(built: object, found: object) -> bool:
    """Whether all that was built is in what was found."""
    match built, found:
        case Mapping(), Mapping():
            return all(is_as_built(each, found.get(name)) for name, each in built.items())
        case str(), _:
            return built == found
        case Sequence(), Sequence():
            same = len(built) == len(found)
            return same and all(map(is_as_built, built, found))
        # What is empty is left out by an API server.
        case Mapping() | Sequence(), None:
            return not built
    return built == found
