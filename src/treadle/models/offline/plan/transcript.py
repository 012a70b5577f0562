"""What has been said and done so far: a request's messages as turns of a question and its tool calls.

Also what the errors among the results teach: which written name stands for which real one. Read by `plan`, `followup`
and `answer`.
"""

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from treadle.context.corrected import result_text
from treadle.kernel.messages import AssistantMessage, Json, Message, SystemMessage, ToolCall, ToolMessage, UserMessage

# The longest question that is read, in characters: reading takes time that grows with its square.
LONGEST = 1000
# Calls that the run's limit or end kept from being made, or cut off: another time they may be made.
_UNMADE, _CUT_OFF = "This call was not executed", "This call was under way when the run stopped"
# What has the work on a question gone on with: the loop's own words, or a person's.
_SAME_QUESTION = re.compile(
    r"(?:Stop here: .* Tools are off now\.|That is not a valid [^.]+\. |Your last reply was empty\.|"
    r"A text is no answer in this step: ).*"
    r"|(?:There is room to go on now\. )?(?:please )?(?:go on|continue|carry on|keep going|proceed)"
    r"(?: with the task)?(?:,? please)?\W*",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A tool call and its result, parsed where it is JSON.

    `planned` are the arguments that it was asked for with; `arguments` are others where a person put others there.
    """

    tool: str
    arguments: Json
    result: Any
    failed: bool
    planned: Json

    @property
    def message(self) -> str:
        """What went wrong, in the tool's words."""
        if isinstance(self.result, dict):
            return str(self.result.get("message") or self.result.get("error") or self.result)
        return str(self.result)


@dataclass(slots=True)
class Turn:
    """A question, what was said while it was worked on, and the calls made for it."""

    question: str
    interjections: list[str] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)


def read_turns(messages: Sequence[Message], reads: Collection[str] = (), closing: bool = False) -> list[Turn]:
    """The turns of a conversation, oldest first.

    A user message that comes before the question so far has an answer is an interjection: a nudge, or something added.
    One that has the work on it gone on with, or its answer given otherwise, is no question and adds nothing.

    Args:
        messages: the conversation.
        reads: the tools that change nothing.
        closing: whether nothing can be called any more, so that a call which a limit kept from being made is what is in
            the way. Else it is left out, and so made anew where it is still wanted, as is one of `reads` that was cut
            off; what a person says after it is a question, as the run that worked on the one before has ended.
    """
    turns: list[Turn] = []
    pending: dict[str, ToolCall] = {}
    answered = True
    cut = False
    for message in messages:
        match message:
            case UserMessage() if turns and _SAME_QUESTION.fullmatch(message.text.strip()):
                answered = False
            case UserMessage() if answered or cut or not turns:
                turns.append(Turn(message.text))
                answered = cut = False
            case UserMessage():
                turns[-1].interjections += [message.text] if len(message.text) <= LONGEST else []
            case AssistantMessage():
                pending = {call.id: call for call in message.calls}
                answered, cut = not pending, False
            case ToolMessage():
                call = pending.get(message.call_id)
                if turns and call is not None:
                    exchange = _exchange(call, message)
                    again = (_UNMADE, _CUT_OFF) if call.name in reads else _UNMADE
                    unmade = exchange.failed and exchange.message.startswith(again)
                    cut = cut or unmade
                    turns[-1].exchanges += [exchange] if closing or not unmade else []
            case SystemMessage():
                pass
    return turns


def count_calls(messages: Sequence[Message]) -> int:
    """How many tool calls the conversation holds."""
    return sum(len(message.calls) for message in messages if isinstance(message, AssistantMessage))


def _exchange(call: ToolCall, message: ToolMessage) -> Exchange:
    made, result = message.edited, _parse(result_text(message))
    failed = message.is_error or (isinstance(result, dict) and result.get("error") is True)
    planned = _arguments(call.arguments)
    return Exchange(call.name, planned if made is None else _arguments(made), result, failed, planned)


def _arguments(text: str) -> Json:
    found = _parse(text or "{}")
    return found if isinstance(found, dict) else {}


def _parse(text: str) -> Any:
    """JSON with its numbers kept as they were written."""
    try:
        return json.loads(text, parse_float=Exact)
    except (ValueError, RecursionError):
        return text


class Exact(float):
    """A JSON number that remembers how it was written."""

    text: str

    def __new__(cls, text: str) -> "Exact":
        """Reads the number that `text` writes."""
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class Hint:
    """What a failed call said would be valid."""

    argument: str
    given: str
    nearest: str | None
    available: tuple[str, ...]


def hint_of(exchange: Exchange) -> Hint | None:
    """The hint in a failed call's result, if there is one that says what would be valid."""
    result = exchange.result
    if not exchange.failed or not isinstance(result, dict):
        return None
    argument = next((part for part in reversed(re.findall(r"[A-Za-z_]\w*", str(result.get("argument") or "")))), "")
    available = _names(result.get("available"))
    nearest = next(iter(_names(result.get("nearest"))), None)
    if not available and nearest is None:
        return None
    given = result.get("given")
    if given is None and argument:
        given = exchange.arguments.get(argument)
    return Hint(argument, given if isinstance(given, str) else json.dumps(given), nearest, available)


def _names(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    named = [item.get("name", item.get("id")) if isinstance(item, dict) else item for item in items]
    return tuple(str(item) for item in named if isinstance(item, str | int))
