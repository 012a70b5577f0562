"""Active: which skills in folders are active in a conversation, and the tools that they allow. Pure.

What counts is what the model was told as a skill became active, which stands in the messages. So a folder that has
changed since, or is not there any more, opens nothing.
"""

from collections.abc import Collection, Iterable, Mapping

from treadle.context.frames import ACTIVATE, frame_in
from treadle.kernel.messages import Message, ToolMessage, UserMessage

READ = "read_skill_file"

Allowed = tuple[str, ...] | None
"""The tools that a skill allows; None if it does not say."""


def narrowed(messages: Iterable[Message], foreign: Collection[str] = ()) -> frozenset[str] | None:
    """The tools that may be offered after `messages`; None for all that there are.

    They are those that the active skills allow, together, and what reads skills; all, while no active skill says which
    it wants. It only ever takes tools away: what a skill allows beyond what the agent has, or a person must agree to,
    stays as it was.

    Args:
        messages: those of a run.
        foreign: the skills in them that are another agent's.
    """
    said = [allowed for name, allowed in active_in(messages).items() if allowed is not None and name not in foreign]
    return frozenset([ACTIVATE, READ, *[name for names in said for name in names]]) if said else None


def active_in(messages: Iterable[Message]) -> Mapping[str, Allowed]:
    """The skills that are active in `messages`, and the tools that each of them allowed as it was told last."""
    return {name: allowed for message in messages for name, allowed in _told_in(message)}


def has_other_characters(name: str) -> bool:
    """Whether `name` has more in it than letters, digits and hyphens, as no name of a skill has."""
    return not all(one.isalnum() or one == "-" for one in name)


def is_told(told: str, messages: Iterable[Message]) -> bool:
    """Whether these very instructions stand in `messages`, so that to say them again would say nothing new."""
    return any(
        told in message.text
        for message in messages
        if isinstance(message, (UserMessage, ToolMessage)) and _told_in(message)
    )


def _told_in(message: Message) -> list[tuple[str, Allowed]]:
    """The skill whose instructions a message has, if it has any, and the tools that it allowed.

    It is known by what the message is: a result of the tool, or what a user asked for by its name. Where a journal has
    left nothing of the frame around what a user asked for, nobody knows what was allowed: nothing is.
    """
    by_user = isinstance(message, UserMessage) and bool(message.skill)
    by_tool = isinstance(message, ToolMessage) and message.name == ACTIVATE and not message.is_error
    if not (by_user or by_tool):
        return []
    found = frame_in(message.text)
    if not isinstance(message, UserMessage):
        return [] if found is None else [(found[1], _names(found[2]))]
    return [(message.skill, () if found is None else _names(found[2]))]


def _names(written: str | None) -> Allowed:
    return None if written is None else tuple(written.split())
