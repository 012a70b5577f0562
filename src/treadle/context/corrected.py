"""Corrected: a result as the model was told it, where a person had put other arguments in place of the model's.

It is known by what it is (`ToolMessage.edited`), never by its words: a tool may return what looks like one. Neighbours:
`treadle.kernel.reply`, which says it before the result. Whoever reads results as data reads past it here.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from treadle.context.redacting import Redact, kept_arguments
from treadle.context.unbroken import end_before
from treadle.kernel.messages import Content, Text, ToolMessage, text_of
from treadle.kernel.reply import CORRECTED

Shown = str | tuple[Content, ...]


def result_content(result: ToolMessage) -> Shown:
    """What the tool gave, without what is said before it."""
    content, edited = result.content, result.edited
    if edited is None or (rest := _after(content, edited)) is None:
        return content
    only = rest[0] if len(rest) == 1 else None
    return only.text if isinstance(only, Text) else rest or ""


def result_text(result: ToolMessage) -> str:
    """Its text."""
    return text_of(result_content(result))


def told_before(result: ToolMessage, redact: Redact | None, longest: int | None = None) -> str:
    """What is said before a result, of the arguments `longest` characters at most; empty if nothing is."""
    edited = result.edited
    if edited is None:
        return ""
    # Half of what is to be hidden would no longer be known for it.
    shown = edited if redact is None else kept_arguments(edited, redact)
    if longest is None or len(shown) <= longest:
        return f"{CORRECTED}{shown}"
    return f"{CORRECTED}{shown[: end_before(shown, longest)]}…"


def as_kept(result: ToolMessage, redact: Redact, passed: Callable[[Any], Any]) -> ToolMessage:
    """A result before which something is said, as a journal that redacts keeps it; `passed` gives what it keeps of
    the rest.

    The arguments are JSON, in which each text is passed through: in one text a secret may be spelled otherwise.
    """
    edited = result.edited or ""
    kept, whole = kept_arguments(edited, redact), result.whole

    def put(content: Shown) -> Shown:
        rest = _after(content, edited)
        kept_so: Shown = passed(content if rest is None else rest)
        return kept_so if rest is None else (Text(f"{CORRECTED}{kept}"), *kept_so)

    return replace(result, content=put(result.content), whole=None if whole is None else put(whole), edited=kept)


def _after(content: Shown, edited: str) -> tuple[Content, ...] | None:
    """What comes after what is said of the arguments `edited`; None where it does not stand there as it was said."""
    first, told = (content[0] if isinstance(content, tuple) and content else None), f"{CORRECTED}{edited}"
    if not isinstance(content, tuple) or not isinstance(first, Text) or not first.text.startswith(told):
        return None
    # What was shortened stands in one text.
    more = first.text[len(told) :].removeprefix("\n")
    return (Text(more), *content[1:]) if more else content[1:]
