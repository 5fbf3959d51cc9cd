"""A clock that a test advances."""


class Clock:
    """Replaces a clock function."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now
