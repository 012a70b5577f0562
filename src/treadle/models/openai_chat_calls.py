"""The tool calls of a reply of Chat Completions, put together from the pieces that a dozen servers write.

Pure. Servers number calls, or name each by its id, or do neither; some say the whole name again with each piece, and
some use the field from before there were several. Neighbour: `treadle.models.openai_chat_stream`, which reads the rest.
"""

from collections.abc import Iterator
from typing import Any, Final
from uuid import uuid4

from treadle.kernel.messages import Json, ToolCall
from treadle.models.checked import is_object
from treadle.models.contents import arguments_in
from treadle.models.counts import fields_in, name_in
from treadle.models.hosts import SIGNING
from treadle.models.once import are_told_again, ids_told
from treadle.models.port import ModelEvent, ToolCallCompleted, ToolCallDelta, ToolCallStarted

NOTHING: Final = ("{}", "null")
"""What some servers put where the arguments are to come, and go on from."""


class ChatCall:
    """One tool call under way: `said` and `index` are its id and number as the server said them.

    `of` is the completion that it came in.
    """

    __slots__ = ("completed", "held", "id", "index", "kept", "name", "of", "pieces", "said", "started")

    def __init__(self, call_id: str, said: str, index: Any, of: str) -> None:
        self.id = call_id
        self.said = said
        self.index = index
        self.of = of
        self.name = ""
        self.pieces: list[str] = []
        self.held = ""
        self.started = False
        self.completed = False
        self.kept: Json = {}

    @property
    def arguments(self) -> str:
        """As far as they have come."""
        return "".join(self.pieces) or self.held

    def named(self, piece: str) -> None:
        """Takes a piece of the name. Some servers say the whole of it again with each piece of the arguments."""
        if piece.startswith(self.name):
            self.name = piece
        elif not self.pieces:
            self.name += piece

    def goes_on(self, piece: str) -> bool:
        """Takes a piece of the arguments. Whether there is more of them now.

        What may only stand for arguments that are to come is held until it is known to be all; and what is whole has
        no more pieces: such a one is all of it again.
        """
        if not self.pieces and piece in NOTHING:
            self.held = piece
            return False
        if are_told_again(self.pieces, piece):
            return False
        self.held = ""
        self.pieces.append(piece)
        return True

    def is_followed_by(self, name: str, piece: str) -> bool:
        """Whether what has its number, a name and a piece of arguments, is another call."""
        if not is_object(self.arguments):
            return False
        if self.name and name != self.name:
            return True
        return piece.startswith("{") and (
            not self.said or (bool(self.pieces) and not are_told_again(self.pieces, piece))
        )

    def is_open_for(self, name: str, piece: str) -> bool:
        """Whether what says its name again, under another id, goes on with it: no arguments begin as the piece does."""
        begun = name == self.name and self.arguments.lstrip().startswith("{") and not is_object(self.arguments)
        return begun and bool(piece.strip()) and not piece.lstrip().startswith(("{", '"{'))

    def is_named_again(self, name: str, piece: str) -> bool:
        """Whether what says its name again, and has neither a number nor an id, goes on with it."""
        if name != self.name:
            return False
        so_far, more = "".join(self.pieces).strip(), piece.lstrip()
        if so_far and (so_far[0] != "{" or (so_far[-1] == "}" and more[:1] == "{")):
            return False  # whatever they are, they do not go on so
        if self.said:
            return not self.is_followed_by(name, piece)
        return bool(so_far or self.held or more) and not is_object(self.arguments)

    def start(self, events: list[ModelEvent]) -> None:
        """Announces it, once its name is whole: its arguments have begun, or something else has."""
        self.started = True
        events.append(ToolCallStarted(self.id, self.name))
        events.extend(ToolCallDelta(self.id, piece) for piece in self.pieces)


class ChatCalls:
    """The calls of a reply, in the order in which they came."""

    def __init__(self) -> None:
        self._calls: list[ChatCall] = []
        self._by_index: dict[int, ChatCall] = {}
        self._old = False
        # Of one chunk each entry is another call's, where nothing but its name says whose.
        self._in_chunk: list[ChatCall] = []

    def __bool__(self) -> bool:
        return bool(self._calls)

    def __iter__(self) -> Iterator[ChatCall]:
        return iter(self._calls)

    def entries(self, delta: Json) -> list[Any]:
        """What `delta` has of calls: in `tool_calls`, or of the only one in the field from before that was there.

        Some servers fill both.
        """
        self._in_chunk = []
        if entries := delta.get("tool_calls"):
            return list(entries)
        function = fields_in(delta, "function_call")
        if not any(function.values()) or (self._calls and not self._old):
            return []
        self._old = True
        return [{"index": 0, "function": function}]

    def hear(self, entry: Json, completion: str, events: list[ModelEvent]) -> None:
        """Takes an entry of a chunk of `completion`, and adds the events in it."""
        function = entry.get("function") or {}
        arguments = function.get("arguments")
        piece = arguments if arguments or isinstance(arguments, dict) else ""
        if not isinstance(piece, str):
            piece = arguments_in(piece)
        call = self._find(entry, function.get("name") or "", piece, completion, events)
        self._in_chunk.append(call)
        for name in SIGNING:
            if name in entry:
                call.kept[name] = entry[name]
        if piece_of_name := function.get("name"):
            call.named(piece_of_name)
        if piece and call.goes_on(piece):
            if call.started:
                events.append(ToolCallDelta(call.id, piece))
            elif call.name:
                call.start(events)

    def _find(self, entry: Json, name: str, piece: str, completion: str, events: list[ModelEvent]) -> ChatCall:
        """The call that an entry goes on with, or a new one.

        An entry with an id and a name of its own begins a call even under a number that was seen (some number all calls
        0), and so does one with a name after a call that is whole, and is not told again; an id without a name does not
        (some give every piece an id of its own), nor does the name of a call whose arguments are still coming.
        """
        index, call_id = entry.get("index"), name_in(entry, "id")
        last = self._calls[-1] if self._calls else None
        said = next((call for call in reversed(self._calls) if call_id and call.said == call_id), None)
        known = last
        if index is not None:
            known = said if said is not None and said.index == index else self._by_index.get(index)
            if known is not None and name and known.is_followed_by(name, piece):
                known = None
        elif said is not None:
            known = None if name and said.is_followed_by(name, piece) else said
        elif last is not None and name and last.name and not call_id:
            known = last if last not in self._in_chunk and last.is_named_again(name, piece) else None
        anew = known is not None and call_id and name and known.name and call_id != known.said
        if known is not None and not (anew and not known.is_open_for(name, piece)):
            return known
        self.complete(events)
        said_id = call_id
        if not call_id or any(call.id == call_id for call in self._calls):
            call_id = f"call_{uuid4().hex[:24]}"
        call = ChatCall(call_id, said_id, index, completion)
        self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    def complete(self, events: list[ModelEvent], ended: bool = False) -> None:
        """Reports calls as complete whose arguments were closed: a whole JSON object, or none at the end of all."""
        for call in self._calls:
            if call.name and not call.started:
                call.start(events)
            if not call.started or call.completed or not (call.pieces or ended):
                continue
            if call.held and ended:
                events.append(ToolCallDelta(call.id, call.held))
            if not call.arguments or is_object(call.arguments):
                call.completed = True
                events.append(ToolCallCompleted(call.id))

    def are_left_behind(self, completion: str) -> bool:
        """Whether one came in another completion than this, and has no arguments yet."""
        return any(not call.arguments and "" != call.of != completion for call in self._calls)

    def parts(self) -> list[ToolCall]:
        """The calls in the order in which they are numbered, where each has a number of its own; else as they came."""
        numbered = len(self._calls) == len(self._by_index)
        calls = [self._by_index[index] for index in sorted(self._by_index)] if numbered else self._calls
        told = [(call.said, call.name, call.arguments) for call in calls]
        ids = ids_told(told, [call.id for call in calls])
        return [ToolCall(call_id, call.name, call.arguments) for call, call_id in zip(calls, ids, strict=True)]
