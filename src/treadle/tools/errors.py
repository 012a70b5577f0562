"""What can go wrong with a tool: it was defined wrongly, it was called wrongly, or it says so itself.

`BadTool` is raised at once to the person who wrote the definition. A `ToolError` is for the model: it becomes the JSON
text {"error": true, "message": ..., ...hints} with hints that a program can read. Nothing here knows a tool or a
schema.
"""

import os
from collections.abc import Iterable
from typing import Any

from treadle.kernel.errors import PassesThrough


class BadTool(TypeError):
    """A tool, a skill or a description file is wrong; the message says where and what to do about it."""


class ToolError(Exception):
    """Raise it inside a tool to tell the model what was wrong and what would be right.

    Args:
        message: one sentence for the model.
        hints: JSON-able facts beside it, under these names where they fit: `argument` (which one), `given`, `available`
            (the valid values), `nearest` (the valid value most like the given one; None leaves it out).

    Lone surrogates in either are shown as `?`, as they have no UTF-8 form.

    Attributes:
        message: the sentence.
        hints: the facts.
    """

    def __init__(self, message: str, /, **hints: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hints = {key: value for key, value in hints.items() if key != "nearest" or value is not None}


class OutcomeUnknown(ToolError):
    """Whoever carried the call out is gone, and nobody knows whether it took effect.

    Of a tool that writes the outcome is asked, as after a crash; of another the model is told what happened.
    """


class AsksPerson(ToolError):
    """The call goes on when a person has answered: the run waits, and then the call is made again with the answer.

    Args:
        question: what the person is asked.
        again: what the tool is given back with the answer, as `ToolContext.again`; not empty.
    """

    def __init__(self, question: str, again: str) -> None:
        super().__init__(f"a person has to answer first: {question}")
        self.question, self.again = question, again


class InvalidArguments(ToolError):
    """The arguments that the model wrote do not fit the tool's schema, or are not JSON."""


def naming(tool: str, words: str) -> str:
    """What is wrong with a call of `tool`; most words for it begin with the tool's name by themselves."""
    return words if words.startswith((f"{tool}: ", f"{tool} ")) else f"{tool}: {words}"


def nearest(given: object, available: Iterable[object]) -> str | None:
    """The value of `available` that looks most like `given`; None if none is alike.

    Case, spaces, hyphens and underscores do not count. Only the first 200 characters of `given` and the first 10,000
    values are looked at, so the answer always comes quickly.
    """
    from difflib import get_close_matches
    from itertools import islice

    names = [str(value) for value in islice(available, 10_000)]
    # Of two that differ in blanks alone, the one with the blanks that were given.
    folded = str(given)[:200].casefold()
    if alike := next((name for name in names if name.casefold() == folded), None):
        return alike
    plain = {_plain(name): name for name in reversed(names)}
    wanted = _plain(str(given)[:200])
    if wanted in plain:
        return plain[wanted]
    close = get_close_matches(wanted, plain, n=1, cutoff=0.75 if len(wanted) <= 5 else 0.6)
    if close:
        return plain[close[0]]
    if len(wanted) < 3:
        return None
    parts = [name for name in plain if name and (name.startswith(wanted) or wanted.startswith(name))]
    return plain[parts[0]] if len(parts) == 1 else None


def _plain(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "").replace(" ", "")


def did_you_mean(found: str | None) -> str:
    """The end of a sentence that proposes `found`; empty if there is nothing to propose."""
    return f"; did you mean {found!r}?" if found is not None else ""


def not_one_of(given: object, allowed: Iterable[str]) -> str:
    """That `given` is none of `allowed`, which they are, and which of them is meant, if that can be told."""
    words = list(allowed)
    return f"{str(given)!r:.100} is not one of {', '.join(map(repr, words))}{did_you_mean(nearest(given, words))}"


def describe_exception(error: BaseException) -> str:
    """An exception as one line for a model: type and message, and those inside a group; never a traceback."""
    text = words_of(error)
    line = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if isinstance(error, BaseExceptionGroup):
        line += ": " + "; ".join(describe_exception(inner) for inner in error.exceptions[:5])
    return line


def words_of(said: object) -> str:
    """What an exception, or its message, says as text, whatever that is."""
    try:
        return str.__str__(said) if isinstance(said, str) else str(said)
    except BaseException:  # whatever it is, it must not hide what is described
        return "(its message could not be shown)"


def place_of_exception(error: BaseException) -> str:
    """An exception's type and last frame, such as "ValueError at shop.py:12 in pay"."""
    name, trace = type(error).__name__, error.__traceback__
    if trace is None:
        return name
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return f"{name} at {os.path.basename(code.co_filename)}:{trace.tb_lineno} in {code.co_name}"


def passing(error: BaseException) -> PassesThrough | None:
    """The exception that nobody may swallow, if `error` is one or is a group that holds one."""
    if isinstance(error, PassesThrough):
        return error
    if isinstance(error, BaseExceptionGroup):
        return next((found for inner in error.exceptions if (found := passing(inner)) is not None), None)
    return None
