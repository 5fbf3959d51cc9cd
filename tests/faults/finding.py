"""What a checker finds: each is a promise that was broken."""

from typing import Literal, NamedTuple

Kind = Literal[
    "fabricated",
    "lost",
    "doubled",
    "crossed_versions",
    "rewarded",
    "denied",
    "untyped",
    "unaccounted",
    "unchained",
    "unsigned",
]
"""What was broken:

    fabricated        an observation that no engine said whole, to just these messages
    lost              an answer that the ledger does not hold, or holds otherwise
    doubled           a step that was answered in two ways, or taken twice
    crossed_versions  an answer of another simulator than the run's
    rewarded          a reward or an end that the rules do not give
    denied            the answer to a step that was taken, refused to who asks again
    untyped           a failure that is none of ours, or an answer that is none
    unaccounted       an episode or an entry that the run's log does not account for
    unchained         a digest that does not follow from what it is said to cover
    unsigned          a log without a good signature over all of it, here and in the second store
"""


class Finding(NamedTuple):
    """One broken promise, and where."""

    kind: Kind
    told: str
