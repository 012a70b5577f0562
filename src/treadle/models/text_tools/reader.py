"""Reader: a reply's text, as it arrives, to model events and the parts of the message.

Pure. It gives out nothing that later text could change. The text is looked at in pieces that depend on nothing but
itself, so that what its stream was cut into does not matter to what comes out. Neighbours: the formats find the pieces
of a reply, `model.py` feeds the text.
"""

import json
import re
from typing import Final, Literal, assert_never
from zlib import crc32

from msgspec import Struct

from treadle.kernel.messages import AssistantPart, Text, Thinking, ToolCall
from treadle.models.invalid_call import INVALID_CALL
from treadle.models.port import (
    ModelEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
)
from treadle.models.text_tools import loose
from treadle.models.text_tools.manual import example
from treadle.models.text_tools.neighbours import Neighbours
from treadle.models.text_tools.pieces import (
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

_THINK: Final = re.compile(
    r"\s*(?:<(?P<tag>think|thinking)>"
    r"|(?:<\|start\|>assistant\s?)?<\|channel\|>(?P<channel>analysis|commentary|final)(?:\s\w{1,10})?\s?"
    r"(?:<\|constrain\|>\s?\w{0,10}\s?)?<\|message\|>)",
    re.IGNORECASE,
)
"""How thinking begins, between tags or in a channel of gpt-oss's, and there what it is followed by: the answer.

What it says in `commentary` to nobody is said on the way to a call.
"""
_MAY_THINK: Final = re.compile(r"\s*(?:<[a-z]{0,8}|<\|[^{]{0,99})?\Z", re.IGNORECASE)
_CHANNEL_END: Final = re.compile(
    r"<\|(?:end|return|call)\|>|(?=<\|channel\|>\w{1,20}[^<>\n]{0,200}(?:<\|constrain\|>[^<>\n]{0,20})?<\|message\|>)"
)
_TAIL: Final = re.compile(r"<(?:/[a-z]{0,8}|\|[a-z]{0,6}\|?|\|channel\|[^\n]{0,270})?\Z", re.IGNORECASE)
_BARE: Final = re.compile(
    r"\s*(?:analysis(?=[A-Z])(?P<thought>.*?)assistant(?P<answer>final)?)?(?(answer)|(?=commentary\s+to=functions\.))",
    re.DOTALL,
)
"""The same where a server leaves the marks out: `analysisWe add.assistantfinalIt is 4.`"""
_MAY_BE_BARE: Final = re.compile(r"\s*(?:analysis[A-Z]|commentary\s+to=functions\.)")
_MAY_BECOME_BARE: Final = re.compile(r"\s*(?:[a-z]{1,10}|commentary\s+[a-z]{0,9}=?[a-z]{0,9})\Z")
_BARE_CALL: Final = re.compile(
    r"commentary\s+to=(functions\.[\w.-]{1,100})\s*(?:json|code)?\s*(?=\{(?!.*commentary\s+to=).*\}\s*\Z)", re.DOTALL
)
_TURN_END: Final = re.compile(r"<\|(?:end|return)\|>\s*\Z")
_MAY_BE_TURN_END: Final = re.compile(r"<(?:\|(?:[a-z]{0,6}\|?|(?:end|return)\|>\s*+))?\Z")
_Kind = Literal["nothing", "text", "thought", "thinking", "call"]
_PIECE: Final = re.compile(r"\S{0,11}\s|\S{12}")
"""What is looked at at once: the rest of a word, or some of a long one; these fill any text without gaps."""
_KEPT: Final = 4096
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
    """

    def __init__(self, form: Format, offer: Offer, names: Names, example: str) -> None:
        self._form, self._offer, self._names, self._example = form, offer, names, example
        self._scanner = form.scanner(offer)
        self._neighbours = Neighbours(offer)
        self._fed: list[str] = []
        self._rest = self._ahead = ""
        self._window, self._coming, self._length = "", list[str](), 0
        self._at = self._look_at = self._calls = 0
        self._thinking: re.Pattern[str] | None = None
        self._begun = self._answers = self._cut = False
        self._parts: list[AssistantPart] = []
        self._growing: list[str] = []
        self._kind: _Kind = "nothing"
        self._space: list[str] = []

    @property
    def text(self) -> str:
        """What was fed."""
        return "".join(self._fed)

    @property
    def parts(self) -> list[AssistantPart]:
        """What the message consists of, complete after `close`."""
        self._end_part(self._kind)
        return self._parts

    def feed(self, text: str) -> list[ModelEvent]:
        """The events that are certain now that `text` has come."""
        self._fed.append(text)
        if self._cut:
            return []
        events: list[ModelEvent] = []
        text, end = self._rest + text, 0
        for piece in _PIECE.finditer(text):
            events += self._look(piece.group())
            end = piece.end()
        self._rest = text[end:]
        return events

    def _look(self, piece: str) -> list[ModelEvent]:
        self._coming.append(piece)
        self._length += len(piece)
        if self._cut or self._length < self._look_at:
            return []
        events = self._read(final=False)
        held = self._length - self._at
        self._look_at = self._length + held // _EAGERNESS
        return events

    def close(self, *, complete: bool) -> list[ModelEvent]:
        """The events of the rest.

        Args:
            complete: whether the model ended the reply itself. If not, a call at its end may lack something: it is not
                reported complete, and no call is missed.
        """
        self._coming.append(self._rest)
        self._length += len(self._rest)
        self._rest = ""
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
        self._take_in()
        while self._thinking is not None or not self._begun:
            if self._thinking is None and not self._begin(final):
                return events
            if self._ahead:
                events += self._say(self._ahead, "thinking")
                self._ahead = ""
            if self._thinking is not None:
                events += self._thought_through(self._thinking, final)
                if self._thinking is not None:
                    return events
        if self._answers and not final and _MAY_BE_TURN_END.search(self._window, self._at):
            return events
        if self._answers and final and (over := _TURN_END.search(self._window, self._at)):
            self._window = self._window[: over.start()]
        pieces, self._at = self._scanner.read(self._window, self._at, final)
        for piece in self._neighbours.read(pieces, final):
            events += self._piece(piece)
            if self._cut:
                break
        if final and self._space and self._kind == "text":
            events += self._say("".join(self._space), "text")
        if final:
            self._space = []
        return events

    def _take_in(self) -> None:
        """Puts what has come to what is looked at, and drops what has been read but for the two characters before."""
        if self._at > _KEPT and self._at * 2 > len(self._window):
            self._window, dropped = self._window[self._at - 2 :], self._at - 2
            self._at -= dropped
            self._length -= dropped
        self._window += "".join(self._coming)
        self._coming = []

    def _begin(self, final: bool) -> bool:
        """Looks whether the reply begins with thinking, or goes on with it; False if that cannot be told yet."""
        if not self._parts and self._kind == "nothing":
            if not final and _MAY_BECOME_BARE.match(self._window, self._at):
                return False
            if _MAY_BE_BARE.match(self._window, self._at):
                return self._begin_bare(final)
        opened = _THINK.match(self._window, self._at)
        if opened is None and not final and _MAY_THINK.match(self._window, self._at):
            return False
        if opened is None:
            self._begun = True
            return True
        self._at = opened.end()
        if opened["tag"]:
            self._begun, self._thinking = True, re.compile(f"</{opened['tag']}>\\s*", re.IGNORECASE)
        elif opened["channel"].lower() == "final":
            self._begun = self._answers = True
        else:
            self._thinking = _CHANNEL_END  # another channel follows
        return True

    def _begin_bare(self, final: bool) -> bool:
        """Looks on for what ends the thinking of channels without marks; calls in them are read at the end."""
        bare = _BARE.match(self._window, self._at)
        if not final and (bare is None or not bare["answer"]):
            return False
        if bare is not None:
            self._ahead, self._at = bare["thought"] or "", bare.end()
            if not bare["answer"] and (call := _BARE_CALL.match(self._window, self._at)):
                marked = f"<|channel|>commentary to={call[1]}<|message|>"
                self._window = self._window[: self._at] + marked + self._window[call.end() :]
        self._begun = True
        return True

    def _thought_through(self, end: re.Pattern[str], final: bool) -> list[ModelEvent]:
        close = end.search(self._window, self._at)
        if close is not None and not final and close.end() == len(self._window):
            close_at = stop = close.start()
        elif close is not None:
            close_at, stop, self._thinking = close.start(), close.end(), None
        else:
            tail = None if final else _TAIL.search(self._window, self._at)
            close_at = stop = len(self._window) if tail is None else tail.start()
            if final:
                self._thinking = None
        thought = self._window[self._at : close_at]
        self._at = stop
        return self._say(thought, "thinking") if thought else []

    def _piece(self, piece: Piece) -> list[ModelEvent]:
        match piece:
            case Prose(text):
                return self._prose(text, "text")
            case Thought(text):
                return self._prose(text, "thought")
            case Cut():
                self._cut = True
                return []
            case Call() | Fault():
                self._space = []
                events = self._call(self._allowed(piece))
                self._cut = not self._offer.parallel
                return events
            case _:
                assert_never(piece)

    def _prose(self, text: str, kind: Literal["text", "thought"]) -> list[ModelEvent]:
        """Text, or a thought, without the space around calls: that belongs to the format."""
        if not text.strip():
            self._space.append(text)
            return []
        begins = self._kind != kind and (kind == "thought" or self._kind != "nothing")
        text = "".join([*self._space, text])
        kept = text.rstrip()
        self._space = [text[len(kept) :]] if len(kept) < len(text) else []
        return self._say(kept.lstrip() if begins else kept, kind)

    def _say(self, text: str, kind: Literal["text", "thought", "thinking"]) -> list[ModelEvent]:
        if self._kind != kind:
            self._end_part(kind)
        self._growing.append(text)
        return [TextDelta(text) if kind == "text" else ThinkingDelta(text)]

    def _end_part(self, kind: _Kind) -> None:
        """Makes a part of the message of what was said, for a part of `kind` begins."""
        said = "".join(self._growing)
        if said:
            self._parts.append(
                Text(said) if self._kind == "text" else Thinking(said, id=THOUGHT if self._kind == "thought" else None)
            )
        self._growing, self._kind = [], kind

    def _allowed(self, piece: Call | Fault) -> ToolCall:
        """The call that `piece` is, or one that stands for an attempt, if it may not be made now."""
        if isinstance(piece, Fault):
            return self._fault(piece)
        choice, written = self._offer.choice, self._form.call(piece.name, piece.arguments)
        if choice == "none":
            return self._fault(Fault(written, "tools are off now: answer without one, with what you know so far"))
        if choice not in ("auto", "required", piece.name):
            return self._fault(Fault(written, f"only the tool {choice!r} may be called now"))
        if piece.name == INVALID_CALL or not piece.name:
            return self._fault(Fault(written, "that is not the name of a tool"))
        return ToolCall(self._names.id(self._calls), piece.name, piece.arguments)

    def _fault(self, fault: Fault) -> ToolCall:
        what = f"Your reply was not understood as a tool call: {fault.what}."
        if loose.members(fault.right) is not None:
            what += f" Right is:\n\n{self._form.call(fault.tool, fault.right)}"
        elif self._offer.choice != "none":
            right = example(self._form, self._offer, fault.tool) if fault.tool else self._example
            what += f" Right is, for example:\n\n{right}"
        text = json.dumps({"fault": what, "text": fault.text}, ensure_ascii=False)
        return ToolCall(self._names.id(self._calls), INVALID_CALL, text)

    def _call(self, call: ToolCall) -> list[ModelEvent]:
        self._calls += 1
        self._end_part("call")
        self._parts.append(call)
        return [ToolCallStarted(call.id, call.name), ToolCallDelta(call.id, call.arguments), ToolCallCompleted(call.id)]
