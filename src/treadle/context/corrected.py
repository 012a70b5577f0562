"""Corrected: a result as the model was told it, where a person had put other arguments in place of the model's.

Neighbours: `treadle.kernel.reply`, which says it before the result. Whoever reads results as data reads past it here.
"""

from treadle.kernel.messages import Content, Text, ToolMessage, text_of
from treadle.kernel.reply import CORRECTED


def put_in_place(result: ToolMessage) -> str | None:
    """The JSON text of the arguments that a person put in place of the model's; None if nobody did."""
    return _parts(result)[0]


def result_content(result: ToolMessage) -> str | tuple[Content, ...]:
    """What the tool gave, without what is said before it."""
    content = _parts(result)[1]
    only = content[0] if isinstance(content, tuple) and len(content) == 1 else None
    return only.text if isinstance(only, Text) else content


def result_text(result: ToolMessage) -> str:
    """Its text."""
    return text_of(_parts(result)[1])


def _parts(result: ToolMessage) -> tuple[str | None, str | tuple[Content, ...]]:
    content = result.content
    if isinstance(content, tuple) and len(content) > 1:
        first = content[0]
        if isinstance(first, Text) and first.text.startswith(CORRECTED):
            return first.text.removeprefix(CORRECTED), content[1:]
    return None, content
