"""Forwards a port of a network namespace to this machine's loopback.

Arguments: PID ADDRESS PORT OWN-PORT; the namespace is that of the process.
"""

import asyncio
import ctypes
import os
import socket
import sys

_NETWORK = 0x40000000  # CLONE_NEWNET

# The time-out for a pod whose network is gone, or that was terminating when a Service chose it.
_SECONDS = 6
_PATIENCE = {
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE): 1,
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE): 2,
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL): 2,
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT): _SECONDS * 1_000,
}


def main(pid: str, address: str, port: int, own_port: int) -> None:
    listener = socket.create_server(("127.0.0.1", own_port), backlog=512)
    # The listening socket was created here and stays here; new sockets are in the namespace.
    with open(f"/proc/{pid}/ns/net") as namespace:
        library = ctypes.CDLL(None, use_errno=True)
        if library.setns(namespace.fileno(), _NETWORK):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    asyncio.run(_serve(listener, address, port))


async def _serve(listener: socket.socket, address: str, port: int) -> None:
    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_SECONDS):
                far_reader, far_writer = await asyncio.open_connection(address, port)
        except OSError:  # including TimeoutError
            writer.transport.abort()
            return
        for option, value in _PATIENCE.items():
            far_writer.get_extra_info("socket").setsockopt(*option, value)
        await asyncio.gather(_copied(reader, far_writer), _copied(far_reader, writer))

    server = await asyncio.start_server(connect, sock=listener)
    await server.serve_forever()


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.transport.abort()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
