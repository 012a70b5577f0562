"""Shown: what a model made for people, an image or a sound, in words for where it cannot be sent itself. Pure."""

from treadle.kernel.messages import AssistantMessage, Opaque


def told_of(part: Opaque, message: AssistantMessage) -> str:
    """What stands for `part` of `message`, such as "[image]"; empty if it is for nobody, or there is a text beside it.

    What stands beside texts, models say too, in place of an image.
    """
    if not part.shown or message.text.strip():
        return ""
    return f"[{part.shown}]"


def text_with_shown(message: AssistantMessage) -> str:
    """The text of `message`; where it has none, what it shows."""
    if message.text.strip():
        return message.text
    return " ".join(told_of(part, message) for part in message.content if isinstance(part, Opaque) and part.shown)
