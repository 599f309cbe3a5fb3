"""A proxy before a broker that breaks connections just before some answers to Produce requests.

The records of such a request are written, and the client does not learn it.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from kafkaesque.server.edge.listening_sockets import stop_listening
from kafkaesque.testing.process import HOST
from kafkaesque.testing.proxy import ProxyThread

_LENGTH_BYTES = 4
_CORRELATION_AT = 4
_PRODUCE = 0
_LINK_BYTE = 1
"""The first bytes of links between brokers; they pass unchanged."""
_HEAD_BYTES = 300
"""How much of a request contains its client and transactional id."""
_CHUNK_BYTES = 256 << 10

Chooses = Callable[[], bool]
"""Called for every answer to a Produce request: whether it gets lost."""


class LostAnswers:
    """The address of one broker, as its clients see it; `target_port` is the broker's own.

    Only requests with the bytes `of` in their head can lose their answers.
    """

    def __init__(self, is_lost: Chooses, of: bytes = b"") -> None:
        self.port = 0
        self.target_port = 0
        self.count = 0
        """How many answers have been lost."""
        self._is_lost = is_lost
        self._of = of
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> "LostAnswers":
        self._thread = ProxyThread()
        self._server = self._thread.run(asyncio.start_server(self._accept, HOST, 0))
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._thread.run(self._hang_up())
        self._thread.close()

    @property
    def bootstrap(self) -> str:
        """The bootstrap address for clients."""
        return f"{HOST}:{self.port}"

    async def _hang_up(self) -> None:
        await stop_listening([self._server])
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._carry(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        produced: set[bytes] = set()

        def asked(frame: bytes) -> bool:
            is_chosen = self._of in frame[:_HEAD_BYTES]
            if int.from_bytes(frame[:2], "big") == _PRODUCE and is_chosen:
                produced.add(frame[_CORRELATION_AT : _CORRELATION_AT + 4])
            return True

        def answered(frame: bytes) -> bool:
            if frame[:4] not in produced:
                return True
            produced.discard(frame[:4])
            if not self._is_lost():
                return True
            self.count += 1
            return False

        back: asyncio.StreamWriter | None = None
        try:
            with suppress(OSError):
                first = await reader.read(1)
                onward, back = await asyncio.open_connection(HOST, self.target_port)
                back.write(first)
                if first == bytes([_LINK_BYTE]):
                    one = asyncio.ensure_future(_pass_on(reader, back))
                    other = asyncio.ensure_future(_pass_on(onward, writer))
                else:
                    one = asyncio.ensure_future(_pipe(reader, back, asked, first))
                    other = asyncio.ensure_future(_pipe(onward, writer, answered))
                try:
                    await asyncio.wait((one, other), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    one.cancel()
                    other.cancel()
        finally:
            for end in (writer, back):
                if end is not None:
                    end.transport.abort()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward everything until one side is gone."""
    with suppress(OSError):
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()


async def _pipe(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    passes: Callable[[bytes], bool],
    sent: bytes = b"",
) -> None:
    """Forward frames until one side is gone, or until one may not pass; `sent` was sent before."""
    with suppress(OSError, asyncio.IncompleteReadError):
        while True:
            length = sent + await reader.readexactly(_LENGTH_BYTES - len(sent))
            frame = await reader.readexactly(int.from_bytes(length, "big"))
            if not passes(frame):
                return
            writer.write(length[len(sent) :] + frame)
            sent = b""
            await writer.drain()
