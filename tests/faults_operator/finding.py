"""What a judge finds: each is an object that is not as its spec wants it, or a promise broken."""

from typing import Literal, NamedTuple

Kind = Literal[
    "missing",
    "left over",
    "otherwise",
    "unrun",
    "untrue",
    "unrecorded",
    "recorded twice",
    "restless",
    "usurped",
    "blind",
    "mistaken",
]
"""What is wrong:

    missing         a child that is not there
    left over       a child of nobody
    otherwise       a child that is not as its Simulator's spec wants it
    unrun           a Deployment that has not the replicas that it wants
    untrue          a status that does not say what is so, or says it of an older spec
    unrecorded      a name whose meaning, or whose move, the ledger does not know
    recorded twice  a move that somebody asked for once
    restless        a write while nothing changes
    usurped         a write of who did not lead any more
    blind           a kind that the leader does not watch
    mistaken        a failure that our own code did not expect
"""


class Finding(NamedTuple):
    """One of them."""

    kind: Kind
    about: str
    """The object, as kind and name."""
    expected: object
    seen: object

    @property
    def told(self) -> str:
        """In one line."""
        return f"{self.kind}: {self.about} should be {self.expected!r} and is {self.seen!r}"
