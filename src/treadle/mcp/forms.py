"""Forms: what the person at a client's end fills in, for a call that waits here: a yes or no, or an answer."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from treadle.result import Pending

NO_ANSWER: Final = "(The person gave no answer.)"
"""What a call is given for a form that was sent without an answer in it."""


def form_for(one: Pending) -> tuple[str, dict[str, Any]]:
    """What the person is asked, and the form of the answer: a JSON Schema as elicitations have them.

    Where the call brings choices, as those of `ask_user` may, they are shown to choose from; beside them there is room
    for an answer that is none of them, as `ask_user` has it.
    """
    if one.kind == "approval":
        words = f"Allow {one.tool}({one.arguments_json})?{f' {one.question}' if one.question else ''}"
        allow = {"type": "boolean", "title": "Allow", "default": False}
        return words, {"type": "object", "properties": {"allow": allow}, "required": ["allow"]}
    given = one.arguments if isinstance(one.arguments, Mapping) else {}
    words = one.question or str(given.get("question") or f"{one.tool}({one.arguments_json})")
    answer: dict[str, Any] = {"type": "string", "title": "Answer"}
    choices = [] if one.question else _choices(given.get("choices"))
    if not choices:
        return words, {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}
    other = {"type": "string", "title": "Another answer"}
    return words, {"type": "object", "properties": {"answer": {**answer, "enum": choices}, "other": other}}


def answer_in(filled: Mapping[str, Any]) -> Any:
    """What the person answered: what was written counts before what was chosen."""
    return filled.get("other") or filled.get("answer") or NO_ANSWER


def _choices(given: Any) -> Sequence[str]:
    """The choices that a call brings, each once; none unless all are texts that can be shown."""
    if not isinstance(given, list) or not all(isinstance(one, str) and one.strip() for one in given):
        return []
    return list(dict.fromkeys(given))
