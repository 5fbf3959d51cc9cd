"""The stdio transport of MCP over the pipes of a process that somebody else started."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import IO, Protocol

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

_MOST_BYTES = 1 << 20
"""Of a message; a server that answers more has flooded its client."""


class ServerProcess(Protocol):
    """A running server. It knows its wall, and nothing that talks with it does."""

    @property
    def stdin(self) -> IO[bytes]:
        """The pipe to it."""

    @property
    def stdout(self) -> IO[bytes]:
        """The pipe from it."""

    def last_words(self) -> str:
        """The end of what it wrote to its error output."""

    def close(self) -> None:
        """Ends it and all that it started."""


Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]
"""What a client of the `mcp` package reads from and writes to."""


@asynccontextmanager
async def pipe_streams(process: ServerProcess, ended: asyncio.Event) -> AsyncIterator[Streams]:
    """The streams to a process; `ended` is set before the client sees that its output is over."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_MOST_BYTES)
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
            group.start_soon(_read, reader, to_client, ended)
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
    ended: asyncio.Event,
) -> None:
    """Until the output ends or floods; a line that is no message is some program's chatter."""
    async with to_client:
        try:
            while line := await reader.readline():
                if message := _message_of(line):
                    await to_client.send(message)
        except (ValueError, OSError, anyio.BrokenResourceError):
            pass  # a line that is too long, a pipe that broke, a client that has left
        finally:
            ended.set()


async def _write(
    from_client: MemoryObjectReceiveStream[SessionMessage], writer: asyncio.StreamWriter
) -> None:
    """Until the client ends; what a dead server does not read is lost with it."""
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
