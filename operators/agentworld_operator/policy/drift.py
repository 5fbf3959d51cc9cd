"""Whether an object has drifted: others may add fields to it, and may change none."""

from collections.abc import Mapping, Sequence


def is_as_built(built: object, current: object) -> bool:
    """Whether everything that was built is in the current object."""
    match built, current:
        case Mapping(), Mapping():
            return all(is_as_built(value, current.get(name)) for name, value in built.items())
        case str(), _:
            return built == current
        case Sequence(), Sequence():
            same = len(built) == len(current)
            return same and all(map(is_as_built, built, current))
        # An API server leaves out empty values.
        case Mapping() | Sequence(), None:
            return not built
    return built == current
