"""A TCP proxy whose answers come later: python delay.py PORT SECONDS; prints its own port.

It makes a server on this machine as far away as one on another continent, and costs it nothing else: what arrives is
sent on as it came, in order, only later.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque


class Toward(asyncio.Protocol):
    """One direction of a connection: what it gets goes to `other` after `delay_seconds`."""

    def __init__(self, delay_seconds: float) -> None:
        self.delay_seconds = delay_seconds
        self.other: asyncio.WriteTransport | None = None
        self.transport: asyncio.Transport | None = None
        self.waiting: deque[bytes | None] = deque()  # timers of one moment may come in any order, bytes must not

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._later(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._later(None)

    def _later(self, data: bytes | None) -> None:
        self.waiting.append(data)
        if self.delay_seconds or self.other is None:
            asyncio.get_running_loop().call_later(self.delay_seconds, self._pass_on)
        else:
            self._pass_on()

    def _pass_on(self) -> None:
        if self.other is None:  # not connected yet: soon
            asyncio.get_running_loop().call_later(0.001, self._pass_on)
            return
        data = self.waiting.popleft()
        if data is None:
            self.other.close()
        else:
            self.other.write(data)


class Client(Toward):
    """The client's side; its server is connected to when it comes."""

    def __init__(self, target: int, delay_seconds: float) -> None:
        super().__init__(0.0)
        self.target = target
        self.answers = Toward(delay_seconds)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.task = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        server, _ = await loop.create_connection(lambda: self.answers, "127.0.0.1", self.target)
        self.answers.other = self.transport
        self.other = server


async def serve(target: int, delay_seconds: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Client(target, delay_seconds), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2])))
