"""Waits for pipes and terminals, also for file descriptors above 1,023, which `select` refuses."""

import errno
import os
import select

_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR
_WRITABLE = select.POLLOUT | select.POLLERR


def wait_ready(reader: int, seconds: float, *, writer: int | None = None) -> tuple[bool, bool]:
    """Waits at most `seconds`; whether `reader` has bytes or has ended, and whether `writer` takes
    bytes or has ended.

    Raises OSError if one of the descriptors is not open.
    """
    interests = {reader: select.POLLIN}
    if writer is not None:
        interests[writer] = interests.get(writer, 0) | select.POLLOUT
    poll = select.poll()
    for descriptor, events in interests.items():
        poll.register(descriptor, events)
    occurred = dict(poll.poll(seconds * 1_000))
    if any(events & select.POLLNVAL for events in occurred.values()):
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    is_writable = writer is not None and occurred.get(writer, 0) & _WRITABLE
    return bool(occurred.get(reader, 0) & _READABLE), bool(is_writable)
