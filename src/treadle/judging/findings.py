"""Findings: what a run is stuck in, and the sentence that says so to the model."""

from collections.abc import Sequence
from typing import Literal, assert_never

from msgspec import Struct

FindingKind = Literal["repeat", "cycle", "errors", "unknown_tool", "nothing_new", "polling"]


class StuckFinding(Struct, frozen=True):
    """The run is stuck, and this is how.

    Attributes:
        kind: `repeat`: the same call, or batch of calls, again and again with the same result. `cycle`: the same few
            steps in the same order, with the same results. `errors`: nothing but errors. `unknown_tool`: calls of tools
            that do not exist. `nothing_new`: different calls, each of which brought an error or what it had brought
            before. `polling`: a tool that waits for a change has not shown one for too long.
        calls: Indexes into the sequence that was looked at, in order: the calls that make up the pattern.
        message: A sentence or two for the model that name the pattern and ask for another way.
    """

    kind: FindingKind
    calls: tuple[int, ...]
    message: str


def in_words(kind: FindingKind, names: Sequence[str], calls: int, steps: int, different: int) -> str:
    """The sentence for a pattern of `calls` calls of the tools `names`, `different` ones, in `steps` steps."""
    tools = ", ".join(names)
    match kind:
        case "repeat" if different == 1:
            return (
                f"You called {tools} {calls} times with the same arguments and got the same result each time. "
                "It will not change: use what it says, call it differently, or take another way."
            )
        case "repeat":
            return (
                f"You made the same {different} calls ({tools}) {steps} times and got the same results each time. "
                "They will not change: use what they say, or take another way."
            )
        case "cycle":
            return (
                f"You went through the same {different} calls twice ({tools}), with the same results. "
                "Going round again will bring nothing: decide from what you have, or take another way."
            )
        case "errors":
            return (
                f"The last {calls} calls of {tools} failed. Read what the errors say, check your assumptions about "
                "what exists, and take another way; or say what you cannot do and why."
            )
        case "unknown_tool":
            return f"You called tools that do not exist: {tools}. Call only the tools that you were given."
        case "nothing_new":
            return (
                f"Your last {calls} calls ({tools}) brought nothing new: each gave an error or what it had given "
                "before. Decide from what you have, or take another way."
            )
        case "polling":
            return f"You have called {tools} again and again, and the answer has not changed."
        case _:
            assert_never(kind)
