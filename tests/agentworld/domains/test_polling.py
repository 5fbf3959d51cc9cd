import fcntl
import os
from contextlib import ExitStack

import pytest

from agentworld.domains.polling import wait_ready


@pytest.fixture
def open_pipe():
    """A function that opens a pipe: the files to read from and to write to."""
    with ExitStack() as stack:

        def open_files(ends=os.pipe):
            files = [
                os.fdopen(end, mode, buffering=0)
                for end, mode in zip(ends(), ("rb", "wb"), strict=True)
            ]
            return [stack.enter_context(file) for file in files]

        yield open_files


def test_a_pipe_with_bytes_is_readable(open_pipe):
    reader, writer = open_pipe()
    assert wait_ready(reader.fileno(), 0) == (False, False)
    writer.write(b"a")
    assert wait_ready(reader.fileno(), 60) == (True, False)


def test_a_pipe_that_has_ended_is_readable(open_pipe):
    reader, writer = open_pipe()
    writer.close()
    assert wait_ready(reader.fileno(), 60) == (True, False)


def test_a_pipe_is_writable_unless_it_is_full_and_open(open_pipe):
    (empty, _), (reader, writer) = open_pipe(), open_pipe()
    assert wait_ready(empty.fileno(), 60, writer=writer.fileno()) == (False, True)
    writer.write(bytes(fcntl.fcntl(writer, fcntl.F_GETPIPE_SZ)))
    assert wait_ready(empty.fileno(), 0, writer=writer.fileno()) == (False, False)
    reader.close()
    assert wait_ready(empty.fileno(), 60, writer=writer.fileno()) == (False, True)


def test_a_terminal_is_readable_and_writable_at_the_same_time(open_pipe):
    master, line = open_pipe(os.openpty)
    assert wait_ready(master.fileno(), 60, writer=master.fileno()) == (False, True)
    line.write(b"a")
    assert wait_ready(master.fileno(), 60) == (True, False)
    assert wait_ready(master.fileno(), 60, writer=master.fileno()) == (True, True)


def test_a_closed_descriptor_raises_an_error(open_pipe):
    reader, _ = open_pipe()
    descriptor = reader.fileno()
    reader.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        wait_ready(descriptor, 60)
