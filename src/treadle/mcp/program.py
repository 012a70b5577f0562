"""Program: a server that is a program on this machine, spoken to over its standard input and output, a line a message.

Nothing that it writes can take this process down: a line has a bound, what is no message is passed over, and what it
says on its standard error is kept, of which the end is shown if it does not start. With it goes all that it started.
"""

import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

import anyio
from anyio.abc import Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from treadle.mcp.secrets import Secrets
from treadle.mcp.unanswered import JUNK, OF_TRANSPORTS, Gone, marked

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

LONGEST_LINE: Final = 50_000_000
"""Bytes of one message: more than any result that could be kept, and no more than a process can spare."""

MOST_JUNK: Final = 1000
"""Lines that are no message, after which it is taken for a program that speaks no MCP."""

MOST_SAID: Final = 500
"""Characters of what it said on its standard error that are shown if it does not start."""

_LOOKED_AT: Final = 1_000_000

MOST_KEPT: Final = 20_000_000
"""Bytes of what it says there that are kept on disk."""

LOOKS: Final = 5.0
"""Seconds between two looks at how much that is."""

PATIENCE: Final = 2.0
"""Seconds that it is given to end by itself, and again after it was told to."""

_BROKEN = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError)


class Command(NamedTuple):
    """What is started: the program, its arguments, its environment beside the usual few, and its folder."""

    program: str
    arguments: Sequence[str] = ()
    env: Mapping[str, str] = {}
    cwd: str | Path | None = None


class Said:
    """What a program said on its standard error.

    Args:
        secrets: what is not shown of it.

    Attributes:
        end: the end of it, on one line, once the program has ended.
    """

    def __init__(self, secrets: Secrets) -> None:
        self._secrets, self.end = secrets, ""

    @contextmanager
    def heard(self) -> Iterator[IO[bytes]]:
        """The file that it is said to."""
        with tempfile.TemporaryFile() as file:
            try:
                yield file
            finally:
                size = os.fstat(file.fileno()).st_size
                file.seek(max(0, size - _LOOKED_AT))
                text = self._secrets.hidden(file.read(_LOOKED_AT).decode("utf-8", "replace"))
                # Hidden before it is cut: of a secret that is cut the rest would be shown.
                whole = text if size <= _LOOKED_AT else text[self._secrets.longest :]
                self.end = " ".join(whole[-MOST_SAID:].split())


@asynccontextmanager
async def spoken_to(command: Command, said: Said) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of messages from and to a program, which is started for it and ended after it.

    Raises:
        OSError: it cannot be started.
    """
    from mcp.client.stdio import get_default_environment

    with said.heard() as errors:
        # Cut off in the middle, asyncio would leave its pipes open; it is ended as soon as it has begun.
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(
                [command.program, *command.arguments],
                env=get_default_environment() | dict(command.env),
                cwd=command.cwd,
                stderr=errors,
                start_new_session=sys.platform != "win32",
            )
        async with _streams(process, errors) as streams:
            yield streams


@asynccontextmanager
async def _streams(process: Process, errors: IO[bytes]) -> AsyncIterator[tuple[Any, Any]]:
    heard: tuple[MemoryObjectSendStream[Any], MemoryObjectReceiveStream[Any]]
    asked: tuple[MemoryObjectSendStream[Any], MemoryObjectReceiveStream[Any]]
    heard, asked = anyio.create_memory_object_stream(0), anyio.create_memory_object_stream(0)
    async with anyio.create_task_group() as group, process:
        group.start_soon(_hear, process, heard[0])
        group.start_soon(_ask, process, asked[1], heard[0])
        group.start_soon(_forget, errors)
        try:
            yield heard[1], asked[0]
        finally:
            with anyio.CancelScope(shield=True):
                for stream in (*heard, *asked):
                    stream.close()
                await _ended(process)
            group.cancel_scope.cancel()


async def _forget(errors: IO[bytes]) -> None:
    """Empties now and then what it is said to: a program that is held for weeks would fill the disk."""
    while True:
        await anyio.sleep(LOOKS)
        if os.fstat(errors.fileno()).st_size > MOST_KEPT:
            # The place that it writes to is this one's, too.
            os.lseek(errors.fileno(), 0, os.SEEK_SET)
            os.ftruncate(errors.fileno(), 0)


async def _hear(process: Process, heard: "MemoryObjectSendStream[SessionMessage]") -> None:
    """Passes on the messages that it writes, until it ends or says what no server would."""
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    junk, parts, length = 0, list[bytes](), 0
    with heard, suppress(*_BROKEN):
        while process.stdout is not None and junk <= MOST_JUNK and length <= LONGEST_LINE:
            piece = await process.stdout.receive()
            *lines, rest = piece.split(b"\n")
            for line in lines:
                whole, parts, length = b"".join([*parts, line]), [], 0
                try:
                    message = jsonrpc_message_adapter.validate_json(whole, by_name=False)
                except ValueError:
                    junk += bool(whole.strip())
                    message = _refused(whole)
                if message is not None:
                    message = _its_own(message)
                    await heard.send(SessionMessage(message))
            parts.append(rest)
            length += len(rest)


def _its_own(message: Any) -> Any:
    """An error in the program's words, which must not be taken for those in which a transport tells of its end: a call
    that the server has answered was made, and is not made again.
    """
    from mcp_types import JSONRPCError

    if not isinstance(message, JSONRPCError):
        return message
    words = message.error.message
    if not words.startswith(OF_TRANSPORTS):
        return message
    error = message.error.model_copy(update={"message": f"it says: {words}"})
    return message.model_copy(update={"error": error})


def _refused(line: bytes) -> Any:
    """For an answer that is no message: an error in its place, lest somebody wait for it. None for any other junk."""
    from mcp_types import ErrorData, JSONRPCError

    try:
        found = json.loads(line) if line.lstrip().startswith(b"{") else None
    except (ValueError, RecursionError):
        return None
    number = found.get("id") if isinstance(found, dict) and "method" not in found else None
    if isinstance(number, bool) or not isinstance(number, (int, str)):
        return None
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(**marked(Gone, JUNK)))


async def _ask(process: Process, asked: "MemoryObjectReceiveStream[SessionMessage]", heard: Any) -> None:
    with suppress(*_BROKEN):
        async with asked:
            async for one in asked:
                if process.stdin is not None:
                    text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await process.stdin.send(text.encode() + b"\n")
        return
    # Nothing can be said to it any more: whoever waits for an answer is told.
    heard.close()


async def _ended(process: Process) -> None:
    """Ends it and all that it started: by the end of its input, by word, by force."""
    if process.stdin is not None:
        with suppress(*_BROKEN):
            await process.stdin.aclose()
    for how in (None, signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        if how is not None:
            _tell(process, how)
        with anyio.move_on_after(PATIENCE):
            # Not `process.wait()`, which waits for whoever has inherited its output, too.
            while process.returncode is None:  # noqa: ASYNC110 - nothing tells of it
                await anyio.sleep(0.005)
            break
    if sys.platform != "win32":
        # What it started and left behind.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _tell(process: Process, how: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, how)
