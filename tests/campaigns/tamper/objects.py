"""An attacker's changes in the object store: texts and reports, each in a file of its digest."""

from collections.abc import Callable

from campaigns.tamper.mutation import Draw, Drawn, Mutation
from campaigns.tamper.world import World

_LONG = """
    SELECT e.run, e.id, text FROM episodes AS e JOIN (
        SELECT episode, action_digest AS text FROM steps WHERE action IS NULL
        UNION SELECT episode, observation_digest FROM steps WHERE observation IS NULL
        UNION SELECT key, opening_digest FROM episodes WHERE opening IS NULL
    ) AS long ON episode = e.key WHERE NOT e.erased
    UNION SELECT alias, alias, report FROM aliases WHERE report IS NOT NULL
"""


def _changed(draw: Draw) -> Mutation:
    position, bit = draw.chance.random(), draw.chance.randrange(8)

    def flip(data: bytes) -> bytes:
        index = int(position * len(data))
        return data[:index] + bytes([data[index] ^ 1 << bit]) + data[index + 1 :]

    return _rewritten(_long_text(draw), flip)


def _cut(draw: Draw) -> Mutation:
    share = draw.chance.random()
    return _rewritten(_long_text(draw), lambda data: data[: int(share * len(data))])


def _exchanged(draw: Draw) -> Mutation | None:
    digest, other_digest = _long_text(draw), _long_text(draw)
    if digest == other_digest:
        return None
    return _rewritten(digest, lambda _: (draw.world.objects / _file(other_digest)).read_bytes())


def _removed(draw: Draw) -> Mutation:
    digest = _long_text(draw)
    return Mutation(frozenset({digest}), lambda world: (world.objects / _file(digest)).unlink())


def _long_text(draw: Draw) -> str:
    """The digest of a long text, which a finding must name."""
    return str(draw.row(_LONG)["text"])


def _file(digest: str) -> str:
    name = digest.removeprefix("sha256:")
    return f"{name[:2]}/{name}"


def _rewritten(digest: str, change: Callable[[bytes], bytes]) -> Mutation:
    def do(world: World) -> None:
        file = world.objects / _file(digest)
        data = change(file.read_bytes())
        file.unlink()  # it may be hard-linked in the unchanged world
        file.write_bytes(data)

    return Mutation(frozenset({digest}), do, digest)


MUTATIONS: dict[str, Drawn] = {
    "object changed": _changed,
    "object cut": _cut,
    "object exchanged": _exchanged,
    "object removed": _removed,
}
