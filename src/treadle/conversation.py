"""Conversation: messages that outlive one run. Holds no instructions: those belong to the agent that is asked."""

import errno
import json
import os
import reprlib
import secrets
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from treadle.context.completed import completed
from treadle.context.ids_apart import apart, with_ids_apart
from treadle.context.storable import storable, storable_text
from treadle.kernel.errors import Misuse
from treadle.kernel.messages import (
    AssistantMessage,
    Content,
    File,
    Image,
    Message,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from treadle.misnamed import OF_CONVERSATIONS, Misnamed

FORMAT = 1
"""The version of the saved form."""


class _Header(msgspec.Struct, frozen=True):
    format: int


class _Saved(_Header, frozen=True):
    messages: tuple[Message, ...]
    name: str = ""


class Conversation(Misnamed):
    """A history that runs continue. Pass it to `agent.run(…, conversation=…)`; afterwards it holds what was said.

    One run at a time may use it. A run that fails or is cancelled leaves it valid: each tool call in it has its result.
    What cannot be said is refused with a `Misuse`, and the conversation is then as it was. Lone surrogates in a text,
    which no file and no provider takes, become question marks.

    Args:
        messages: what was said before.
        name: what it is called in budgets (`Budget(per="conversation")`); it is saved and loaded with it. By default a
            name that no other has: a copy, `Conversation(c.messages)`, is another conversation.
    """

    _other_names = OF_CONVERSATIONS

    def __init__(self, messages: Iterable[Message] = (), *, name: str | None = None) -> None:
        if name is not None and not (isinstance(name, str) and name):
            raise Misuse(f"Conversation takes a text as its name; it was given {_shown(name)}")
        self._messages = _said(messages)
        self._ids = _ids_in(self._messages)
        self._name = None if name is None else storable_text(name)
        self._open: dict[str, ToolCall] = {}
        self._in_use = False
        self._left: tuple[str, Sequence[Message]] | None = None

    @property
    def name(self) -> str:
        """What it is called, by which budgets know it again."""
        if self._name is None:
            self._name = secrets.token_hex(8)
        return self._name

    @property
    def messages(self) -> Sequence[Message]:
        """What has been said, oldest first; tool calls without a result are answered by a note that there is none."""
        return tuple(completed(self._messages))

    def __getstate__(self) -> dict[str, Any]:
        """What a copy has: the name, lists of its own, and no run that would give it back."""
        own = {"_messages": [*self._messages], "_ids": {*self._ids}, "_open": {**self._open}, "_in_use": False}
        return {**self.__dict__, "_name": self.name, **own}

    def __len__(self) -> int:
        """How many messages `messages` has."""
        return len(self.messages)

    def add_user(self, content: str | Sequence[Content]) -> None:
        """Adds what a person said: text, or text with images and files.

        Raises:
            Misuse: it is neither, there is nothing in it, or a run is using the conversation.
        """
        self._require_free("add_user")
        self._messages.append(storable(UserMessage(_content("add_user", content, may_be_empty=False))))

    def add_assistant(self, text: str | None = "", calls: Iterable[ToolCall | Mapping[str, Any]] = ()) -> None:
        """Adds what the assistant said, and the tool calls it made, whose results `add_tool_result` adds.

        Args:
            text: what it said; empty or None if it only made calls.
            calls: each a `ToolCall`, or a dict `{"id": …, "name": …, "arguments": …}` with the arguments as a dict or
                as JSON text, or OpenAI's `{"id": …, "function": {"name": …, "arguments": …}}`. They may be called
                "input" or "args" too, as elsewhere. One with the id of an earlier message's call stands here under
                another, as providers may take no two of one id.

        Raises:
            Misuse: it says nothing, a call is none, two calls have the same id, or a run is using the conversation.
        """
        self._require_free("add_assistant")
        if text is not None and not isinstance(text, str):
            raise Misuse(f"add_assistant takes text, or None; it was given {_shown(text)}")
        if isinstance(calls, (str, Mapping)) or not isinstance(calls, Iterable):
            raise Misuse(f"add_assistant takes a list of calls; it was given {_shown(calls)}")
        made = [_call(call) for call in calls]
        message = storable(AssistantMessage((*([Text(text)] if text else []), *made)))
        if not message.says_something:
            raise Misuse("add_assistant takes a text, tool calls, or both; it was given neither")
        opened = {call.id: call for call in message.calls}
        if len(opened) < len(made):
            raise Misuse(
                f"each call of a message has an id of its own, by which its result is added; these have "
                f"{', '.join(repr(call.id) for call in made)}"
            )
        sound = apart(message, self._ids)
        self._messages.append(sound)
        self._open = dict(zip(opened, sound.calls, strict=True))

    def add_tool_result(self, call_id: str, content: str | Sequence[Content], *, is_error: bool = False) -> None:
        """Adds the one result of a tool call of the last assistant message: text, or text with images and files.

        Raises:
            Misuse: that message made no such call, the call has its result already, the content is something else, or a
                run is using the conversation.
        """
        self._require_free("add_tool_result")
        call = self._waiting(storable_text(call_id)) if isinstance(call_id, str) else None
        if call is None:
            waiting = ", ".join(repr(id) for id in self._open) or "none is"
            raise Misuse(f"no tool call {call_id!r} waits for a result in this conversation; open: {waiting}")
        shown = _content("add_tool_result", content, may_be_empty=True)
        self._messages.append(storable(ToolMessage(call.id, call.name, shown, bool(is_error))))
        self._open = {asked: one for asked, one in self._open.items() if one.id != call.id}

    def _waiting(self, call_id: str) -> ToolCall | None:
        """The call that waits under that id, as it was added or as it stands here."""
        return self._open.get(call_id) or next((one for one in self._open.values() if one.id == call_id), None)

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
        """Puts `messages` in place of all that was said.

        Raises:
            Misuse: a run is using the conversation, or there is in them what no conversation holds.
        """
        self._require_free("replace")
        self._messages = _said(messages)
        self._ids = _ids_in(self._messages)
        self._open = {}

    def _require_free(self, what: str) -> None:
        if self._in_use:
            raise Misuse(
                f"{what}: a run is using this conversation, and what it says will take the place of all that is there: "
                "say it to the run (run.send), or wait for it"
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the conversation to a file as JSON, whole or not at all; only its owner may read it.

        Where a link is named, the file that it leads to is written, and the link stays.

        Raises:
            OSError: it cannot be written, or what stands there is no file, such as a device, which would be replaced.
        """
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file() and not target.is_dir():
            raise OSError(errno.EINVAL, "it is no regular file", str(target))
        data = msgspec.json.format(msgspec.json.encode(_Saved(FORMAT, tuple(self.messages), self.name)), indent=1)
        # A draft of its own each time: two threads that save at once would otherwise write into each other's.
        number, draft = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
        try:
            with open(number, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, target)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
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
        except (msgspec.DecodeError, RecursionError) as error:
            raise Misuse(f"{os.fspath(path)} holds no saved conversation: {error}") from error
        return cls(saved.messages, name=saved.name or None)

    def begin(
        self, known: Sequence[Message] | None = None, kept: Sequence[Message] | None = None, run_id: str = ""
    ) -> list[Message]:
        """The messages for a run to start from; the conversation is its own until `end`.

        Args:
            known: for a run that is taken up again, what was said in it, of which the conversation must be a beginning.
            kept: the conversation as the run's journal has it, where that redacts; None if it is as it is here.
            run_id: that run. What it left here itself, and nobody has added to, it may put anything in place of: it
                may have gone on elsewhere, or its journal may have failed before it had all of it.

        Raises:
            Misuse: another run is using it, or more was said in it meanwhile.
        """
        self.require_free(known, kept, run_id)
        self._in_use = True
        return completed(self._messages)

    def require_free(
        self, known: Sequence[Message] | None = None, kept: Sequence[Message] | None = None, run_id: str = ""
    ) -> None:
        """Refuses what `begin` would refuse."""
        here = list(self.messages)
        left = self._left is not None and self._left[0] == run_id and list(self._left[1]) == here
        if (
            known is not None
            and not left
            # It may have begun where ids of calls came twice, which a conversation tells apart.
            and with_ids_apart(known[: len(here)]) not in (here, here if kept is None else list(kept))
        ):
            raise Misuse(
                "more was said in this conversation than the run has, and would be lost, or the run went on without "
                "it: resume the run without it, or start another run in it"
            )
        if self._in_use:
            raise Misuse(
                "this conversation is in use by another run; wait for it, or use a copy: Conversation(c.messages)"
            )

    def end(self, messages: Iterable[Message] | None, run_id: str = "") -> None:
        """A run is over, and this is what was said in all; None if it never began."""
        self._in_use = False
        if messages is not None:
            self.replace(messages)
            self._left = run_id, self.messages


def _said(messages: Iterable[Message]) -> list[Message]:
    """`messages` made valid and storable, without instructions."""
    if isinstance(messages, str):
        raise Misuse(f"Conversation takes messages, and its name as name=; it was given {_shown(messages)}")
    given: list[Any] = list(messages) if isinstance(messages, Iterable) else [messages]
    for message in given:
        if not isinstance(message, (SystemMessage, UserMessage, AssistantMessage, ToolMessage)):
            raise Misuse(
                "a conversation holds UserMessage, AssistantMessage and ToolMessage (others' messages: "
                f"Conversation.from_langchain); it was given {_shown(message)}"
            )
    said = [storable(message) for message in given if not isinstance(message, SystemMessage)]
    try:
        msgspec.json.decode(msgspec.json.encode(said), type=list[Message])
    except msgspec.ValidationError as error:
        raise Misuse(f"a message holds what no message may, and could not be loaded again: {error}") from error
    return with_ids_apart(completed(said))


def _ids_in(messages: Iterable[Message]) -> set[str]:
    """The ids of the calls in `messages`."""
    return {call.id for message in messages if isinstance(message, AssistantMessage) for call in message.calls}


def _content(where: str, content: object, *, may_be_empty: bool) -> str | tuple[Content, ...]:
    """The content of a message, each text that stands among its parts as a `Text`."""
    given = [content] if isinstance(content, (str, Text, Image, File)) else content
    if not isinstance(given, (list, tuple)):
        raise Misuse(f"{where} takes text, or a list of Text, Image and File parts; it was given {_shown(content)}")
    parts: list[Content] = [Text(part) if isinstance(part, str) else part for part in given]
    for part in parts:
        if not isinstance(part, (Text, Image, File)) or not isinstance(getattr(part, "text", ""), str):
            raise Misuse(f"{where} takes text, or a list of Text, Image and File parts; there is {_shown(part)} in it")
    if not may_be_empty and all(isinstance(part, Text) and not part.text.strip() for part in parts):
        raise Misuse(f"{where} takes something that was said; there is nothing in {_shown(content)}")
    return str.__str__(content) if isinstance(content, str) else tuple(parts)


def _call(given: object) -> ToolCall:
    """A tool call in one of the forms that `add_assistant` takes."""
    id: Any
    name: Any
    arguments: Any
    if isinstance(given, ToolCall):
        id, name, arguments, item_id = given.id, given.name, given.arguments, given.item_id
    elif isinstance(given, Mapping):
        inner = given.get("function")
        what = inner if isinstance(inner, Mapping) else given
        id, name, arguments, item_id = given.get("id"), what.get("name"), _arguments_in(what), None
    else:
        raise Misuse(f"a tool call is a ToolCall, or a dict with id, name and arguments; it was given {_shown(given)}")
    if not (isinstance(id, str) and id and isinstance(name, str) and name):
        raise Misuse(f"a tool call has an id and a name, each a text and not empty; there is none in {_shown(given)}")
    if isinstance(arguments, Mapping):
        try:
            arguments = json.dumps({**arguments}, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise Misuse(f"the arguments of call {id!r} have no JSON form: {error}") from error
    if arguments is not None and not isinstance(arguments, str):
        raise Misuse(f"the arguments of call {id!r} are a dict or JSON text; they were given as {_shown(arguments)}")
    return ToolCall(id, name, arguments or "", item_id)


def _arguments_in(call: Mapping[Any, Any]) -> Any:
    """What a call that is a dict is to be made with, by any of the names that libraries have for it."""
    found = [name for name in ("arguments", "input", "args") if name in call]
    if len(found) > 1 or (not found and call.keys() - {"id", "name", "type", "index"}):
        raise Misuse(f"the arguments of a tool call stand under 'arguments'; it was given {_shown(call)}")
    return call[found[0]] if found else None


def _shown(value: object) -> str:
    return f"{reprlib.repr(value)} (of type {type(value).__name__})"
