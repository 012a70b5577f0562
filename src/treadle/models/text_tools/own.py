"""Own: a format of one's own, in three methods: how the model is told, how a call is written, how a reply is read.

Neighbours: `model.py` takes one wherever it takes the name of a format; `pieces.py` has what a reply is read into.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from treadle.kernel.errors import Misuse
from treadle.models.text_tools.pieces import Call, Cut, Fault, Offer, Piece, Prose, Scanner, Thought


class TextFormat(ABC):
    """A way to write calls in text, for `TextTools(model, format)`.

    Make a class of it with `how_to`, `call` and `read`. Like the formats that there are, it need not look for calls in
    other forms, and can say what it cannot read: `Fault`. Its replies come as a whole: an answer does not stream.

    Attributes:
        stop: texts at which the model had better stop, for what it would write next is not its to write, such as a
            result; at most four.
    """

    stop: tuple[str, ...] = ()

    @abstractmethod
    def how_to(self, offer: Offer, example: str) -> str:
        """The instructions on how to call a tool, which the list of the tools follows.

        Args:
            offer: the tools by name, and whether one reply may hold several calls (`offer.parallel`).
            example: a right call of one of them, as `call` writes it.
        """

    @abstractmethod
    def call(self, name: str, arguments: str) -> str:
        """A call as text, for the example and for the messages of earlier steps.

        Args:
            name: the tool's name.
            arguments: a JSON object as text, which may have several lines; it is to be read back unchanged.
        """

    @abstractmethod
    def read(self, text: str, offer: Offer) -> Sequence[Piece]:
        """The pieces of a reply, in their order, all of it: what is in no piece is lost.

        Args:
            text: the reply, without thinking between tags at its beginning.
            offer: the tools by name; `offer.known(name)` finds one.

        Returns:
            `Prose(text)` for what belongs to the answer, `Call(name, arguments)` with the arguments as JSON text,
            `Thought(text)` for thinking, and `Fault(text, what)` for what tried to be a call, with what is wrong with
            it in words for the model.
        """

    def said(self, thoughts: str, text: str, calls: list[str]) -> str:
        """What an earlier reply said, as text: by default its text, and each call on a new line."""
        return "\n".join([*([text] if text else []), *calls])

    def result(self, name: str, number: int, count: int, content: str) -> str:
        """The result of call `number` (from 1) of the `count` calls of one reply, as text."""
        which = f" (call {number} of {count})" if count > 1 else ""
        return f"Result of {name}{which}:\n{content}"

    def scanner(self, offer: Offer) -> Scanner:
        """What reads one reply."""
        return _Whole(self, offer)


class _Whole:
    """Reads a reply when all of it has come."""

    __slots__ = ("_form", "_offer")

    def __init__(self, form: TextFormat, offer: Offer) -> None:
        self._form, self._offer = form, offer

    def read(self, text: str, at: int, final: bool) -> tuple[list[Piece], int]:
        """See `Scanner`."""
        if not final:
            return [], at
        pieces = list(self._form.read(text[at:], self._offer))
        for piece in pieces:
            if not isinstance(piece, Prose | Thought | Call | Fault | Cut):
                raise Misuse(
                    f"{type(self._form).__name__}.read gives Prose, Call, Thought and Fault; it gave {piece!r:.80}"
                )
        return pieces, len(text)
