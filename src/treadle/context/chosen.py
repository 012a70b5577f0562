"""Chosen: what a function or a policy chose of a run's messages, made a history that every provider takes. Pure."""

from collections.abc import Collection, Sequence

from treadle.context.completed import completed
from treadle.context.ids_apart import with_ids_apart
from treadle.kernel.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage


def rejoined(
    chosen: Sequence[Message], history: Sequence[Message], asked: Collection[UserMessage] = ()
) -> list[Message]:
    """`chosen` out of `history`, made valid, with what a choice of messages easily forgets.

    The instructions stay, as only other ones take their place. A result that was kept brings the assistant message
    along that asked for it, and there is always something to answer at the end, as `with_an_end` has it.
    """
    called = {call.id for message in chosen if isinstance(message, AssistantMessage) for call in message.calls}
    told = any(isinstance(message, SystemMessage) for message in chosen)
    out: list[Message] = [] if told else [message for message in history if isinstance(message, SystemMessage)]
    for message in chosen:
        if isinstance(message, ToolMessage) and message.call_id not in called:
            asking = _asking(history, message)
            if asking is not None:
                out.append(asking)
                called |= {call.id for call in asking.calls}
        out.append(message)
    return with_an_end(with_ids_apart(completed(out)), history, asked)


def with_an_end(made: list[Message], history: Sequence[Message], asked: Collection[UserMessage] = ()) -> list[Message]:
    """`made` with something to answer at its end: if there is nothing, the last that a person said in `history`.

    That is the last of what was `asked`, and only where nothing of that is left another, which may be a note of ours.
    Where `history` ends with a reply, its provider has paused that and goes on with it: nothing may come after it.
    """
    ends = (UserMessage, ToolMessage, AssistantMessage) if _is_paused(history) else (UserMessage, ToolMessage)
    if made and isinstance(made[-1], ends):
        return made
    said = [message for message in history if isinstance(message, UserMessage) and message.says_something]
    if not said:
        return completed(history)
    return [*made, next((message for message in reversed(said) if message in asked), said[-1])]


def _is_paused(history: Sequence[Message]) -> bool:
    """Whether a reply stands last, which is to be gone on with."""
    return bool(history) and isinstance(history[-1], AssistantMessage)


def _asking(history: Sequence[Message], result: ToolMessage) -> AssistantMessage | None:
    """The assistant message of `history` whose call `result` answers, if it is a result of that history."""
    for i in range(len(history) - 1, -1, -1):
        if history[i] is result or history[i] == result:
            while i >= 0:
                message = history[i]
                if isinstance(message, AssistantMessage) and any(call.id == result.call_id for call in message.calls):
                    return message
                i -= 1
    return None
