"""Conversation: messages that outlive one run. Holds no instructions: those belong to the agent that is asked."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from treadle.kernel.errors import Misuse
from treadle.kernel.history import completed
from treadle.kernel.messages import (
    AssistantMessage,
    Content,
    Message,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)

FORMAT = 1
"""The version of the saved form."""


class _Header(msgspec.Struct, frozen=True):
    format: int


class _Saved(_Header, frozen=True):
    messages: tuple[Message, ...]


class Conversation:
    """A history that runs continue. Pass it to `agent.run(…, conversation=…)`; afterwards it holds what was said.

    One run at a time may use it. A run that fails or is cancelled leaves it valid: each tool call in it has its result.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages = completed(message for message in messages if not isinstance(message, SystemMessage))
        self._open: dict[str, ToolCall] = {}
        self._in_use = False

    @property
    def messages(self) -> Sequence[Message]:
        """What has been said, oldest first; tool calls without a result are answered by a note that there is none."""
        return tuple(completed(self._messages))

    def __len__(self) -> int:
        """How many messages `messages` has."""
        return len(self.messages)

    def add_user(self, content: str | Sequence[Content]) -> None:
        """Adds what a person said: text, or text with images and files."""
        self._messages.append(UserMessage(content if isinstance(content, str) else tuple(content)))

    def add_assistant(self, text: str = "", calls: Iterable[ToolCall] = ()) -> None:
        """Adds what the assistant said, and the tool calls it made, whose results `add_tool_result` adds."""
        made = tuple(calls)
        if not text and not made:
            raise Misuse("add_assistant takes a text, tool calls, or both; it was given neither")
        self._messages.append(AssistantMessage((*([Text(text)] if text else []), *made)))
        self._open = {call.id: call for call in made}

    def add_tool_result(self, call_id: str, content: str | Sequence[Content], *, is_error: bool = False) -> None:
        """Adds the one result of a tool call of the last assistant message.

        Raises:
            Misuse: that message made no such call, or the call has its result already.
        """
        call = self._open.pop(call_id, None)
        if call is None:
            waiting = ", ".join(repr(id) for id in self._open) or "none is"
            raise Misuse(f"no tool call {call_id!r} waits for a result in this conversation; open: {waiting}")
        content = content if isinstance(content, str) else tuple(content)
        self._messages.append(ToolMessage(call.id, call.name, content, is_error))

    def to_langchain(self) -> list[Any]:
        """The messages as LangChain's; needs the extra `langchain`."""
        from treadle.models.langchain import to_langchain

        return to_langchain(self.messages)

    @classmethod
    def from_langchain(cls, messages: Iterable[Any]) -> "Conversation":
        """A conversation of LangChain's messages; system messages are left out, as instructions are the agent's."""
        from treadle.models.langchain import from_langchain

        return cls(from_langchain(messages))

    def replace(self, messages: Iterable[Message]) -> None:
        """Puts `messages` in place of all that was said."""
        self._messages = completed(message for message in messages if not isinstance(message, SystemMessage))
        self._open = {}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the conversation to a file as JSON, whole or not at all; only its owner may read it."""
        target = Path(path)
        data = msgspec.json.format(msgspec.json.encode(_Saved(FORMAT, tuple(self.messages))), indent=1)
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Conversation":
        """The conversation that `save` wrote.

        Raises:
            FileNotFoundError: there is no such file.
            Misuse: it holds no conversation, or one of a newer treadle.
        """
        data = Path(path).read_bytes()
        try:
            header = msgspec.json.decode(data, type=_Header)
            if header.format > FORMAT:
                raise Misuse(
                    f"{os.fspath(path)} was saved by a newer treadle (format {header.format}, this reads {FORMAT}): "
                    "upgrade treadle to read it"
                )
            saved = msgspec.json.decode(data, type=_Saved)
        except msgspec.DecodeError as error:
            raise Misuse(f"{os.fspath(path)} holds no saved conversation: {error}") from error
        return cls(saved.messages)

    def begin(self, known: Sequence[Message] | None = None) -> list[Message]:
        """The messages for a run to start from; the conversation is its own until `end`.

        Args:
            known: for a run that is taken up again, what was said in it, of which the conversation must be a beginning.

        Raises:
            Misuse: another run is using it, or more was said in it meanwhile.
        """
        if known is not None and list(known[: len(self)]) != list(self.messages):
            raise Misuse(
                "more was said in this conversation since the run paused, and would be lost: resume the run without "
                "it, or start another run in it"
            )
        if self._in_use:
            raise Misuse(
                "this conversation is in use by another run; wait for it, or use a copy: Conversation(c.messages)"
            )
        self._in_use = True
        return completed(self._messages)

    def end(self, messages: Iterable[Message] | None) -> None:
        """A run is over, and this is what was said in all; None if it never began."""
        self._in_use = False
        if messages is not None:
            self.replace(messages)
