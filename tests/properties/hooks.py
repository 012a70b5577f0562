"""The application's own code in a generated run: functions that return, wait, raise or cancel themselves; and rules."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from clock import HOUR
from hypothesis import strategies as st
from likely import mostly
from texts import REASON, REPLACED, hostile
from toolbox import EFFECTS, NAMES, World, number_of

from treadle import Alternative, AskUser, Retry, ToolResult, allow, ask_before, deny
from treadle.journal.redaction import redacted
from treadle.kernel.events import ModelReplied, ToolFinished
from treadle.tools import ToolOutput


class OfTheApplication(Exception):
    """What the application's own code raises."""


@dataclass(frozen=True)
class Temper:
    """How a function of the application behaves: `how` it ends, whether it is asynchronous, at which call it does so.

    `how` is "returns", "waits" (returns later), "raises", "cancels" (raises `CancelledError` itself) or "holds"
    (the event loop, once, for an hour).
    """

    how: str = "returns"
    is_async: bool = False
    at: int = 0

    def function(self, world: World, name: str, answer: Callable[..., Any]) -> Any:
        """The function: it answers with `answer`, unless it misbehaves; while the world is quiet it never does."""

        def misbehave() -> None:
            number = world.counts[name]
            world.counts[name] += 1
            if world.quiet or number < self.at or self.how in ("returns", "waits"):
                return
            if self.how == "holds":
                if number == self.at:
                    world.hold(HOUR)
                return
            world.raised.append(name)
            if self.how == "cancels":
                raise asyncio.CancelledError(f"{name}'s own")
            raise OfTheApplication(hostile(f"{name} fails"))

        def plain(*args: Any) -> Any:
            misbehave()
            return answer(*args)

        async def waiting(*args: Any) -> Any:
            if self.how != "returns":
                await asyncio.sleep(0)
            misbehave()
            return answer(*args)

        return waiting if self.is_async else plain


@dataclass(frozen=True)
class Reacts:
    """What `on_tool_result` does: `what`, on every result or on errors only, at most so many `times` for a call."""

    what: str = "nothing"
    other: str = "look"
    on_errors: bool = False
    times: int = 9
    temper: Temper = Temper()

    def function(self, world: World, name: str) -> Any:
        """The hook."""

        def answer(call: Any, output: Any) -> Any:
            _seen(world, call, output)
            key = name, call.id
            if (self.on_errors and not output.is_error) or world.counts[key] >= self.times:
                return None
            world.counts[key] += 1
            if world.quiet and self.what.startswith(("other", "not_json")):
                # No tool of the agent, or no value: a mistake of the application's, which is mended by then.
                return None
            return self._reaction(world.number(2))

        return self.temper.function(world, name, answer)

    def _reaction(self, n: int | str) -> Any:
        given = {"helper": {"task": "instead"}, "pass_on": {}, "activate_skill": {"name": "tight"}}
        task = given.get(self.other, {"n": n})
        return {
            "nothing": None,
            "value": {"text": REPLACED},
            "zero": 0,
            "result": ToolResult(hostile(REPLACED), for_app={"kept": 1}),
            "error": ToolResult(REPLACED, is_error=True),
            "output": ToolOutput(REPLACED),
            "not_json": object,
            "retry": Retry(),
            "retry_later": Retry(delay=3.0),
            "retry_other": Retry(arguments={"n": n}),
            "retry_wrong": Retry(arguments={"n": "x"}),
            "other": Alternative(self.other, task),
            "other_wrong": Alternative(self.other, {"n": "x"}),
            "ask": AskUser(hostile("Is it right?")),
        }[self.what]


@dataclass(frozen=True)
class Changes:
    """What `on_tool_call` does with tasks for agents below, and with calls of a number `n`, or of odd ones only."""

    what: str = "nothing"
    odd: bool = False
    temper: Temper = Temper()

    def function(self, world: World, name: str) -> Any:
        """The hook."""

        def answer(call: Any) -> Any:
            _asked(world, call)
            if "task" in call.arguments and self.what in ("more", "one"):
                return {"task": "look again"}
            if "n" not in call.arguments or (self.odd and not number_of(call.arguments) % 2):
                return None
            if world.quiet and self.what.startswith("wrong"):
                # What fits no tool: a mistake of the application's, which is mended by then.
                return None
            n = number_of(call.arguments)
            given = {
                "more": world.number(n + 1),
                "same": call.arguments["n"],
                "one": world.number(1),
                "wrong": "x",
                "wrong_kind": object(),
            }
            return None if self.what == "nothing" else {"n": given[self.what]}

        return self.temper.function(world, name, answer)


def _asked(world: World, call: Any) -> None:
    """A call that a hook is shown stands in the journal by then, in the reply that makes it."""
    journal = world.journal
    if journal is None:
        return
    for run_id in journal.runs:
        for event in journal.events(run_id):
            if isinstance(event, ModelReplied) and any(one.id == call.id for one in event.message.calls):
                return
    world.unseen.append(f"the call {call.name} ({call.id})")


SKILLED = ("activate_skill", "read_skill_file")

OBJECTION = "say it once more"
MOST_OBJECTIONS = 12
"""In one process: a context policy may leave out what had been objected to."""


def objects(world: World, hooks: "Hooks", name: str) -> Any:
    """What `on_answer` does: objects to the first answers that a conversation comes to, and to no other."""
    temper, words = hooks.answers or Temper(), f"{OBJECTION}, says {name}"

    def answer(given: Any, context: Any) -> str | None:
        _replied(world, context.state)
        objected = sum(message.text == words for message in context.messages)
        may_stand = objected >= hooks.objections or world.counts[words] >= MOST_OBJECTIONS
        world.counts[words] += not may_stand
        world.verdicts.append((context.state.run_id, name, given, may_stand))
        return None if may_stand else words

    return temper.function(world, name, answer)


def _replied(world: World, state: Any) -> None:
    """An answer that a hook is shown stands in the journal by then."""
    journal = world.journal
    if journal is not None and journal.runs and state.run_id in journal.runs:
        last = len(state.steps) - 1
        if not any(isinstance(event, ModelReplied) and event.step == last for event in journal.events(state.run_id)):
            world.unseen.append(f"the answer of {state.run_id}")


WHATS = (
    "nothing", "value", "zero", "result", "error", "output", "not_json", "retry", "retry_later", "retry_other",
    "retry_wrong", "other", "other", "other", "other_wrong", "ask", "ask",
)  # fmt: skip


def _seen(world: World, call: Any, output: Any) -> None:
    """A result that a hook is shown stands in the journal by then."""
    journal = world.journal
    if journal is None:
        return
    seen = ToolFinished(0, call.id, output.content)
    (kept,) = redacted("", 0, [seen], journal.redact, "")
    for run_id in journal.runs:
        for event in journal.events(run_id):
            # One that began early may have done so in a reply that gave it another id.
            same = isinstance(event, ToolFinished) and event.call_id in (call.id, call.began_as)
            if same and event.content == kept.content:
                return
    world.unseen.append(f"{call.name} ({call.id})")


CHANGED = 77
"""What a rule's function makes of an argument; no tool may ever be given it."""


def _odd(arguments: Any) -> bool:
    return bool(number_of(arguments) % 2)


def _changes(arguments: Any) -> bool:
    odd = _odd(arguments)
    arguments["n"] = CHANGED
    return odd


def _forgets(arguments: Any) -> None:
    _odd(arguments)


@dataclass(frozen=True)
class Rule:
    """A rule on approvals: what it does with which tools, and `when`: "", "odd", "changes", "raises", "cancels" or
    "forgets" (its `return`).

    With `repeats` it is about calls that were made as often before, unless it allows.
    """

    action: str
    tools: tuple[str, ...] = ()
    effect: str | None = None
    when: str = ""
    is_async: bool = False
    repeats: int = 0

    def rule(self, world: World, known: tuple[str, ...]) -> Any:
        """The rule as the library has it, about tools that are `known`; None if it is about no such."""
        when: Any = None
        if self.when:
            how = self.when if self.when in ("raises", "cancels") else "returns"
            says = {"changes": _changes, "forgets": _forgets}.get(self.when, _odd)
            when = Temper(how, self.is_async).function(World(), "when", says)
        tools = tuple(name for name in self.tools if name in known)
        if self.tools and not tools:
            return None
        if self.action == "allow":
            return allow(*tools, effect=self.effect, when=when)
        return {"ask": ask_before, "deny": deny}[self.action](
            *tools, effect=self.effect, when=when, reason=hostile(REASON), repeats=self.repeats
        )

    def matches(self, name: str, n: int) -> bool:
        """Whether it is about a call of the tool `name` with `n`; one that cannot say is, unless it allows."""
        if (self.tools and name not in self.tools) or (self.effect and EFFECTS.get(name, "idempotent") != self.effect):
            return False
        if self.when in ("raises", "cancels", "forgets"):
            return self.action != "allow"
        return not self.when or bool(n % 2)


@dataclass(frozen=True)
class Hooks:
    """All the functions that an application gives an agent; what is None is not given."""

    reacts: Reacts | None = None
    calls: Changes | None = None
    stop: Temper | None = None
    prepare: Temper = Temper()
    instructions: Temper | None = None
    on_event: Temper | None = None
    answers: Temper | None = None
    objections: int = 1


tempers = st.builds(
    Temper,
    how=st.sampled_from(["returns"] * 4 + ["waits", "raises", "cancels"]),
    is_async=st.booleans(),
    at=st.sampled_from([0, 0, 1, 2]),
)
calm = st.builds(Temper, how=st.sampled_from(["returns", "waits"]), is_async=st.booleans())
watching = st.builds(Temper, how=st.sampled_from(["returns", "raises", "cancels"]), at=st.integers(0, 12))
others = (
    "look",
    "put",
    "write",
    "guarded",
    "ask",
    "done",
    "fails",
    "quits",
    "no_such_tool",
    "helper",
    "pass_on",
    "activate_skill",
)
reactions = st.builds(
    Reacts,
    what=st.sampled_from(WHATS),
    other=st.sampled_from(others),
    on_errors=st.booleans(),
    times=st.sampled_from([1, 1, 2, 9]),
    temper=tempers,
)
changes = st.builds(
    Changes,
    what=st.sampled_from(["nothing", "more", "more", "more", "same", "one", "wrong", "wrong_kind"]),
    odd=st.booleans(),
    temper=tempers,
)
hooks = st.one_of(
    # With one of these no call begins early, which most worlds are to do.
    mostly(st.just(Hooks()), st.builds(Hooks, calls=changes), times=3),
    st.builds(Hooks, answers=calm, objections=st.sampled_from([1, 2, 3])),
    st.builds(Hooks, reacts=reactions),
    st.builds(
        Hooks,
        reacts=st.one_of(st.none(), reactions),
        calls=mostly(st.none(), changes, times=4),
        stop=mostly(st.none(), tempers, times=2),
        prepare=mostly(calm, tempers, times=3),
        instructions=mostly(st.none(), tempers, times=3),
        on_event=mostly(st.none(), watching, times=3),
        answers=mostly(st.none(), tempers, times=2),
        objections=st.sampled_from([1, 1, 0, 2, 3]),
    ),
)
rules = st.lists(
    st.builds(
        Rule,
        action=st.sampled_from(["allow", "ask", "deny"]),
        tools=st.one_of(
            st.just(()), st.lists(st.sampled_from((*NAMES, "helper", "pass_on", *SKILLED)), min_size=1, max_size=3)
        ).map(tuple),
        effect=st.sampled_from([None, None, "read", "write", "idempotent"]),
        when=st.sampled_from(["", "", "odd", "changes", "raises", "cancels", "forgets"]),
        is_async=st.booleans(),
        repeats=st.sampled_from([0, 0, 0, 1, 2]),
    ),
    max_size=2,
).map(tuple)
