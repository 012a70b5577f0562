"""Approvals: rules for a whole agent on which calls a person must decide, and which are never made.

The rules are looked at together with what each tool says of itself (`needs_approval`): a rule that denies wins, then
one that asks, then one that allows, then the tool's own word. The rules of a run hold for all that works below it.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from hashlib import sha256
from pathlib import PurePath
from typing import Any, Literal, NamedTuple, get_args

from msgspec import Struct

from treadle.kernel.errors import Misuse
from treadle.kernel.state import RunState
from treadle.signatures import takes
from treadle.tools import Effect, Tool
from treadle.tools.errors import did_you_mean, nearest

Action = Literal["allow", "ask", "deny"]
Predicate = Callable[[dict[str, Any]], bool | Awaitable[bool]]
"""A question about the validated arguments of a call, plain or asynchronous."""

BUDGET = "budget"
"""What a run is started under a budget by, among its hooks."""

WITHOUT = "without "
"""How a budget begins, as a journal keeps it, that a run was begun under and goes on without: under others."""

BELOW = "of "
"""How the rules and hooks of agents begin that work for a run, among those that it is started under."""

Own = Callable[..., Awaitable[Any]]
"""How a run calls a function of the application's, by whatever name it is told; see `Driven.own`."""


class ApprovalRule(Struct, frozen=True):
    """One rule. What is empty or None matches everything.

    Attributes:
        action: "allow", "ask" or "deny".
        tools: the names of the tools that it is about.
        effects: the effects of the tools that it is about.
        when: a function of the validated arguments, plain or asynchronous; one that raises, or returns None, is taken
            to match, unless the rule allows.
        reason: what the model is told of a denial, and the person of a question; where `when` did not say, that.
        repeats: matches only from the call on that was made this often before in the same run, with the same arguments;
            each sub-run counts its own.

    Raises:
        Misuse: it could never match, or not be asked.
    """

    action: Action
    tools: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    when: Predicate | None = None
    reason: str = ""
    repeats: int = 0

    def __post_init__(self) -> None:
        _require_known("action", self.action, get_args(Action))
        for name in _listed("tools", self.tools):
            if not isinstance(name, str) or not name.strip():
                raise Misuse(
                    f"an approval rule takes the names of tools, one by one, such as deny('pay', 'refund'); it was "
                    f"given {name!r:.100}"
                )
        for effect in _listed("effects", self.effects):
            _require_known("effect", effect, get_args(Effect))
        if self.when is not None and not (callable(self.when) and takes(self.when, None)):
            raise Misuse(f"when= takes a function of the arguments; it was given {self.when!r}")
        if isinstance(self.repeats, bool) or not isinstance(self.repeats, int) or self.repeats < 0:
            raise Misuse(f"repeats= takes a whole number from 0; it was given {self.repeats!r}")

    def is_about(self, tool: Tool, made: Callable[[], int]) -> bool:
        """Whether the rule is about a call of `tool`, made `made()` times before, whatever `when` says."""
        if (self.tools and tool.name not in self.tools) or (self.effects and tool.effect not in self.effects):
            return False
        return not self.repeats or made() >= self.repeats

    def __str__(self) -> str:
        about = ", ".join(self.tools) or " ".join(f"effect={effect}" for effect in self.effects) or "every call"
        when = "" if self.when is None else f" when {named(self.when)}"
        return f"{self.action} {about}{when}{f' after {self.repeats} alike' if self.repeats else ''}"


def allow(*tools: str, effect: Effect | None = None, when: Predicate | None = None) -> ApprovalRule:
    """These calls need nobody, even if the tool says that they do."""
    return _rule("allow", tools, effect, when, "", 0)


def ask_before(
    *tools: str, effect: Effect | None = None, when: Predicate | None = None, reason: str = "", repeats: int = 0
) -> ApprovalRule:
    """A person must decide on these calls."""
    return _rule("ask", tools, effect, when, reason, repeats)


def deny(
    *tools: str, effect: Effect | None = None, when: Predicate | None = None, reason: str = "", repeats: int = 0
) -> ApprovalRule:
    """These calls are never made; the model is told so, with the reason.

    With `repeats=2` the third call of a tool with the same arguments is refused, and every one after it. Each run
    counts its own calls: one that works for another, or that the conversation was handed on to, begins anew.
    """
    return _rule("deny", tools, effect, when, reason, repeats)


def _rule(
    action: Action,
    tools: tuple[str, ...],
    effect: Effect | None,
    when: Predicate | None,
    reason: str,
    repeats: int,
) -> ApprovalRule:
    return ApprovalRule(action, tools, () if effect is None else (effect,), when, reason, repeats)


def _listed(name: str, values: Any) -> tuple[Any, ...]:
    if not isinstance(values, tuple):
        raise Misuse(f"ApprovalRule takes a tuple as {name}=; it was given {values!r:.100}")
    return values


def _require_known(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise Misuse(
            f"an approval rule's {name} is one of {', '.join(map(repr, known))}; it was given {value!r:.100}"
            f"{did_you_mean(nearest(value, known))}"
        )


class Ruling(NamedTuple):
    """What is to become of a call, and why."""

    action: Action
    reason: str = ""


ALLOWED = Ruling("allow")


async def ruling(
    rules: Sequence[ApprovalRule], tool: Tool, arguments: dict[str, Any], made: Callable[[], int], own: Own
) -> Ruling | None:
    """What `rules` say about a call: the first that denies, else that asks, else that allows; None if none matches."""
    found: dict[Action, Ruling] = {}
    for rule in rules:
        if rule.action not in found and rule.is_about(tool, made):
            holds = True if rule.when is None else await _holds(rule.when, arguments, own)
            if isinstance(holds, Failed):
                if rule.action != "allow":
                    found[rule.action] = Ruling(rule.action, str(holds))
            elif holds:
                found[rule.action] = Ruling(rule.action, rule.reason)
    return found.get("deny") or found.get("ask") or found.get("allow")


async def own_word(tool: Tool, arguments: dict[str, Any], own: Own) -> Ruling:
    """What the tool says of itself. A function that fails to say is taken for yes."""
    asks = tool.needs_approval
    if not callable(asks):
        return Ruling("ask") if asks else ALLOWED
    holds = await _holds(asks, arguments, own)
    if isinstance(holds, Failed):
        return Ruling("ask", str(holds))
    return Ruling("ask") if holds else ALLOWED


class Failed(NamedTuple):
    """A condition did not say whether it holds. The reason that its rule gives would then be told of what it may not
    be about."""

    name: str
    error: BaseException | None
    """What it raised; None where it returned None, as a function does that lacks a `return`."""

    def __str__(self) -> str:
        if self.error is None:
            return f"the condition {self.name} returned None, which is neither yes nor no; let it return True or False"
        return f"the condition {self.name} raised {type(self.error).__name__}, and nobody knows whether it holds"


async def _holds(predicate: Predicate, arguments: dict[str, Any], own: Own) -> bool | Failed:
    name = named(predicate)
    try:
        # A copy: what it does to the arguments must not become what is run.
        answer = await own(predicate, name, deepcopy(arguments))
        return Failed(name, None) if answer is None else bool(answer)
    except (Exception, SystemExit) as error:
        return Failed(name, error)


def rules_of(
    approvals: Iterable[ApprovalRule], tools: Iterable[Tool], below: Iterable[tuple[str, Sequence[str]]]
) -> tuple[str, ...]:
    """All that an agent's runs are started under, a line a rule: its own, what its tools say of themselves, and those
    `below` it: of the agents there, by the tool whose calls they work on, and of servers of tools, by their names."""
    lines = [str(rule) for rule in approvals]
    for tool in tools:
        asks = tool.needs_approval
        if asks:
            lines.append(f"ask {tool.name} (its own){f' when {named(asks)}' if callable(asks) else ''}")
    return (*lines, *[line for tool_name, theirs in below for line in of_below(tool_name, theirs)])


def named(function: Any) -> str:
    """A function's name, as a journal keeps it; with a digest of its code where the name alone says little.

    It is the same in whatever way its file was come by: run as a script, imported, or loaded by its path.
    """
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    name = name if code is None else f"{PurePath(code.co_filename).stem}.{name}"
    if "<" not in name or code is None:
        return name
    constants = [one for one in code.co_consts if isinstance(one, (str, int, float, bytes, type(None)))]
    return f"{name}@{sha256(repr((code.co_code, code.co_names, constants)).encode()).hexdigest()[:8]}"


def of_below(tool: str, lines: Iterable[str]) -> tuple[str, ...]:
    """Rules or hooks of the agent that works on the calls of a tool, or of a server, as they stand in a run above."""
    return tuple([f"{BELOW}{tool}: {line}" for line in lines])


def own_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """The rules or hooks that a run is started under, without those of agents that work for it."""
    return tuple([line for line in lines if not line.startswith(BELOW)])


def _own(line: str) -> tuple[str, str]:
    """Whose a rule or hook is, by the tools that lead to the agent, such as "mid/low"; and what it says there."""
    path: list[str] = []
    while line.startswith(BELOW):
        tool, _, line = line.removeprefix(BELOW).partition(": ")
        path.append(tool)
    return "/".join(path), line


def require_rules(
    run_id: str,
    rules: Sequence[str] | None,
    hooks: Sequence[str] | None,
    mine: Sequence[str],
    my_hooks: Sequence[str],
    parts: Iterable[str],
) -> None:
    """Refuses to take a run up under less than what it was started under, and what works for it may begin under.

    Args:
        rules, hooks: what the run was started under; None where its journal does not say.
        mine, my_hooks: what the agent has that is to take it up.
        parts: the agents below that one, by the tools that lead to them, and the servers: no rule is missing of what is
            gone.

    Raises:
        Misuse: a rule that asks or denies is missing, one that allows is new, or a hook is missing; it says which.
    """
    if rules is None or hooks is None:
        return
    there, told = {"", *parts}, {"", *[above for line in (*rules, *hooks) for above in _above(_own(line)[0])]}
    missing = [rule for rule in rules if _own(rule)[0] in there and not _allows(rule) and rule not in mine]
    missing += _missing([hook for hook in hooks if _own(hook)[0] in there], my_hooks)
    # Journals of before did not tell of the agents below.
    looser = [rule for rule in mine if _own(rule)[0] in told and _allows(rule) and rule not in rules]
    if missing or looser:
        faults = [f"this agent lacks: {'; '.join(missing)}"] if missing else []
        faults += [f"it allows more: {'; '.join(looser)}"] if looser else []
        raise Misuse(
            f"run {run_id} was started under stricter rules, and is only taken up under them: {', and '.join(faults)}. "
            "Use the agent that started it; where there is none any more, any agent may cancel the run (agent.cancel)"
        )


def _above(path: str) -> Iterator[str]:
    """The path to an agent or a server, and those to all agents above it: what these allow may be of its tools."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def _allows(rule: str) -> bool:
    return _own(rule)[1].startswith("allow")


def require_budgets(state: RunState, my_hooks: Sequence[str]) -> None:
    """Refuses to take a run up that was left in the middle under more budgets than these, or under others.

    Only who has them can give back what it had set aside there. What pauses or ends has settled with them.

    Raises:
        Misuse: a budget is missing that the run was given when it was taken up last; it says which.
    """
    if not state.accounts.budgets or state.phase in ("paused", "finished"):
        return
    mine = _budgets(my_hooks)
    given = Counter(_budgets(state.accounts.budgets)) - Counter(mine)
    missing = [*given.elements()] or _missing(budgets_under(state) or (), mine)
    if missing:
        raise Misuse(
            f"run {state.run_id} was left in the middle under a budget that it was given as it was taken up, and that "
            f"holds money for it: this agent lacks: {'; '.join(missing)}. Give it again, with budget=…"
        )


def require_budgets_to_end(state: RunState, my_hooks: Sequence[str], parts: Iterable[str]) -> None:
    """Refuses to end a run that was left in the middle without the budgets that it was begun under; see above.

    Args:
        state: the run.
        my_hooks: what the agent has that is to end it.
        parts: the agents below that one, by the tools that lead to them: no budget is missing of one that is gone.

    Raises:
        Misuse: a budget is missing; it says which.
    """
    if state.phase in ("paused", "finished"):
        return
    there = {"", *parts}
    begun = [hook for hook in state.started.hooks or () if _own(hook)[1].startswith(f"{BUDGET} ")]
    missing = _missing([hook for hook in begun if _own(hook)[0] in there], my_hooks)
    if missing:
        raise Misuse(
            f"run {state.run_id} was left in the middle under a budget that may hold money for it: this agent lacks: "
            f"{'; '.join(missing)}. End it with the agent that has it, or give it with budget=…"
        )


def budgets_under(state: RunState) -> tuple[str, ...] | None:
    """The budgets that the process had which had the run last; None where its journal does not say."""
    hooks, told = state.started.hooks, state.accounts.budgets
    if hooks is None:
        return None
    lacked = Counter(one.removeprefix(WITHOUT) for one in told if one.startswith(WITHOUT))
    return (*(Counter(_budgets(hooks)) - lacked).elements(), *_budgets(told))


def budgets_beside(hooks: Sequence[str] | None, my_hooks: Sequence[str]) -> tuple[str, ...]:
    """The budgets that an agent has beside those that a run was started under, and `WITHOUT` which of these."""
    begun, mine = Counter(_budgets(hooks or ())), Counter(_budgets(my_hooks))
    return (*[f"{WITHOUT}{hook}" for hook in (begun - mine).elements()], *(mine - begun).elements())


def _budgets(hooks: Sequence[str]) -> tuple[str, ...]:
    return tuple([hook for hook in hooks if hook.startswith(f"{BUDGET} ")])


def _missing(wanted: Sequence[str], mine: Sequence[str]) -> list[str]:
    """The hooks among `wanted` for which `mine` has none of the same kind: as many of each kind are needed."""
    left = Counter(_kind(hook) for hook in mine)
    missing: list[str] = []
    for hook in wanted:
        kind = _kind(hook)
        if left[kind] > 0:
            left[kind] -= 1
        else:
            missing.append(hook)
    return missing


def _kind(hook: str) -> tuple[str, str]:
    whose, words = _own(hook)
    return whose, words.partition(" ")[0]
