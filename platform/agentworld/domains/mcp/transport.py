"""MCP's stdio transport over the pipes of a process that the caller started."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import IO, Protocol

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

MOST_BYTES = 1 << 20
"""The limit of a message; a longer one ends the connection."""


class ServerProcess(Protocol):
    """A running server. Its client does not need to know whether it runs in a sandbox."""

    @property
    def stdin(self) -> IO[bytes]:
        """The pipe to it."""

    @property
    def stdout(self) -> IO[bytes]:
        """The pipe from it."""

    def error_tail(self) -> str:
        """The last characters of the server's error output."""

    def close(self) -> None:
        """Ends the server and every process that it started."""


class TransportState(Protocol):
    """What a transport knows of the server at its other end."""

    @property
    def has_ended(self) -> bool:
        """Whether the connection has ended, before the client sees that."""

    def is_fault(self, code: int) -> bool:
        """Whether an error with this code means that the connection has ended."""

    def detail(self) -> str:
        """More about the end, as a clause for an error; empty if nothing is known."""


class PipeState:
    """See `TransportState`."""

    def __init__(self, process: ServerProcess) -> None:
        self.has_ended = False
        self._process = process

    def is_fault(self, _: int) -> bool:
        """Whether the server's output has ended."""
        return self.has_ended

    def detail(self) -> str:
        """The end of the error output."""
        tail = self._process.error_tail()
        return f"; its error output ends with {tail!r}" if tail else ""


Streams = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]
"""What a client of the `mcp` package reads from and writes to."""


@asynccontextmanager
async def pipe_streams(process: ServerProcess, state: PipeState) -> AsyncIterator[Streams]:
    """The streams to a process; `state` says before the client sees it that its output ended."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MOST_BYTES)
    output, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), process.stdout
    )
    input_, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), process.stdin
    )
    writer = asyncio.StreamWriter(input_, protocol, None, loop)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_read, reader, to_client, state)
            group.start_soon(_write, from_client, writer)
            try:
                yield from_server, to_server
            finally:
                group.cancel_scope.cancel()
    finally:
        output.close()
        if not input_.is_closing():  # a pipe that broke has closed it
            input_.abort()
        for stream in (to_client, from_server, to_server, from_client):
            stream.close()


async def _read(
    reader: asyncio.StreamReader,
    to_client: MemoryObjectSendStream[SessionMessage | Exception],
    state: PipeState,
) -> None:
    """Reads until the output ends or a line is too long; skips lines that are not messages."""
    async with to_client:
        try:
            while line := await reader.readline():
                if message := _message_of(line):
                    await to_client.send(message)
        except (ValueError, OSError, anyio.BrokenResourceError):
            pass  # too long a line, a broken pipe, or a client that closed its stream
        finally:
            state.has_ended = True


async def _write(
    from_client: MemoryObjectReceiveStream[SessionMessage], writer: asyncio.StreamWriter
) -> None:
    """Writes until the client closes its stream; stops if the server has ended."""
    async with from_client:
        async for item in from_client:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            writer.write(f"{text}\n".encode())
            try:
                await writer.drain()
            except OSError:
                return


def _message_of(line: bytes) -> SessionMessage | None:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None
