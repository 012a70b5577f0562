"""Generated runs: a script of what a model says, tools of every temper, limits near their edges, and what is chosen.

One `Setup` holds all that a run can meet, so that every property meets every combination: streams that wait and break
off (`player.py`), functions and rules of the application (`hooks.py`), sub-agents two levels deep with all of their own
(`below.py`), journals that fail (`journals.py`), hostile ids and texts (`texts.py`), people who steer and decide,
skills in folders (`skilled.py`), and telemetry (`traced.py`).
"""

from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import msgspec
from below import Below, belows
from biller import Biller
from clock import HOUR
from depth import deep
from dialects import DIALECTS, heard
from funds import Fund, brought, funds
from hooks import Hooks, Rule, hooks, objects, rules
from hypothesis import Phase, settings
from hypothesis import strategies as st
from journals import Paper
from likely import mostly
from ones_own import ONES_OWN
from player import FAILURES, Breaks, Calls, Player, Reports, Says, Stream, Turn, quoted
from resting import Rest, rests
from server import OWN, Served, served, with_server
from skilled import plans, skills_of, with_asks
from texts import CALL_IDS, PLAIN_IDS, QUESTION, figures, hostile
from toolbox import EASED, NAMES, SEEN, TOOLS, World
from traced import traced

from treadle import (
    Agent,
    ClearToolResults,
    Conversation,
    File,
    KeepFirstAndRecent,
    Limits,
    Retries,
    ShortenResult,
    StepSettings,
    Summarise,
    Text,
    ToolSearch,
    has_tool_call,
    step_count,
    text_contains,
    tool_call_count,
)
from treadle.journal import Journal
from treadle.kernel.messages import ModelSettings, ToolCall, ToolMessage, UserMessage
from treadle.models import FallbackModel
from treadle.models.profile import OutputMode


def examples(count: int, *, shrink: bool = True) -> settings:
    """How many examples a property is tried on.

    Without `shrink` a failure is shown as it was found: where one example is a hundred runs, making it smaller would
    take longer than the whole suite may.
    """
    phases = [phase for phase in Phase if shrink or phase not in (Phase.shrink, Phase.explain)]
    return settings(max_examples=deep(count), phases=phases)


RIGHT = ("{}", '{"n": 1}', '{"n": 2}', '{"n": 3}')
ARGUMENTS = (*RIGHT, *RIGHT, *RIGHT, "", '{"n": "x"}', '{"n": 1', "null", "[1]", '{"m": 3}', "what?", "{" * 40)
COMMON = (
    "look",
    "put",
    "write",
    "guarded",
    "look",
    "write",
    "write_known",
    "write_found",
    "write_beside",
    "fails",
    "guarded_sometimes",
    "ask",
    "rows",
    "rows",
    "heaps",
)
TASKS = ('{"task": "look"}', '{"task": "look"}', '{"task": "write"}', '{"task": "put"}', "{}")
REASONS = ("{}", '{"reason": "so"}', "{}", "{}", '{"reason": 1}')

call_ids = mostly(st.sampled_from(PLAIN_IDS), st.sampled_from(CALL_IDS), times=2)


def call_lists(names: tuple[str, ...]) -> st.SearchStrategy[Calls]:
    usual_names = tuple(name for name in COMMON if name in names)
    named = st.sampled_from((*names, *usual_names, *usual_names, *("helper",) * 8, *("pass_on",) * 3))
    usual = st.tuples(call_ids, named, st.sampled_from(ARGUMENTS)).map(_with_arguments)
    odd = st.tuples(call_ids, st.sampled_from(("no_such_tool", "", "final_answer")), st.sampled_from(ARGUMENTS))
    call = mostly(usual, odd, times=9)
    few, some = st.lists(call, min_size=1, max_size=4), st.lists(call, min_size=2, max_size=4)
    return mostly(st.one_of(few, some), st.just([]), st.lists(call, min_size=5, max_size=12), times=6).map(tuple)


def _with_arguments(call: tuple[str, str, str]) -> tuple[str, str, str]:
    """`call` with arguments that its tool can be asked with, more often than not."""
    call_id, name, arguments = call
    which = ARGUMENTS.index(arguments)
    if name == "helper":
        return call_id, name, TASKS[which % len(TASKS)]
    return (call_id, name, REASONS[which % len(REASONS)]) if name == "pass_on" else call


def says(names: tuple[str, ...]) -> st.SearchStrategy[Says]:
    finishes = ["stop"] * 12 + ["tool_calls"] * 24 + ["length", "content_filter", "refusal", "pause", "unknown"]
    return st.builds(
        Says,
        text=st.sampled_from(
            ["", "", " ", "\n", "hm", "ANSWER: 4", "long " * 60, figures(1), hostile("odd"), '{"n": 4}']
        ),
        calls=call_lists(names),
        finish=st.sampled_from(finishes),
        thinking=st.sampled_from(["", "", "let me see"]),
        shown=mostly(st.just(""), st.sampled_from(["image", "sound"]), times=5),
    )


def breaks(names: tuple[str, ...]) -> st.SearchStrategy[Breaks]:
    calls = call_lists(names)
    then = st.one_of(st.builds(Says, calls=calls), st.just(Says("recovered")))
    return st.builds(
        Breaks,
        failure=st.sampled_from([None, *FAILURES]),
        text=st.sampled_from(["", "half an "]),
        times=st.sampled_from([1, 1, 2]),
        calls=calls,
        then=then,
        after=st.one_of(st.none(), st.integers(0, 9)),
    ).flatmap(lambda one: st.sampled_from([one, again(one), again(one, turned=True)]))


def again(one: Breaks, *, turned: bool = False) -> Breaks:
    """`one`, which is followed by the same calls; `turned`, each has what the next was to be made with."""
    given = [arguments for _, _, arguments in one.calls]
    calls = zip(one.calls, [*given[1:], *given[:1]], strict=True) if turned else ()
    return replace(one, then=replace(one.then, calls=tuple((*x[:2], given) for x, given in calls) or one.calls))


def scripts(names: tuple[str, ...] = NAMES, max_size: int = 6) -> st.SearchStrategy[tuple[Turn, ...]]:
    turn = mostly(says(names), breaks(names), times=6)
    again = st.tuples(says(names), st.integers(3, 7)).map(lambda one: [one[0]] * one[1])
    some = st.one_of(st.lists(turn, min_size=min(2, max_size), max_size=max_size), st.lists(turn, max_size=max_size))
    return mostly(some, st.tuples(again, some).map(lambda both: both[0] + both[1])).map(tuple)


tight = st.builds(
    Limits,
    steps=st.sampled_from([None, 20, 20, 20, 1, 2, 3, 4, 5]),
    tool_calls=st.sampled_from([None, 20, 20, 0, 1, 2, 3, 4, 6]),
    seconds=st.sampled_from([300, 300, 300, 1, 5]),
    usd=st.none(),
    tokens=st.sampled_from([None] * 5 + [0, 3000, 6000, 9000, 15_000, 30_000]),
    consecutive_errors=st.sampled_from([None, None, 1, 2, 3]),
)
limits = st.one_of(st.just(Limits()), st.just(Limits(steps=None, consecutive_errors=None)), tight)
money = mostly(st.none(), st.sampled_from([0, 0.001, 0.05, 0.2, 1, Decimal("3.21")]), times=9)
streams = st.builds(
    Stream,
    pieces=st.sampled_from([True, True, True, False]),
    waits=st.one_of(
        st.just((0,)),
        st.just((1,)),
        st.just((2,)),
        st.lists(st.sampled_from([0, 0, 1, 2, 5, 9]), min_size=1, max_size=6),
    ).map(tuple),
    last=st.sampled_from([0, 0, 0, 1, 9]),
)


billers = st.builds(
    Biller,
    vocabulary=st.sampled_from(["", "cl100k", "o200k", "voyage3"]),
    caches=st.booleans(),
    around_tools=st.sampled_from([0, 0, 346]),
)


def _at(biller: Biller, times: int) -> Biller:
    """`biller` at so many times its prices."""
    prices = {name: getattr(biller, name) * times for name in ("input", "output", "read", "write")}
    return replace(biller, **prices)


# The model beside the first may be free, as a server of one's own is, or much dearer.
other_billers = st.builds(_at, billers, st.sampled_from([1, 0, 50]))

dialects = mostly(st.just(""), st.sampled_from(DIALECTS), times=1)
turns_of_two = st.sampled_from([(), (), (), (False, True), (False, True, True), (False, False, True), (True, False)])


def _custom(state: Any) -> str | bool:
    return hostile("enough said") if state.text.startswith("long") else False


CONDITIONS: tuple[Any, ...] = (
    *[None] * 16,
    step_count(2),
    has_tool_call("write") | text_contains("ANSWER:"),
    ~step_count(1) & tool_call_count(3),
    [tool_call_count(1, "look"), _custom],
)


def _other_messages(context: Any) -> StepSettings | None:
    if context.step_number % 2:
        return StepSettings(messages=[message for message in context.messages if message.role != "tool"])
    return StepSettings(messages=[*context.messages[-3:], ToolMessage("zz", "look", "an orphan"), UserMessage("go on")])


def _last_three(context: Any) -> StepSettings | None:
    return StepSettings(messages=context.messages[-3:])


def _other_request(context: Any) -> StepSettings | None:
    if context.step_number == 1:
        return StepSettings(instructions=hostile("be brief"), tools=["look", "write"], tool_choice="look")
    return StepSettings(instructions="", tool_choice="required", settings=ModelSettings(temperature=0.5))


def _no_tools(context: Any) -> StepSettings | None:
    return StepSettings(tool_choice="none") if context.step_number == 1 else None


@dataclass
class Answer:
    """The type that a run may be asked for."""

    n: int


def _short_replies(context: Any) -> StepSettings | None:
    return StepSettings(settings=ModelSettings(max_tokens=(300, 40, 2000)[context.step_number % 3]))


def _few_tools(context: Any) -> StepSettings | None:
    tools = [["look"], ["look", "write", "rows"], []][context.step_number % 3]
    # A tool that the agent must call, and this step has not, would be a mistake of the application.
    return StepSettings(tools=tools, tool_choice=None if "write" in tools else "auto")


PREPARES: tuple[Any, ...] = (
    *[None] * 24,
    _other_messages,
    _other_request,
    _last_three,
    _short_replies,
    _few_tools,
    ToolSearch(TOOLS, most=4),
    _no_tools,
)
CONTEXTS: tuple[Any, ...] = (
    *[None] * 14,
    ClearToolResults(high=2650, low=2500, keep=0),
    [ShortenResult(max_tokens=100), ClearToolResults(high=2700, low=2650, keep=1)],
    KeepFirstAndRecent(high=2700, low=2600),
    [ShortenResult(max_tokens=200), KeepFirstAndRecent(high=2620, low=2610)],
    Summarise(high=2700, low=2660, max_tokens=16),
    [ClearToolResults(high=2680, low=2600), Summarise(high=2720, low=2690, max_tokens=30)],
    *ONES_OWN,
)
"""What fits, with marks that short runs with all tools reach. A summary is written by the agent's own model, which then
plays its script. Those after it are the application's own."""
SHORTENING = range(14, 20)
"""The contexts that come with treadle. Those after them leave out anything, the instructions of a skill too."""
QUESTIONS: tuple[Any, ...] = (
    QUESTION,
    hostile(QUESTION),
    [Text(hostile(QUESTION)), File(data=b"1", name="caf\udce9.pdf")],
)


@dataclass(frozen=True)
class Second:
    """Another model beside the first, charged for by `biller`, which plays the same script.

    Attributes:
        steps: in which steps, gone through again and again, it is asked in place of the first; empty for one that is
            asked where the first fails.
        dialect: in which it is heard.
    """

    biller: Biller = field(default_factory=Biller)
    steps: tuple[bool, ...] = ()
    dialect: str = ""


@dataclass(frozen=True)
class Decides:
    """How a person decides on what is pending, one round of it.

    Attributes:
        ways: for each call that waits: "approve", "edit", "deny" or "result"; gone through again and again.
        by_key: whether calls are named by their key.
        partly: whether all but the first are left for later; `backwards` whether the last is the first.
        wrong: what is tried before, which fits no call and must change nothing.
        again: whether the same is decided once more afterwards.
        calls: the limit on tool calls that the run goes on under from then on; None to leave it. `limits` are others,
            by their names.
        says: whether something is said to the run in the same breath.
        queued: whether it is recorded for a worker, which then drives the run.
    """

    ways: tuple[str, ...] = ("approve",)
    by_key: bool = False
    partly: bool = False
    backwards: bool = False
    wrong: tuple[str, ...] = ()
    again: bool = False
    calls: int | None = None
    limits: tuple[tuple[str, Any], ...] = ()
    says: bool = False
    queued: bool = False


WRONG = ("nobody", "fingerprint", "inner", "two ways", "bad edit", "edit in doubt", "approve a result", "no JSON")
decisions = st.lists(
    st.builds(
        Decides,
        ways=st.lists(st.sampled_from(["approve", "approve", "edit", "deny", "result"]), min_size=1, max_size=3).map(
            tuple
        ),
        by_key=st.booleans(),
        partly=st.booleans(),
        backwards=st.booleans(),
        wrong=st.lists(st.sampled_from(WRONG), max_size=2).map(tuple),
        again=st.sampled_from([False, False, True]),
        calls=st.sampled_from([None, None, None, 1, 2, 4, 50]),
        limits=mostly(
            st.just(()),
            st.sampled_from([1, 2, 3, 9]).map(lambda most: (("steps", most),)),
            st.sampled_from([0, 3000, 6000, 9000, 1_000_000]).map(lambda most: (("tokens", most),)),
            st.sampled_from([Decimal(0), Decimal("0.05"), Decimal(5)]).map(lambda most: (("usd", most),)),
        ),
        says=st.sampled_from([False, False, True]),
        queued=st.sampled_from([False, False, True]),
    ),
    min_size=1,
    max_size=3,
).map(tuple)
moves = mostly(
    st.tuples(st.just("tick"), st.sampled_from([40, 30, 20, 10, 5, 3, 2, 1])),
    st.tuples(st.just("send"), st.just(0)),
    st.tuples(st.sampled_from(["pause", "pause", "cancel", "watch"]), st.just(0)),
    times=2,
)


SETTLES = ("leave", "result", "failed", "again", "deny")


@dataclass(frozen=True)
class Tuned:
    """How an agent is set.

    Attributes:
        attempts: how often a model call is made; `base`, seconds before the second.
        most: tokens of a reply.
        errors: whether what was `SEEN` is an error.
        watches: whether somebody watches over its progress.
    """

    attempts: int = 2
    base: float = 0.0
    most: int | None = None
    errors: bool = False
    watches: bool = True


def says_so(value: Any) -> bool:
    """What says that a call failed, by the application's word."""
    return value == SEEN


tuned = st.builds(
    Tuned,
    attempts=st.sampled_from([1, 2, 3]),
    base=st.sampled_from([0.0, 0.5]),
    most=mostly(st.none(), st.sampled_from([40, 300]), times=3),
    errors=st.booleans(),
    watches=st.booleans(),
)


@dataclass(frozen=True)
class Setup:
    """One generated run, as data. What is after `below` counts at the top only, but for who is charged for what.

    `dialect` is that in which the model is heard, of `dialects.py`; empty for none. `server` has tools beside its own.

    `settles` is what a person says at once of calls that a process left in flight, gone through again and again; `live`
    how a run that is taken up is steered, the first time, if it is streamed (None if not); `watched`, whether what
    is shown of it is looked at; `speaks`, whether something is said to it whenever it is taken up; `cancels`, before
    which process that would decide on it or take it up another one ends it.

    `talks` is what becomes of the conversation while the run waits: it is "given" to who takes it up, or something is
    said in it "meanwhile".

    `skills` are those of `skilled.py` of that number; `typed` that which the question names, and `forgets` whether the
    agents of later processes have none. `traced` is to whom its runs are told, of `traced.py`.

    `changes` says what of the agent is otherwise in later processes: fields of the setup, the tools that it `lacks`,
    and those that write and are said to be safe to make again by then, which it `eases`.

    `brings` says which of its `funds` each process has that has the run, gone through again and again; `lasting`
    whether the budgets of agents outlive processes, too.

    `tuned` are its settings, retries, and how it takes results and watches over its progress.

    `rests` are what becomes of the run while it rests, of `resting.py`.
    """

    script: tuple[Turn, ...] = ()
    limits: Limits = field(default_factory=Limits)
    on_limit: str = "answer"
    stop_when: int = 0
    prepare: int = 0
    context: int = 0
    reports: Reports = True
    usd: Any = None
    budget: int | None = None
    instructions: str | None = None
    on_interrupted: str = "ask"
    stream: Stream = field(default_factory=Stream)
    output_mode: OutputMode | None = None
    tool_choice: str = "auto"
    eager: bool = True
    alone: bool = False
    tell_remaining: bool = False
    hooks: Hooks = field(default_factory=Hooks)
    rules: tuple[Rule, ...] = ()
    below: tuple[Below, ...] = ()
    paper: Paper = field(default_factory=Paper)
    question: int = 0
    conversation: bool = True
    decides: tuple[Decides, ...] = (Decides(),)
    steers: tuple[tuple[str, int], ...] = ()
    goes_on: int = 0
    one_step: bool = False
    biller: Biller = field(default_factory=Biller)
    second: Second | None = None
    dialect: str = ""
    skills: int = 0
    typed: str = ""
    forgets: bool = False
    traced: str = ""
    server: Served | None = None
    clock: tuple[float, ...] = ()
    bound: int | None = None
    settles: tuple[str, ...] = ()
    live: tuple[tuple[str, int], ...] | None = None
    watched: bool = False
    speaks: bool = False
    cancels: int | None = None
    talks: str = ""
    changes: tuple[tuple[str, Any], ...] = ()
    funds: tuple[Fund, ...] = ()
    brings: tuple[tuple[int, ...], ...] = ((),)
    lasting: bool = False
    rests: tuple[Rest, ...] = ()
    tuned: Tuned = Tuned()

    def agent(
        self, player: Player, journal: Journal | None = None, tools: Any = TOOLS, world: Any = None, path: str = "agent"
    ) -> Agent:
        """The agent, with those below it, as another process would make it again."""
        world = world or World()
        own = [one for one in tools if self.alone or not one.alone]
        given = (*own, *(one.tool(world, tools, path, journal) for one in self.below))
        skills = self._skills(world)
        of_skills = [] if world.forgetful else [one.name for skill in skills for one in skill.tools]
        servers = () if self.server is None else (self.server.server(world, path),)
        known = (*[one.name for one in given], *of_skills, *(OWN if servers else ()))
        named: Any = self.hooks, self.on_limit, self.on_interrupted
        hooks, on_limit, on_interrupted = named
        model, second = self._models(player, world, path)
        approvals = [one for one in (rule.rule(world, known) for rule in self.rules) if one is not None]
        return Agent(
            model,
            instructions=self._instructions(world, path),
            tools=[*given, *servers],
            skills=skills,
            telemetry=None if world.traces is None or path != "agent" else world.traces.telemetry(world.alive),
            limits=msgspec.structs.replace(self.limits, usd=self.usd),
            stop_when=self._stop_when(world, path),
            prepare_step=self._prepare(world, path, second),
            tool_choice=self.tool_choice if self.tool_choice in known else "auto",
            on_limit=on_limit,
            context=CONTEXTS[min(self.context, SHORTENING[-1]) if self.skills else self.context],
            journal=journal,
            retries=Retries(attempts=self.tuned.attempts, base=self.tuned.base),
            settings=ModelSettings(max_tokens=self.tuned.most),
            errors=says_so if self.tuned.errors else None,
            watch_progress=self.tuned.watches,
            on_interrupted=on_interrupted,
            output=None if self.output_mode is None else Answer,
            output_mode=self.output_mode,
            eager=self.eager,
            approvals=approvals,
            tell_remaining=self.tell_remaining,
            on_tool_call=[]
            if hooks.calls is None
            else [lambda call: None, hooks.calls.function(world, f"{path} on_tool_call")],
            on_tool_result=[]
            if hooks.reacts is None
            else [lambda call, output: None, hooks.reacts.function(world, f"{path} on_tool_result")],
            on_answer=None if hooks.answers is None else objects(world, hooks, f"{path} on_answer"),
            name=path,
            budget=None if self.budget is None else world.budget(path, self.budget),
        )

    def as_of(self, world: Any) -> "Setup":
        """The setup as the process has it that runs now, which may be another application by then."""
        if world.alive < 2:
            return self
        fits = {name: value for name, value in self.changes if self._may_change(name, value)}
        return replace(self, **{name: value for name, value in fits.items() if name not in ("lacks", "eases")})

    def lacking(self, world: Any) -> tuple[str, ...]:
        """The tools that the agent does not have any more."""
        if world.alive < 2:
            return ()
        return tuple(name for what, names in self.changes if what == "lacks" for name in self._may_lack(names))

    def easing(self, world: Any) -> frozenset[str]:
        """The tools that say by now that they may be made again; none where rules go by what tools say."""
        if world.alive < 2 or "effect='" in repr(self):
            return frozenset()
        return frozenset(name for what, names in self.changes if what == "eases" for name in names)

    def _may_lack(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return () if self._names_tools else names

    @property
    def _names_tools(self) -> bool:
        """Whether rules or functions, here or below, name tools, and want these."""
        own = bool(self.rules) or PREPARES[self.prepare] is not None or self.hooks.reacts is not None
        return own or any(one.setup._names_tools for one in self.below)

    def _may_change(self, name: str, value: Any) -> bool:
        """Whether a run goes on with an agent so changed: one that has as many functions as it was begun with."""
        match name:
            case "stop_when":
                return CONDITIONS[value] is not None
            case "prepare":
                return PREPARES[value] is not None
            case "second":
                return self.second is None and not value.steps
            case "output_mode":
                return self.output_mode is not None
            case "tool_choice":
                return PREPARES[self.prepare] is None
            case _:
                return True

    @property
    def has_skills(self) -> bool:
        """Whether it, or one of those below it, has skills in folders."""
        return bool(self.skills) or any(one.setup.has_skills for one in self.below)

    @property
    def goes_by_arguments(self) -> bool:
        """Whether its application decides by the numbers that calls are made with, here or below."""
        asks = any(name in repr(self.script) for name in ("guarded_sometimes", "guarded_later"))
        rules = any(rule.when in ("odd", "changes") or rule.repeats for rule in self.rules)
        return asks or rules or self.hooks.calls is not None or any(one.setup.goes_by_arguments for one in self.below)

    def _skills(self, world: Any) -> Any:
        skills = None if self.forgotten(world) else skills_of(self.skills)
        return [] if skills is None else [skills]

    @staticmethod
    def forgotten(world: Any) -> bool:
        """Whether the agents of the process that runs now have no skills any more."""
        return bool(world.forgetful and world.alive > 1)

    def _instructions(self, world: Any, path: str) -> Any:
        temper = self.hooks.instructions
        if temper is None:
            return self.instructions
        return temper.function(world, f"{path} instructions", lambda context: self.instructions or "Be there.")

    def _stop_when(self, world: Any, path: str) -> Any:
        condition, temper = CONDITIONS[self.stop_when], self.hooks.stop
        if temper is None:
            return condition
        own = temper.function(world, f"{path} stop_when", _custom)
        return own if condition is None else [*(condition if isinstance(condition, list) else [condition]), own]

    def _models(self, player: Player, world: Any, path: str) -> tuple[Any, Any]:
        """The model of the agent, and the one that single steps ask."""
        first = heard(player, self.dialect)
        if self.second is None:
            return first, None
        reports = self._reports(self.second.dialect)
        other = Player(
            self._script(world), reports, self.stream, self.second.biller, "second", player.ledger, player.held
        )
        if any(one is player for _, _, one in world.players):
            world.players.append((world.alive, path, other))
        second = heard(other, self.second.dialect)
        return (first, second) if self.second.steps else (FallbackModel([first, second]), None)

    def _prepare(self, world: Any, path: str, second: Any = None) -> Any:
        prepare, temper = PREPARES[self.prepare], self.hooks.prepare
        if second is not None and self.second is not None:
            own, steps = prepare or (lambda context: None), self.second.steps

            def prepare(context: Any) -> StepSettings | None:
                chosen = own(context)
                if not steps[context.step_number % len(steps)]:
                    return chosen
                return replace(chosen or StepSettings(), model=second)

        if prepare is None and temper.how in ("returns", "waits"):
            return None
        own_function = temper.function(world, f"{path} prepare_step", prepare or (lambda context: None))
        return [own_function, lambda context: StepSettings(tools=context.chosen.tools)]

    def _script(self, world: Any) -> tuple[Turn, ...]:
        return tuple(quoted(turn) for turn in self.script) if world is not None and world.quotes else self.script

    def _reports(self, dialect: str) -> Reports:
        # A dialect has one form for what was not counted and for what is none.
        return bool(self.reports) if dialect else self.reports

    def player(self, world: Any = None, path: str = "agent") -> Player:
        """The model that plays the script; a `world` remembers it."""
        player = Player(self._script(world), self._reports(self.dialect), self.stream, self.biller)
        if world is not None:
            world.players.append((world.alive, path, player))
            player.ledger, player.held = world.ledger, lambda: 0 if world.journal is None else len(world.journal.order)
        return player

    def at(self, path: str) -> "Setup":
        """The setup of the agent of that path ("agent/helper/pass_on")."""
        setup = self
        for name in path.split("/")[1:]:
            setup = next(one.setup for one in setup.below if one.name == name)
        return setup


def setups(names: tuple[str, ...] = NAMES, max_size: int = 6, depth: int = 2) -> st.SearchStrategy[Setup]:
    """Any setup, with sub-agents `depth` levels deep."""
    none: st.SearchStrategy[tuple[Below, ...]] = st.just(())
    any_setup = st.builds(
        Setup,
        script=scripts(names, max_size),
        limits=limits,
        on_limit=st.sampled_from(["answer", "answer", "stop", "raise"]),
        stop_when=st.integers(0, len(CONDITIONS) - 1),
        prepare=st.integers(0, len(PREPARES) - 1),
        context=st.integers(0, len(CONTEXTS) - 1),
        reports=st.sampled_from([True, True, False, False, "request"]),
        usd=money,
        budget=mostly(st.none(), st.sampled_from([0, 2000, 5000, 10_000, 30_000, 1_000_000]), times=2),
        instructions=st.sampled_from([None, None, "Be good.", "Be good.", hostile("Be good.")]),
        on_interrupted=st.sampled_from(["ask", "tell"]),
        stream=streams,
        output_mode=st.sampled_from([None] * 6 + ["tool", "prompted", "native"]),
        tool_choice=st.sampled_from(["auto"] * 24 + ["none", "required", "look", "write"]),
        eager=st.sampled_from([True, True, False]),
        alone=st.sampled_from([False, False, True]),
        tell_remaining=st.sampled_from([False, False, False, True]),
        hooks=hooks,
        rules=mostly(st.just(()), rules, times=2),
        biller=billers,
        second=mostly(st.none(), st.builds(Second, other_billers, turns_of_two, dialects), times=3),
        dialect=dialects,
        server=mostly(st.none(), served, times=5 if depth == 2 else 9),
        skills=mostly(st.just(0), st.integers(1, 3), times=3),
        tuned=mostly(st.just(Tuned()), tuned, times=2),
        below=none if not depth else belows(setups(names, 3, depth - 1)),
        **(_at_the_top() if depth == 2 else {}),
    )
    return any_setup.map(with_server).flatmap(_with_calls)


GONE = ("put", "write", "ask", "rows", "write_known")
"""Of the tools that no rule is about, those that an application may come to lack."""

changes = st.lists(
    st.one_of(
        st.tuples(st.just("stop_when"), st.integers(16, len(CONDITIONS) - 1)),
        st.tuples(st.just("prepare"), st.integers(24, len(PREPARES) - 1)),
        st.tuples(st.just("context"), st.sampled_from([13, *SHORTENING])),
        st.tuples(st.just("tool_choice"), st.sampled_from(["none", "required", "look", "write", "auto"])),
        st.tuples(st.just("eager"), st.booleans()),
        st.tuples(st.just("tell_remaining"), st.booleans()),
        st.tuples(st.just("on_interrupted"), st.sampled_from(["ask", "tell"])),
        st.tuples(st.just("output_mode"), st.sampled_from(["tool", "prompted"])),
        st.tuples(st.just("second"), st.builds(Second, other_billers, st.just(()), dialects)),
        st.tuples(st.just("dialect"), dialects),
        st.tuples(
            st.just("lacks"),
            st.lists(st.sampled_from(GONE), min_size=1).map(tuple),
        ),
        st.tuples(st.just("eases"), st.just(tuple(EASED))),
    ),
    min_size=1,
    max_size=2,
).map(tuple)


def _with_calls(setup: Setup) -> st.SearchStrategy[Setup]:
    """`setup`, whose model calls who is below it, and asks for skills, if there are any."""
    usual = [_calling(setup, 0), _calling(setup, 1), setup] if setup.below else [setup]
    called = st.sampled_from(usual)
    return st.builds(with_asks, called, plans) if setup.skills else called


def _calling(setup: Setup, at: int) -> Setup:
    """`setup`, whose model calls who is below it in its first reply from `at` on: they would be met too seldom."""
    calls = tuple(
        (f"h{i}", one.name, '{"task": "look"}' if one.name == "helper" else "{}") for i, one in enumerate(setup.below)
    )
    turns = list(setup.script)
    for i, turn in enumerate(turns):
        if i >= at and isinstance(turn, Says):
            turns[i] = replace(turn, calls=(*turn.calls, *calls), finish="tool_calls")
            return replace(setup, script=tuple(turns))
    return replace(setup, script=(*turns, Says("", calls, "tool_calls")))


def _at_the_top() -> dict[str, Any]:
    late = st.sampled_from([None, 0, 1, 4, 20])
    redacts = mostly(st.just(False), st.just(True), times=4)
    fine = st.builds(Paper, late=late, redacts=redacts)
    failing = st.builds(
        Paper,
        slow=st.booleans(),
        late=late,
        fails_at=st.one_of(st.none(), st.integers(0, 15)),
        for_ever=st.booleans(),
        whose=st.sampled_from(["any", "any", "below", "above"]),
        redacts=redacts,
    )
    return {
        "paper": mostly(fine, failing),
        "question": st.sampled_from([0, 0, 0, 1, 2]),
        "conversation": st.booleans(),
        "decides": decisions,
        "steers": mostly(st.just(()), st.lists(moves, min_size=1, max_size=8).map(tuple), times=3),
        "goes_on": st.sampled_from([0, 0, 1, 2]),
        "one_step": mostly(st.just(False), st.just(True), times=9),
        "bound": mostly(st.none(), st.sampled_from([30, 100, 250]), times=4),
        "watched": st.booleans(),
        "speaks": st.sampled_from([False, False, True]),
        "talks": st.sampled_from(["", "", "given", "meanwhile"]),
        "changes": mostly(st.just(()), changes, times=2),
        "cancels": mostly(st.none(), st.sampled_from([0, 0, 1, 2]), times=4),
        "funds": mostly(st.just(()), funds, times=1),
        "brings": brought,
        "lasting": st.booleans(),
        "rests": mostly(st.just(()), rests, times=5),
        "typed": st.sampled_from(["", "", "", "tight", "free"]),
        "forgets": mostly(st.just(False), st.just(True)),
        "traced": traced,
        "settles": mostly(st.just(()), st.lists(st.sampled_from(SETTLES), min_size=1, max_size=3).map(tuple), times=1),
        "live": st.one_of(st.none(), st.just(()), st.lists(moves, min_size=1, max_size=4).map(tuple)),
        "clock": st.sampled_from([(), (HOUR,), (-HOUR,), (HOUR, -3 * HOUR), (-25 * HOUR, 0, 26 * HOUR)]),
    }


def conversation() -> Conversation:
    """One that has been going on for a while."""
    said = Conversation()
    said.add_user("hello")
    said.add_assistant("let me look", [ToolCall("old", "look", "{}")])
    said.add_tool_result("old", "seen")
    said.add_assistant("hello to you")
    return said
