"""Context policies of the application's own: what they make of the messages is theirs, and often no history at all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from treadle.context.edited import with_text
from treadle.context.policies import Edit, Facts
from treadle.models import AssistantMessage, Message, SystemMessage, Text, ToolCall, ToolMessage, UserMessage

Made = Callable[[list[Message]], Sequence[Message]]


@dataclass(frozen=True)
class OnesOwn:
    """Makes something else of all messages but the instructions, whenever there are more than `most` of them."""

    made: Made
    most: int = 3

    def edit(self, messages: Sequence[Message], tokens: int, facts: Facts) -> Edit | None:
        rest = [message for message in messages if not isinstance(message, SystemMessage)]
        if len(rest) <= self.most:
            return None
        system = [message for message in messages if isinstance(message, SystemMessage)]
        return Edit([*system, *self.made(rest)], tokens, max(0, tokens - 1))


def _without_results(rest: list[Message]) -> list[Message]:
    return [message for message in rest if not isinstance(message, ToolMessage)]


def _short_results(rest: list[Message]) -> list[Message]:
    # What is told before a result, such as what a person put in place of a call's arguments, stands at its beginning.
    return [with_text(one, one.text[:400]) if isinstance(one, ToolMessage) else one for one in rest]


def _made_up(rest: list[Message]) -> list[Message]:
    calls = AssistantMessage((Text("I looked."), ToolCall("", "look", "{}"), ToolCall("", "look", '{"n": 1}')))
    return [UserMessage("a note \ud800"), calls, ToolMessage("zz", "look", "an orphan"), *rest[-2:]]


ONES_OWN = (
    OnesOwn(lambda rest: rest[-2:]),
    OnesOwn(_without_results),
    OnesOwn(_short_results, most=2),
    [OnesOwn(lambda rest: rest[::-1]), OnesOwn(_short_results)],
    OnesOwn(_made_up, most=5),
    OnesOwn(lambda rest: []),
)
