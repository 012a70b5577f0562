"""Order: histories in which the user speaks after the model alone, and once, for servers that refuse any other.

What the user says in a row is one message then, and a word of the model's stands between results and what the user
says. What a result holds besides text is said by the user, after all results of its step: some dialects have no other
place for it, and would put it where it is refused. Pure but for what is kept. Neighbours:
`treadle.models.refused_wishes`, which finds out who wants it; `treadle.models.langchain`.
"""

from collections.abc import Sequence
from operator import is_
from typing import Any, Final

from msgspec.structs import replace

from treadle.kernel.messages import AssistantMessage, Content, Message, Text, ToolMessage, UserMessage
from treadle.models.history import History

BETWEEN: Final = AssistantMessage((Text("OK."),))
"""What the model says between results and a user's word."""
SILENT: Final = "(no content)"
"""What it says where it said nothing, for who would leave that message out."""
KEPT: Final = 20_000
"""How many messages are kept at most, those of the run that was asked last apart."""


class Order:
    """Puts the histories of runs in that order: the same messages become the same objects in each step."""

    def __init__(self) -> None:
        self._history: History[list[Any]] = History(list, _put, _same_side, limit=KEPT)

    def of(self, run_id: str, messages: Sequence[Message]) -> Sequence[Message] | None:
        """`messages` in that order; None where they are so already."""
        with self._history.follow(run_id, messages) as trail:
            made: list[Message] = list(trail.made)
        return None if len(made) == len(messages) and all(map(is_, made, messages)) else made


def _same_side(previous: Message, message: Message) -> bool:
    return type(previous) is not AssistantMessage and type(message) is not AssistantMessage


def _put(group: Sequence[Message], made: list[Message]) -> None:
    """Puts what one side says at the end of `made`."""
    besides: list[Content] = []
    said: list[UserMessage] = []
    answers = False
    for message in group:
        if isinstance(message, UserMessage):
            said.append(message)
            continue
        if isinstance(message, ToolMessage):
            answers = True
            parts = () if isinstance(message.content, str) else message.content
            if others := [part for part in parts if not isinstance(part, Text)]:
                besides += [Text(f"From the result of {message.name}:"), *others]
                message = replace(message, content=message.text)
        made.append(message)
    if besides:
        said.insert(0, UserMessage(tuple(besides)))
    if answers and said:
        made.append(BETWEEN)
    if said:
        made.append(said[0] if len(said) == 1 else UserMessage(_joined([message.content for message in said])))


def _joined(contents: Sequence[str | tuple[Content, ...]]) -> str | tuple[Content, ...]:
    texts = [content for content in contents if isinstance(content, str)]
    if len(texts) == len(contents):
        return "\n\n".join(texts)
    parts = [(Text(content),) if isinstance(content, str) else content for content in contents]
    return tuple(part for each in parts for part in each)
