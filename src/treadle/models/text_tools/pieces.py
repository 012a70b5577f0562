"""Pieces: what a reply in text is made of, as a format reads it. Pure data; neighbours: the formats, `reader.py`."""

from typing import Final, Protocol

from msgspec import Struct

from treadle.kernel.messages import Json, ToolSpec

THOUGHT: Final = "thought"
"""The `Thinking.id` of what a model wrote after "Thought:"; no provider is sent thinking under this id."""

MEANT: Final = (
    "it may be meant as a call of {} or be shown. To call it, write the call in the right form; to show it, write "
    "words after it"
)
"""What is said of text that may be a call, and may be code or an example; the name of the tool goes into it."""


class Prose(Struct, frozen=True):
    """Text that is part of the answer.

    Attributes:
        text: what was written.
        answer: whether the model said that this is its answer; then nothing in it is looked at for a call.
    """

    text: str
    answer: bool = False


class Thought(Struct, frozen=True):
    """Text that is thinking: labelled as a thought by the format, or put between thinking tags."""

    text: str
    labelled: bool = True


class Call(Struct, frozen=True):
    """A call of a tool; `arguments` is JSON text, or what stood in its place."""

    name: str
    arguments: str


class Fault(Struct, frozen=True):
    """An attempt to call a tool that could not be read, and is not carried out.

    Attributes:
        text: what was written.
        what: what is wrong with it, in words for the model.
        tool: the tool that was meant, if one that there is could be told; empty if not.
        right: the arguments of the right call as JSON text, where they could be read; empty if not.
    """

    text: str
    what: str
    tool: str = ""
    right: str = ""


class Cut(Struct, frozen=True):
    """What follows is made up by the model (a result that it wrote itself) and is left out."""


Piece = Prose | Thought | Call | Fault | Cut


def unsure(piece: Piece, written: str) -> Piece:
    """The fault for a call that may be code or text that is shown; anything else as it is."""
    if not isinstance(piece, Call):
        return piece
    return Fault(written, MEANT.format(piece.name), piece.name, piece.arguments)


class Offer(Struct, frozen=True):
    """What the model may call in a reply.

    Attributes:
        tools: the tools by name.
        choice: "auto", "none", "required" or a tool's name.
        parallel: whether one reply may hold several calls.
        answer_keys: the keys of a structured answer, if one was asked for; such an object is no call.
    """

    tools: dict[str, ToolSpec]
    choice: str = "auto"
    parallel: bool = True
    answer_keys: frozenset[str] = frozenset()

    def known(self, name: str) -> str | None:
        """The tool that `name` means; None if there is none. A namespace before a dot does not count."""
        if name in self.tools:
            return name
        last = name.rpartition(".")[2]
        return last if last in self.tools else None

    def schema(self, name: str) -> Json:
        """The input schema of a tool; empty if it is not known."""
        return self.tools[name].input_schema if name in self.tools else {}

    def properties(self, name: str) -> Json:
        """What a tool takes, by the names of the arguments."""
        found: Json = self.schema(name).get("properties", {})
        return found

    def required(self, name: str) -> frozenset[str]:
        """The names of the arguments that a tool must be given."""
        return frozenset(self.schema(name).get("required", ()))


class Scanner(Protocol):
    """Reads one reply in a format."""

    def read(self, text: str, at: int, final: bool) -> tuple[list[Piece], int]:
        """The pieces of `text` from `at` on that no later text can change, and the place where they end.

        Args:
            text: everything that has come so far, from the reply's beginning.
            at: where the last reading ended.
            final: whether `text` is the whole reply; then all of it is read.
        """


class Format(Protocol):
    """A protocol in text."""

    @property
    def stop(self) -> tuple[str, ...]:
        """Texts at which the model had better stop, as what it would write next is not its to write."""

    def how_to(self, offer: Offer, example: str) -> str:
        """The instructions on how to call a tool; `example` is a call as `call` writes it."""

    def call(self, name: str, arguments: str) -> str:
        """A call as text; `arguments` stands in it as it is."""

    def said(self, thoughts: str, text: str, calls: list[str]) -> str:
        """What an assistant message said, as text."""

    def result(self, name: str, number: int, count: int, content: str) -> str:
        """The result of call `number` (from 1) of the `count` calls of one reply, as text."""

    def scanner(self, offer: Offer) -> Scanner:
        """A scanner for one reply."""
