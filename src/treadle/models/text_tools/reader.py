"""Reader: a reply's text, as it arrives, to model events and the parts of the message.

Pure. It gives out nothing that later text could change; what the text is cut into does not matter to what comes out.
Neighbours: the formats find the pieces, `model.py` feeds the text.
"""

import json
import re
from typing import Final, assert_never
from zlib import crc32

from msgspec import Struct

from treadle.kernel.messages import AssistantPart, Text, Thinking, ToolCall
from treadle.models.port import (
    ModelEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
)
from treadle.models.text_tools.pieces import (
    INVALID_CALL,
    THOUGHT,
    Call,
    Cut,
    Fault,
    Format,
    Offer,
    Piece,
    Prose,
    Thought,
)

_THINK: Final = re.compile(r"\s*<(think|thinking)>", re.IGNORECASE)
_MAY_THINK: Final = re.compile(r"\s*(?:<[a-z]{0,8})?\Z", re.IGNORECASE)
_TAIL: Final = re.compile(r"<(?:/[a-z]{0,8})?\Z", re.IGNORECASE)
_EAGERNESS: Final = 32
"""What is held back is read again when it has grown by this share of itself, so that reading stays linear."""


class Names(Struct, frozen=True):
    """Where a reply's call ids come from: the same for the same run and step, different for all others."""

    run_id: str
    step: int

    def id(self, index: int) -> str:
        """The id of the reply's call number `index`."""
        run = f"{crc32(self.run_id.encode('utf-8', 'replace')):08x}_" if self.run_id else ""
        return f"call_{run}{self.step}_{index}"


class Reader:
    """Reads one reply.

    Args:
        form: the format.
        offer: what may be called.
        names: where the ids of calls come from.
        example: a right call, for faults.

    Attributes:
        parts: what the message consists of, complete after `close`.
        text: what was fed.
    """

    def __init__(self, form: Format, offer: Offer, names: Names, example: str) -> None:
        self._form, self._offer, self._names, self._example = form, offer, names, example
        self._scanner = form.scanner(offer)
        self.text = ""
        self.parts: list[AssistantPart] = []
        self._at = self._look_at = self._calls = 0
        self._thinking: re.Pattern[str] | None = None
        self._begun = self._cut = False
        self._space = ""

    def feed(self, text: str) -> list[ModelEvent]:
        """The events that are certain now that `text` has come."""
        self.text += text
        if self._cut or len(self.text) < self._look_at:
            return []
        events = self._read(final=False)
        held = len(self.text) - self._at
        self._look_at = len(self.text) + held // _EAGERNESS
        return events

    def close(self, *, complete: bool) -> list[ModelEvent]:
        """The events of the rest.

        Args:
            complete: whether the model ended the reply itself. If not, a call at its end may lack something: it is not
                reported complete, and no call is missed.
        """
        events = [] if self._cut else self._read(final=True)
        if not complete:
            return [event for event in events if not isinstance(event, ToolCallCompleted)]
        choice = self._offer.choice
        if choice not in ("auto", "none") and not self._calls:
            wanted = "one of the tools" if choice == "required" else f"the tool {choice!r}"
            events += self._call(self._fault(Fault("", f"{wanted} must be called now, and the reply calls none")))
        return events

    def _read(self, *, final: bool) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        if not self._begun and not self._begin(final):
            return events
        if self._thinking is not None:
            events += self._thought_through(self._thinking, final)
            if self._thinking is not None:
                return events
        pieces, self._at = self._scanner.read(self.text, self._at, final)
        for piece in pieces:
            events += self._piece(piece)
            if self._cut:
                break
        if final and self._space:
            if self.parts and isinstance(self.parts[-1], Text):
                events += self._say(TextDelta(self._space))
            self._space = ""
        return events

    def _begin(self, final: bool) -> bool:
        """Looks whether the reply begins with thinking between tags; False if that cannot be told yet."""
        opened = _THINK.match(self.text)
        if opened is None and not final and _MAY_THINK.match(self.text):
            return False
        self._begun = True
        if opened is not None:
            self._at = opened.end()
            self._thinking = re.compile(f"</{opened.group(1)}>\\s*", re.IGNORECASE)
        return True

    def _thought_through(self, end: re.Pattern[str], final: bool) -> list[ModelEvent]:
        close = end.search(self.text, self._at)
        if close is not None and not final and close.end() == len(self.text):
            close_at = stop = close.start()
        elif close is not None:
            close_at, stop, self._thinking = close.start(), close.end(), None
        else:
            tail = None if final else _TAIL.search(self.text, self._at)
            close_at = stop = len(self.text) if tail is None else tail.start()
            if final:
                self._thinking = None
        thought = self.text[self._at : close_at]
        self._at = stop
        return self._think(thought, None) if thought else []

    def _piece(self, piece: Piece) -> list[ModelEvent]:
        match piece:
            case Prose(text):
                return self._prose(text)
            case Thought(text):
                return self._labelled(text)
            case Cut():
                self._cut = True
                return []
            case Call() | Fault():
                self._space = ""
                events = self._call(self._allowed(piece))
                self._cut = not self._offer.parallel
                return events
            case _:
                assert_never(piece)

    def _prose(self, text: str) -> list[ModelEvent]:
        """Text without the space around calls: that belongs to the format."""
        last = self.parts[-1] if self.parts else None
        begins = not (isinstance(last, Text) or last is None)
        text = self._space + text
        if begins:
            text = text.lstrip()
        kept = text.rstrip()
        self._space = text[len(kept) :]
        return self._say(TextDelta(kept)) if kept else []

    def _say(self, delta: TextDelta) -> list[ModelEvent]:
        if self.parts and isinstance(last := self.parts[-1], Text):
            self.parts[-1] = Text(last.text + delta.text)
        else:
            self.parts.append(Text(delta.text))
        return [delta]

    def _labelled(self, text: str) -> list[ModelEvent]:
        last = self.parts[-1] if self.parts else None
        text = self._space + text
        if not (isinstance(last, Thinking) and last.id == THOUGHT):
            text = text.lstrip()
        kept = text.rstrip()
        self._space = text[len(kept) :]
        return self._think(kept, THOUGHT) if kept else []

    def _think(self, text: str, id: str | None) -> list[ModelEvent]:
        if self.parts and isinstance(last := self.parts[-1], Thinking) and last.id == id:
            self.parts[-1] = Thinking(last.text + text, id=id)
        else:
            self.parts.append(Thinking(text, id=id))
        return [ThinkingDelta(text)]

    def _allowed(self, piece: Call | Fault) -> ToolCall:
        """The call that `piece` is, or one that stands for an attempt, if it may not be made now."""
        if isinstance(piece, Fault):
            return self._fault(piece)
        choice, written = self._offer.choice, self._form.call(piece.name, piece.arguments)
        if choice == "none":
            return self._fault(Fault(written, "tools are off now: answer in words, with what you know so far"))
        if choice not in ("auto", "required", piece.name):
            return self._fault(Fault(written, f"only the tool {choice!r} may be called now"))
        if piece.name == INVALID_CALL or not piece.name:
            return self._fault(Fault(written, "that is not the name of a tool"))
        return ToolCall(self._names.id(self._calls), piece.name, piece.arguments)

    def _fault(self, fault: Fault) -> ToolCall:
        what = f"Your reply was not understood as a tool call: {fault.what}."
        if self._offer.choice != "none":
            what += f" Right is, for example:\n\n{self._example}"
        text = json.dumps({"fault": what, "text": fault.text}, ensure_ascii=False)
        return ToolCall(self._names.id(self._calls), INVALID_CALL, text)

    def _call(self, call: ToolCall) -> list[ModelEvent]:
        self._calls += 1
        self.parts.append(call)
        return [ToolCallStarted(call.id, call.name), ToolCallDelta(call.id, call.arguments), ToolCallCompleted(call.id)]
