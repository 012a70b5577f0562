"""Approvals: rules for a whole agent on which calls a person must decide, and which are never made.

The rules are looked at together with what each tool says of itself (`needs_approval`): a rule that denies wins, then
one that asks, then one that allows, then the tool's own word.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from treadle.tools import Effect, Tool


class ApprovalRule(Struct, frozen=True):
    """One rule. What is empty or None matches everything.

    Attributes:
        action: "allow", "ask" or "deny".
        tools: the names of the tools that it is about.
        effects: the effects of the tools that it is about.
        when: a function of the validated arguments; one that raises is taken to match, unless the rule allows.
        reason: what the model is told of a denial, and the person of a question.
    """

    action: Literal["allow", "ask", "deny"]
    tools: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    when: Callable[[dict[str, Any]], bool] | None = None
    reason: str = ""

    def matches(self, tool: Tool, arguments: dict[str, Any]) -> bool:
        """Whether the rule is about a call of `tool` with `arguments`."""
        if (self.tools and tool.name not in self.tools) or (self.effects and tool.effect not in self.effects):
            return False
        if self.when is None:
            return True
        try:
            return bool(self.when(arguments))
        except Exception:
            return self.action != "allow"


Condition = Callable[[dict[str, Any]], bool]


def allow(*tools: str, effect: Effect | None = None, when: Condition | None = None) -> ApprovalRule:
    """These calls need nobody, even if the tool says that they do."""
    return ApprovalRule("allow", tools, () if effect is None else (effect,), when)


def ask_before(
    *tools: str, effect: Effect | None = None, when: Condition | None = None, reason: str = ""
) -> ApprovalRule:
    """A person must decide on these calls."""
    return ApprovalRule("ask", tools, () if effect is None else (effect,), when, reason)


def deny(*tools: str, effect: Effect | None = None, when: Condition | None = None, reason: str = "") -> ApprovalRule:
    """These calls are never made; the model is told so, with the reason."""
    return ApprovalRule("deny", tools, () if effect is None else (effect,), when, reason)


def verdict(
    rules: Sequence[ApprovalRule], tool: Tool, arguments: dict[str, Any]
) -> tuple[Literal["allow", "ask", "deny"], str]:
    """What is to become of a call, and the reason."""
    matching: Mapping[str, ApprovalRule] = {
        rule.action: rule for rule in reversed(rules) if rule.matches(tool, arguments)
    }
    if "deny" in matching:
        return "deny", matching["deny"].reason
    if "ask" in matching:
        return "ask", matching["ask"].reason
    if "allow" in matching:
        return "allow", ""
    return ("ask" if _asks(tool, arguments) else "allow"), ""


def _asks(tool: Tool, arguments: dict[str, Any]) -> bool:
    """What the tool says of itself. A function that fails to say is taken for yes."""
    asks = tool.needs_approval
    if not callable(asks):
        return asks
    try:
        return bool(asks(arguments))
    except Exception:
        return True
