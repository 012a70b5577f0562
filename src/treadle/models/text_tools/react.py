"""ReAct: Thought, Action, Action Input, Observation, Final Answer, each label at the beginning of a line.

Pure. The format of Yao et al. 2022 (https://arxiv.org/abs/2210.03629), in the forms that models write it in: also
`Action: tool[argument]`, `Action: tool(a=1)` and an action that is a JSON object. Neighbours: `attempt.py`, `loose.py`.
"""

import re
from typing import Final

from treadle.models.text_tools import loose
from treadle.models.text_tools.attempt import arguments_from, is_final, names_argument, pieces_of
from treadle.models.text_tools.pieces import Call, Cut, Fault, Offer, Piece, Prose, Scanner, Thought
from treadle.models.text_tools.places import after, end_of_brackets
from treadle.models.text_tools.python import Unreadable, arguments_of, bound, end_of_call

_LABEL: Final = re.compile(
    r"^[ \t]*+(?P<item>(?:[-*+]|\d{1,3}[.)])[ \t]++(?=[*_#]{0,6}+[ \t]*+action))?(?:[*_#]{1,6}+[ \t]*+)?"
    r"(?P<label>thought|action[ _]input|action|observation|final[ _]answer)[ \t]*+"
    r"(?:\d{1,6}+[ \t]*+)?(?:[*_]{1,4}+[ \t]*+)?:[*_]{0,4}+[ \t]*+",
    re.MULTILINE | re.IGNORECASE,
)
_MAY_BE_LABEL: Final = re.compile(
    r"^[ \t]*+(?:(?:[-*+]|\d{1,3}[.)]?)(?:[ \t]++|\Z))?(?:[*_#]{1,6}+[ \t]*+)?(?P<word>[a-z _]{0,14}+)[ \t]*+"
    r"(?:\d{1,6}+[ \t]*+)?(?:[*_]{1,4}+[ \t]*+)?(?::[*_ \t]*+)?\Z",
    re.I | re.M,
)
_LABELS: Final = ("thought", "action input", "observation", "final answer")
_NAMED: Final = re.compile(r"[`\"'*]*(?P<name>[\w.-]{1,100})[`\"'*]*[ \t]*(?P<open>[\[(])")
_ALONE: Final = re.compile(r"[`\"'*]*(?P<name>[\w.-]{1,100})(?:\(\))?[`\"'*.]*[ \t]*\Z")
_NOTHING: Final = frozenset({"none", "n/a", "na", "no action", "no action needed", "nothing"})
_SPACE: Final = re.compile(r"\s*+")
_OBJECT: Final = re.compile(r"(?:`{3,}+\w*+\s*+)?(?=\{)")
_MAY_BE_OBJECT: Final = re.compile(r"\s*+(?:`{1,}+\w*+\s*+)?\Z")
_AFTER: Final = re.compile(r"[ \t]*+(?:\s*+`{3,}+[ \t]*+(?=\n|\Z))?")
_MAY_BE_AFTER: Final = re.compile(r"\s*+`*+[ \t]*+\Z")
_FENCE: Final = re.compile(r"`{3,}+\w*+")
_MOST_UNCLOSED: Final = 8


class ReactFormat:
    """Calls as actions; several calls are several actions, one after the other."""

    stop: tuple[str, ...] = ("\nObservation:",)

    def how_to(self, offer: Offer, example: str) -> str:
        """The instructions on how to call a tool."""
        several = (
            " To call several tools at once, write several Actions, each with its Action Input, before you stop."
            if offer.parallel
            else " Call one tool at a time."
        )
        return (
            f"To call a tool, reply in this form and then stop:\n\nThought: why the tool is needed\n{example}\n\n"
            "The Action Input is one JSON object. The Observation comes in the next message; never write it yourself."
            f"{several} When you need no tool any more, reply in this form:\n\nThought: why nothing else is needed\n"
            "Final Answer: the answer"
        )

    def call(self, name: str, arguments: str) -> str:
        """A call as text."""
        return f"Action: {name}\nAction Input: {arguments}"

    def said(self, thoughts: str, text: str, calls: list[str]) -> str:
        """What an assistant message said, as text."""
        thought = f"Thought: {thoughts}" if thoughts else ""
        answer = text if calls or not text else f"Final Answer: {text}"
        return "\n".join(part for part in (thought, answer, *calls) if part)

    def result(self, name: str, number: int, count: int, content: str) -> str:
        """The result of a call, as text."""
        return f"Observation{f' {number} ({name})' if count > 1 else ''}: {content}"

    def scanner(self, offer: Offer) -> Scanner:
        """A scanner for one reply."""
        return _ReactScanner(offer)


class _ReactScanner:
    __slots__ = ("_answered", "_called", "_mode", "_offer", "_spoke", "_thought", "_unclosed")

    def __init__(self, offer: Offer) -> None:
        self._offer = offer
        self._mode = "prose"
        self._unclosed = 0
        self._answered = self._called = self._spoke = self._thought = False

    def read(self, text: str, at: int, final: bool) -> tuple[list[Piece], int]:
        """See `Scanner`."""
        pieces: list[Piece] = []
        while at < len(text):
            before, mode = at, self._mode
            at = self._step(text, at, final, pieces)
            if (at == before and self._mode == mode) or (pieces and isinstance(pieces[-1], Cut)):
                break
        if final and self._thought and not self._called and not self._spoke:
            what = "the reply has a Thought, but neither an Action nor a Final Answer: write one of the two"
            pieces.append(Fault("", what))
            self._called = True
        return pieces, at

    def _step(self, text: str, at: int, final: bool, pieces: list[Piece]) -> int:
        """Reads on from `at` as far as is certain, and returns where that is."""
        if self._mode == "answer":
            self._say(text[at:], pieces)
            return len(text)
        label = _LABEL.search(text, at)
        if label is not None and not final and label.end() == len(text):
            self._say(text[at : label.start()], pieces)  # more of the label's own marks may follow
            return label.start()
        if label is None:
            end = len(text) if final else self._certain(text, at)
            self._say(text[at:end], pieces)
            return end
        if label.start() > at:
            self._say(text[at : label.start()], pieces)
            return label.start()
        match label["label"].lower().replace("_", " "):
            case "thought":
                self._mode = "thought"
                return label.end()
            case "final answer":
                return self._answer(label.end(), pieces)
            case "observation":
                if self._called:
                    pieces.append(Cut())
                else:
                    self._say(label.group(), pieces)
                return label.end()
            case "action input":
                end = self._section(text, label.end(), final)
                if end < 0:
                    return at
                self._take(
                    [Fault(text[at:end].strip(), "there is an Action Input without an Action before it")], pieces
                )
                return end
            case _:
                return (
                    self._item(text, label, final, pieces)
                    if label["item"]
                    else self._action(text, label, final, pieces)
                )

    def _item(self, text: str, label: re.Match[str], final: bool, pieces: list[Piece]) -> int:
        """An action in a list: a call if it is of a tool, and else an item of a list of things to do."""
        at = after(_SPACE, text, label.end())
        end = text.find("\n", at)
        if not final and (end < 0 or at == len(text)):
            return label.start()
        line = text[at : len(text) if end < 0 else end]
        named = _ALONE.match(line) or _NAMED.match(line)
        known = named is not None and self._offer.known(named["name"].rstrip(".")) is not None
        if known or _OBJECT.match(text, at):
            return self._action(text, label, final, pieces)
        self._say(label.group(), pieces)
        return label.end()

    def _certain(self, text: str, at: int) -> int:
        """How far `text` has no label, whatever follows."""
        last = text.rfind("\n", max(0, at - 1)) + 1
        if last < at:
            return len(text)
        match = _MAY_BE_LABEL.match(text, last)
        if match is None:
            return len(text)
        word = match["word"].lower().replace("_", " ").strip()
        return last if any(label.startswith(word) or word == "action" for label in _LABELS) else len(text)

    def _say(self, text: str, pieces: list[Piece]) -> None:
        if self._mode == "answer" and not self._answered:
            text = text.lstrip()
            self._answered = bool(text)
        if not text:
            return
        thinking = self._mode == "thought"
        self._thought = self._thought or (thinking and bool(text.strip()))
        self._spoke = self._spoke or (not thinking and bool(text.strip()))
        pieces.append(Thought(text) if thinking else Prose(text, answer=self._mode == "answer"))

    def _answer(self, end: int, pieces: list[Piece]) -> int:
        if self._called:
            pieces.append(Cut())  # an answer that does not wait for its observation is made up like one
        else:
            self._mode = "answer"
        return end

    def _take(self, found: list[Piece], pieces: list[Piece]) -> None:
        pieces += found
        self._mode = "prose"
        self._called = self._called or any(isinstance(piece, Call | Fault) for piece in found)
        self._spoke = self._spoke or any(isinstance(piece, Prose) and piece.text.strip() for piece in found)

    def _section(self, text: str, at: int, final: bool) -> int:
        """Where what belongs to a label ends: before the next label, or with the reply; -1 if that has not come."""
        label = _LABEL.search(text, at)
        if label is not None and (final or label.end() < len(text)):
            return label.start()
        return len(text) if final else -1

    def _action(self, text: str, label: re.Match[str], final: bool, pieces: list[Piece]) -> int:
        start, at = label.start(), label.end()
        word = after(_SPACE, text, at)
        if word < len(text) and _LABEL.match(text, text.rfind("\n", 0, word) + 1) is None:
            at = word  # the name may stand on the line after the label
        if not final and _MAY_BE_OBJECT.match(text, at):
            return start
        if opened := _OBJECT.match(text, at):
            return self._object(text, start, opened.end(), final, pieces)
        line_end = text.find("\n", at)
        if line_end < 0 and not final:
            return start
        line = text[at : len(text) if line_end < 0 else line_end]
        named, alone = _NAMED.match(line), _ALONE.match(line)
        if alone is not None and line.strip().casefold() not in _NOTHING:
            return self._input(text, alone["name"], at + len(line), start, final, pieces)
        section = self._section(text, at, final)
        if section < 0:
            return start
        written = text[start:section].strip()
        if named is not None:
            piece, end = self._bracketed(text[at:section], named, written)
            self._take([piece], pieces)
            return at + end
        if line.strip().strip("*_.").casefold() in _NOTHING:
            self._mode = "prose"
        else:
            self._take([Fault(written, "after Action: stands the name of one tool, and nothing else")], pieces)
        return section

    def _object(self, text: str, start: int, at: int, final: bool, pieces: list[Piece]) -> int:
        """An action that is a JSON object."""
        end = loose.end_of(text, at)
        if end < 0 and not final:
            return start
        found = pieces_of(text[at : end if end > 0 else len(text)], self._offer)
        if end > 0 and not final and _MAY_BE_AFTER.match(text, end):
            return start
        stop = after(_AFTER, text, end) if end > 0 else len(text)
        self._take(
            found or [Fault(text[start:stop].strip(), "the Action is an object that does not call a tool")], pieces
        )
        if found and all(isinstance(piece, Prose) for piece in found):
            self._mode = "answer"
        return stop

    def _input(self, text: str, name: str, at: int, start: int, final: bool, pieces: list[Piece]) -> int:
        """An action's name that stands alone, and the input after it."""
        known = self._offer.known(name)
        word = after(_SPACE, text, at)
        label = None
        if word < len(text):
            line = text.rfind("\n", 0, word) + 1
            label = _LABEL.match(text, line)
            if label is None and not final and self._certain(text, line) < len(text):
                return start
        elif not final:
            return start
        if label is None or "input" not in label["label"].lower():
            if known is None and is_final(name):
                self._mode = "answer"
            else:
                self._take([self._without_input(known or name, text[start:at])], pieces)
            return at
        if not final and label.end() == len(text):
            return start
        begin = label.end()
        if not final and _MAY_BE_OBJECT.match(text, begin):
            return start
        opened = _OBJECT.match(text, begin)
        end = -1 if opened is None or self._unclosed > _MOST_UNCLOSED else loose.end_of(text, opened.end())
        if opened is not None and end < 0:
            if not final:
                return start
            self._unclosed += 1
        if opened is not None and end > 0:
            if not final and _MAY_BE_AFTER.match(text, end):
                return start
            body, stop = text[opened.end() : end], after(_AFTER, text, end)
        else:
            stop = self._section(text, begin, final)
            if stop < 0:
                return start
            body = _without_fence(text[begin:stop].strip())
        if known is None and is_final(name):
            self._take([Prose(body, answer=True)], pieces)
        elif not body:
            self._take([self._without_input(known or name, text[start:stop])], pieces)
        else:
            self._take([Call(known or name, arguments_from(body, self._offer.tools.get(known or name)))], pieces)
        return stop

    def _without_input(self, name: str, written: str) -> Piece:
        """An action alone: a call if its tool takes nothing, and else one that may be cut off."""
        if self._offer.properties(name):
            what = f"the Action {name} has no Action Input; where it needs none, write {{}}"
            return Fault(written.strip(), what, name)
        return Call(name, "{}")

    def _bracketed(self, section: str, named: re.Match[str], written: str) -> tuple[Piece, int]:
        """`tool[argument]` or `tool(arguments)`, and where it ends in `section`; it opens at the end of `named`."""
        name, start = self._offer.known(named["name"]) or named["name"], named.end() - 1
        if name not in self._offer.tools and is_final(name):
            answer = _to_last(section[start + 1 :], "]" if named["open"] == "[" else ")")
            return Prose(answer, answer=True), len(section)
        quoted = named["open"] == "(" or section[start + 1 :].lstrip()[:1] in ("'", '"')
        end = end_of_call(section, start) if quoted else -1
        if end < 0 and named["open"] == "[":
            end = end_of_brackets(section, start)
        if end < 0:
            return Call(name, written), len(section)
        if section[end:].partition("\n")[0].strip(" \t\r`*.;"):
            return Fault(
                written, "after Action: stands one call, and nothing else on its line", self._known(name)
            ), len(section)
        inner = section[start + 1 : end - 1].strip()
        try:
            made: Piece = Call(name, self._in_brackets(inner, name, named["open"]))
        except Unreadable as error:
            made = Fault(written, str(error), self._known(name))
        line = section.find("\n", end)
        return made, len(section) if line < 0 else line

    def _known(self, name: str) -> str:
        return name if name in self._offer.tools else ""

    def _in_brackets(self, inner: str, name: str, opened: str) -> str:
        tool = self._offer.tools.get(name)
        if inner.startswith("{") and loose.members(made := loose.strict(inner) or "") is not None:
            return made if opened == "[" else arguments_of(inner, tool)
        if opened == "(":
            return arguments_of(inner, tool) if tool is not None else inner or "{}"
        properties = self._offer.properties(name)
        if names_argument(inner, properties):
            return arguments_of(inner, tool)
        if len(properties) < 2 or len(self._offer.required(name)) == 1 or not inner:
            return arguments_from(inner, tool)
        places = loose.items(loose.strict(f"[{inner}]") or "")
        if places is None:
            raise Unreadable(f"{name} takes several arguments, so they are written as one JSON object")
        return bound(places, {}, tool)


def _without_fence(body: str) -> str:
    opened = _FENCE.match(body)
    inner = body if opened is None else body[opened.end() :].lstrip()
    return inner.rstrip("`").rstrip() if inner.endswith("```") else inner


def _to_last(body: str, close: str) -> str:
    """What of an answer stands before the last bracket of its line, or of all of it."""
    line = body.partition("\n")[0].rstrip(" \t`*.")
    inner = line if line.endswith(close) else body.rstrip(" \t\n`*.")
    return inner[: inner.rindex(close)].strip() if close in inner else inner.strip()
