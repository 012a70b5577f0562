"""Declining: what is said where nothing is planned, and what can be done here instead. Called by `model`."""

from collections.abc import Sequence

from treadle.models.offline.plan.toolbox import Toolbox

SIGNATURE = "(offline planner, not a language model)"


def lost(words: Sequence[str]) -> str:
    """What is said of a follow-up whose words nothing in the conversation explains."""
    return (
        f"I cannot tell what {listed(words)} means after what was said before. Please ask the whole question at "
        f"once.\n{SIGNATURE}"
    )


def decline(box: Toolbox) -> str:
    """What is said when nothing can be planned at all."""
    if not box.tools:
        return (
            "I am treadle's offline planner, not a language model: all I can do is call tools and report what they "
            "return, and no tools are offered here."
        )
    return (
        "I cannot plan an answer to that. I am treadle's offline planner, not a language model: I match a question to "
        "the tools at hand, call them, and report what they return.\n" + capabilities(box)
    )


def foreign(box: Toolbox) -> str:
    """What is said of a question in a language that is not read."""
    return (
        "I cannot plan an answer to that: it looks like German, and I read English only; please ask in English. (Ich "
        f"lese nur Englisch.) I am treadle's offline planner, not a language model.\n{capabilities(box)}"
    )


def too_long(longest: int) -> str:
    """What is said of a question that is not read for its length."""
    return (
        "I am treadle's offline planner, not a language model, and your question is too long for me: I read at most "
        f"{longest} characters. Please ask a shorter one."
    )


def capabilities(box: Toolbox) -> str:
    """The tools by name, a line each."""
    return "\n".join(["What I can do here:", *(f"- {tool.name}: {tool.summary}" for tool in box.tools)])


def listed(words: Sequence[str]) -> str:
    """Words in quotation marks, with commas between them."""
    return ", ".join(f"“{word}”" for word in words)
