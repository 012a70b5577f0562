"""Combinations that broke something once, or that nobody had thought of: the smallest setup of each, by name."""

from dataclasses import replace
from decimal import Decimal

from below import HELPER, PASS_ON, Below
from biller import Biller
from clock import HOUR
from funds import Fund
from hooks import Hooks, Reacts, Rule, Temper
from journals import Paper
from player import Breaks, Calls, Says, Stream
from skilled import asking, with_asks
from texts import LONE
from worlds import CONDITIONS, PREPARES, SETTLES, Decides, Second, Setup

from treadle import Limits
from treadle.result import fingerprint


def calls(*names: str, **by_id: tuple[str, str]) -> Says:
    """A reply that calls these tools, one after the other; or by id, with arguments."""
    made: Calls = tuple((f"c{i}", name, _usual(name)) for i, name in enumerate(names))
    return Says("", (*made, *((key, name, arguments) for key, (name, arguments) in by_id.items())), "tool_calls")


def _usual(name: str) -> str:
    return '{"task": "look"}' if name == HELPER else "{}"


KEY_OF_A = "a#" + fingerprint('{"n": 1}')
DONE = Says("done")
SLOWLY = Stream(True, (2,))
WRITES = Setup((calls("write"), DONE))
ON_A_WRITE = next(i for i, one in enumerate(CONDITIONS) if "has_tool_call('write')" in repr(one))


def reacting(what: str, *names: str, other: str = "look", on_errors: bool = False, **options: object) -> Setup:
    """A run whose hook reacts to every result."""
    hooks = Hooks(Reacts(what, other, on_errors))
    return Setup((calls(*(names or ("look",))), DONE), hooks=hooks, **options)  # type: ignore[arg-type]


def calling(setup: Setup, by: str = HELPER, **options: object) -> Setup:
    """A run that calls an agent below it."""
    return Setup((calls(by), DONE), below=(Below(setup, by),), **options)  # type: ignore[arg-type]


REACTIONS = {
    "an alternative that writes runs once": reacting("other", other="write"),
    "an alternative that writes is denied": reacting("other", other="write", rules=(Rule("deny", effect="write"),)),
    "an alternative that writes is asked about": reacting("other", other="guarded"),
    "an alternative counts": reacting("other", other="put", limits=Limits(tool_calls=1)),
    "an alternative is a sub-agent": Setup(
        (calls("look"), DONE),
        hooks=Hooks(Reacts("other", HELPER)),
        below=(Below(WRITES),),
        limits=Limits(tokens=90_000),
    ),
    "an alternative is a sub-agent that waits": Setup(
        (calls("look"), DONE), hooks=Hooks(Reacts("other", HELPER)), below=(Below(Setup((calls("guarded"), DONE))),)
    ),
    "an alternative hands on while a hand-off waits": Setup(
        (
            Says("", (("a", HELPER, '{"task": "look"}'), ("b", PASS_ON, "{}")), "tool_calls"),
            DONE,
        ),
        hooks=Hooks(Reacts("other", PASS_ON)),
        below=(Below(WRITES, guarded=True), Below(Setup((calls("write", "ask"), DONE)), PASS_ON)),
        decides=(Decides(("result",)),),
    ),
    "an alternative hands on": Setup(
        (calls("look"), DONE), hooks=Hooks(Reacts("other", PASS_ON)), below=(Below(Setup((DONE,)), PASS_ON),)
    ),
    "an alternative is external": reacting("other", other="ask"),
    "an alternative ends the run": reacting("other", other="done"),
    "an alternative is unknown": reacting("other", "look", "put", other="no_such_tool"),
    "an alternative has wrong arguments": reacting("other_wrong", other="put"),
    "a retry of a write stands": reacting("retry", "write", "put"),
    "a retry of a write that failed stands": reacting("retry", "fails", "look", on_errors=True),
    "a retry counts": reacting("retry", "put", limits=Limits(tool_calls=2)),
    "a retry has other arguments": reacting("retry_other", "put"),
    "a retry of what a person agreed to": reacting("retry_other", "guarded_sometimes", "guarded"),
    "a retry outlives the deadline": reacting("retry_later", "look", limits=Limits(seconds=5)),
    "an early result is asked about": reacting("ask", "look", stream=SLOWLY),
    "an early result is asked about, the reply lasts": reacting("ask", "look", stream=Stream(True, (9,), 9)),
    "an early result is replaced": reacting("value", "look", stream=SLOWLY),
    "an early result has another tool's": reacting("other", "look", other="write", stream=SLOWLY),
    "a question to the person in odd words": reacting("ask", "write", "put"),
    "a hook sees unknown tools and refused arguments": Setup(
        (calls("no_such_tool", x=("look", '{"n": "x"}')), DONE), hooks=Hooks(Reacts("value"))
    ),
    "a hook sees a sub-agent's result": calling(Setup((DONE,)), hooks=Hooks(Reacts("value"))),
    "a hook sees what was handed on": calling(Setup((DONE,)), PASS_ON, hooks=Hooks(Reacts("value"))),
    "a hook raises beside a write": Setup(
        (calls("look", "write_slowly", "put"), DONE), hooks=Hooks(Reacts("nothing", temper=Temper("raises")))
    ),
    "a hook cancels itself": Setup((calls("look", "write"), DONE), hooks=Hooks(Reacts(temper=Temper("cancels", True)))),
}
HOOKS = {
    "a condition is asynchronous": Setup((calls("look"), DONE), hooks=Hooks(stop=Temper("returns", True))),
    "a condition raises": Setup((calls("look"), DONE), hooks=Hooks(stop=Temper("raises"))),
    "a condition cancels itself": Setup((calls("look"), DONE), hooks=Hooks(stop=Temper("cancels"))),
    "a step is prepared by what raises": Setup((calls("write"), DONE), hooks=Hooks(prepare=Temper("raises", True, 1))),
    "a step is prepared by what cancels": Setup((calls("write"), DONE), hooks=Hooks(prepare=Temper("cancels", at=1))),
    "instructions raise": Setup((DONE,), hooks=Hooks(instructions=Temper("raises"))),
    "a watcher cancels itself": Setup((calls("write"), DONE), hooks=Hooks(on_event=Temper("cancels", at=3))),
    "a hook of a sub-agent raises": calling(Setup((calls("look"), DONE), hooks=Hooks(stop=Temper("raises")))),
    "a hook of a sub-agent cancels": calling(Setup((calls("look"), DONE), hooks=Hooks(stop=Temper("cancels")))),
    "a sub-agent's instructions are asynchronous": calling(
        Setup((DONE,), hooks=Hooks(instructions=Temper("waits", True)))
    ),
    "a tool's predicate is asynchronous": Setup((calls("guarded_later", x=("guarded_later", '{"n": 1}')), DONE)),
    "a tool's predicate cancels itself": Setup((calls(x=("guarded_sometimes", '{"n": 3}')), DONE)),
    "the last three messages are none": Setup((calls("look", "put", "through_door", "refuses"), DONE), prepare=26),
}
RULES = {
    "a rule is asynchronous and does not allow": Setup(
        (calls("guarded"), DONE), rules=(Rule("allow", when="odd", is_async=True),)
    ),
    "a rule raises": Setup((calls("write"), DONE), rules=(Rule("deny", when="raises"),)),
    "a rule forgets its return": Setup((calls("write"), DONE), rules=(Rule("deny", when="forgets"),)),
    "a rule that allows forgets its return": Setup((calls("guarded"), DONE), rules=(Rule("allow", when="forgets"),)),
    "a rule cancels itself": Setup((calls("write"), DONE), rules=(Rule("deny", when="cancels"),)),
    "a parent denies what its sub-agent does": calling(WRITES, rules=(Rule("deny", ("write",)),)),
    "a parent asks about what its sub-agent does": calling(WRITES, rules=(Rule("ask", ("write",)),)),
    "a parent denies two levels down": calling(calling(WRITES), rules=(Rule("deny", effect="write"),)),
    "a parent denies what another goes on with": calling(WRITES, PASS_ON, rules=(Rule("deny", ("write",)),)),
    "a third call is denied, however it is written": Setup(
        (calls(x=("put", '{"n":1}')), calls(x=("put", '{ "n": 1 }')), calls(x=("put", '{"n": 1 }')), DONE),
        rules=(Rule("deny", ("put",), repeats=2),),
    ),
    "a second call of a batch is denied for the first": Setup(
        (calls(x=("put", '{"n":1}'), y=("put", '{"n": 1}')), DONE), rules=(Rule("deny", ("put",), repeats=1),)
    ),
    "a call that is made again counts as made": reacting("retry", "put", rules=(Rule("deny", repeats=2),)),
    "a rule's function changes what it is shown": Setup(
        (calls("put", "guarded", "write"), DONE),
        rules=(Rule("deny", ("put",), when="changes"), Rule("ask", when="changes")),
    ),
    "a function of a rule above changes what it is shown": calling(
        Setup((calls("put", "write"), DONE), rules=(Rule("deny", when="odd"),)), rules=(Rule("ask", when="changes"),)
    ),
    "a call in place of another counts as made": reacting(
        "other", "look", "look", other="put", rules=(Rule("deny", ("put",), repeats=1),)
    ),
    "a parent counts what its sub-agent makes": calling(
        Setup((calls("put", "put", "put"), DONE)), rules=(Rule("deny", ("put",), repeats=2),)
    ),
    "edited arguments are judged again": Setup(
        (calls(x=("guarded", '{"n": 2}')), DONE),
        rules=(Rule("deny", ("guarded",), when="odd"),),
        decides=(Decides(("edit",)),),
    ),
    "the model calls what was not chosen": Setup((calls("write"), DONE), tool_choice="look"),
    "the model calls with tools off": Setup((calls("write"), DONE), tool_choice="none"),
}
STREAMS = {
    "a reply is withdrawn after an early call": Setup(
        (Breaks("overloaded", calls=calls("look").calls, then=calls("put"), after=4), DONE),
        stream=SLOWLY,
        limits=Limits(tool_calls=1),
    ),
    "a run goes on with a message after an early call, whose reply never came": Setup(
        (calls("look", "put"), DONE), stream=Stream(True, (1, 1, 1, 1, 9)), limits=Limits(seconds=5), goes_on=1
    ),
    "a reply is cut off after an early call": Setup((Says("", calls("look").calls, "length"),), stream=SLOWLY),
    "a reply is cut right after a tool's name": Setup(
        (Breaks(None, calls=calls(x=("look", '{"n": 1}')).calls, then=DONE, after=1),), stream=SLOWLY
    ),
    "a reply breaks off in a call that its dialect sends whole": Setup(
        (Breaks("exception", calls=(("a", "look", "{" * 80),), then=DONE, after=3),), stream=SLOWLY, dialect="google"
    ),
    "a transport breaks off by an exception of its own before a piece is heard": Setup(
        (Breaks("exception", calls=(("a", "look", "{}"),), then=DONE, after=1),),
        stream=SLOWLY,
        reports=False,
        dialect="chat",
    ),
    "a reply of an unknown finish whose request alone is counted": Setup(
        (Says("", calls("look", "put").calls, "unknown"), DONE), reports="request"
    ),
    "a call is cut off with its reply, of which the request alone is counted": Setup(
        (Says(""), calls(*["look"] * 9)),
        reports="request",
        prepare=27,
        hooks=Hooks(prepare=Temper("returns", is_async=False)),
    ),
    "an early call fails in odd words": Setup((calls("odd_name", "interrupts", "look"), DONE), stream=SLOWLY),
    "a hook cancels itself beside an early call": Setup(
        (calls("fails", "look"), DONE),
        stream=Stream(True, (0,), 1),
        hooks=Hooks(Reacts("nothing", on_errors=True, temper=Temper("cancels", is_async=True))),
    ),
    "a stream waits after its reply": Setup((calls("look", "write"), DONE), stream=Stream(True, (1,), 9)),
}
TOOLS_THAT_END_THE_WORLD = {
    f"{name} beside a write": Setup((calls(name, "write", "put"), DONE))
    for name in (
        "quits", "interrupts", "aborts", "leaves", "stops", "cancels_itself", "quits_in_thread", "cancels_in_thread",
        "stops_in_thread",
    )
}  # fmt: skip
BELOW = {
    "calls below count": calling(Setup((calls(*["put"] * 4), DONE)), limits=Limits(tool_calls=3)),
    "a sub-agent pays and is cancelled": calling(
        Setup((calls("write"), calls("write_slowly"), DONE)), limits=Limits(seconds=1)
    ),
    "an answer of a type, handed on": calling(Setup((Says("four"),)), PASS_ON, output_mode="prompted"),
    "an answer of two types, handed on": calling(
        Setup((Says('{"n": 4}'),), output_mode="tool"), PASS_ON, output_mode="tool"
    ),
    "a hand-off is asked for before a write": Setup(
        (calls(PASS_ON, "write", "look"), DONE), below=(Below(WRITES, PASS_ON),)
    ),
    "a condition ends a run below on a write": calling(replace(WRITES, stop_when=ON_A_WRITE)),
    "a condition ends a typed run below with words": calling(
        Setup((Says("so I do", (("w", "write", "{}"),), "tool_calls"), DONE), output_mode="tool", stop_when=ON_A_WRITE)
    ),
    "a condition ends a hand-off without a word": calling(replace(WRITES, stop_when=ON_A_WRITE), PASS_ON),
    "a condition ends what was handed on on a write": calling(replace(WRITES, stop_when=ON_A_WRITE), PASS_ON),
    "two are handed on at once": Setup((calls(PASS_ON, PASS_ON), DONE), below=(Below(WRITES, PASS_ON),)),
    "two sub-agents write at once": Setup((calls(HELPER, HELPER), DONE), below=(Below(WRITES),)),
    "two levels of approvals": calling(calling(Setup((calls("guarded"), DONE))), decides=(Decides(by_key=True),)),
    "a sub-agent that needs leave": Setup((calls(HELPER), DONE), below=(Below(WRITES, guarded=True),)),
    "a sub-agent waits for a result": calling(Setup((calls("ask", "write"), DONE))),
    "a sub-agent's model fails": calling(Setup((Breaks("authentication", times=9),))),
    "a sub-agent in an odd place": Setup(
        (calls(**{"a": (HELPER, _usual(HELPER)), "a.0.c0": (HELPER, _usual(HELPER))}), DONE),
        below=(Below(calling(WRITES)),),
    ),
}
LIMITED = {
    f"taken up under {most} tool calls": Setup(
        (calls("guarded", "guarded", "guarded", "guarded"), calls("put", "put"), DONE),
        limits=Limits(tool_calls=2 if most > 4 else 9),
        decides=(Decides(("approve",), calls=most),),
    )
    for most in (1, 3, 20)
}
LIMITED |= {
    f"taken up under {most} tool calls, all below": calling(
        Setup((calls("guarded", "guarded", "guarded"), calls("put", "put"), DONE)),
        limits=Limits(tool_calls=3 if most > 4 else 9),
        decides=(Decides(("approve",), calls=most),),
    )
    for most in (1, 2, 20)
}
LIMITED |= {
    "the first of two models counts nothing and is free": Setup(
        (calls("look"), DONE),
        biller=Biller(input=0, output=0, read=0, write=Decimal(0)),
        reports=False,
        second=Second(Biller(input=500, output=1500)),
    ),
}
STEPS = {
    "a step by hand calls an agent": calling(Setup((calls("look"), DONE)), one_step=True),
    "a step by hand hands on": calling(Setup((calls("look"), DONE)), PASS_ON, one_step=True),
    "a step by hand waits below": calling(Setup((calls("guarded"), DONE)), one_step=True),
    "a step by hand waits, and a limit raises": Setup((calls("guarded"), DONE), one_step=True, on_limit="raise"),
    "a step by hand waits for a result": Setup((calls("ask", "write"), DONE), one_step=True),
    "a step by hand is reacted to": reacting("other", "look", other="write", one_step=True),
    "a step by hand has a wrong answer": Setup((Says("four"), DONE), one_step=True, output_mode="prompted"),
}
JOURNALS = {
    f"the journal {'of a sub-run ' if whose == 'below' else ''}fails at append {at}": Setup(
        (calls(HELPER, "write") if whose == "below" else calls("look", "write"), DONE),
        below=(Below(WRITES),) if whose == "below" else (),
        paper=Paper(fails_at=at, whose=whose),
    )
    for whose in ("any", "below")
    for at in range(6)
}
DECISIONS = {
    "a decision fits nothing": Setup(
        (calls("guarded", "ask"), DONE),
        decides=(
            Decides(wrong=("nobody", "fingerprint", "inner", "two ways", "bad edit", "approve a result"), again=True),
        ),
    ),
    "a call in doubt is allowed with other arguments": Setup(
        (calls("write", "put", "guarded"), DONE), decides=(Decides(wrong=("edit in doubt",)),)
    ),
    "a call in doubt below is allowed with other arguments": calling(
        Setup((calls("write", "guarded"), DONE)), decides=(Decides(("edit",), wrong=("edit in doubt",)),)
    ),
    "calls of several runs below are decided at once": Setup(
        (calls(HELPER, HELPER, HELPER), DONE),
        below=(Below(Setup((calls("guarded"), DONE)), HELPER),),
        decides=(Decides(("edit", "deny", "result")),),
    ),
    "an id that looks like another's key": Setup(
        (
            calls(**{"a": ("guarded", '{"n": 1}'), KEY_OF_A: ("guarded", '{"n": 2}')}),
            DONE,
        ),
        decides=(Decides(("approve", "deny"), by_key=True, partly=True),),
    ),
    "ids that look like paths": Setup(
        (calls(**{"a": (HELPER, _usual(HELPER)), "a/c0": ("guarded", "{}"), "a%2Fc0": ("guarded", '{"n": 2}')}), DONE),
        below=(Below(Setup((calls("guarded"), DONE))),),
        decides=(Decides(("approve", "deny"), partly=True),),
    ),
    "ids of every kind": Setup(
        (
            calls(
                **{
                    x: ("guarded", "{}")
                    for x in ("x+1", "a.b", "a~1", "\x00", f"l{LONE}", "/", "#", "%", "..", "l" * 500)
                }
            ),
            DONE,
        ),
        decides=(Decides(partly=True, by_key=True), Decides(partly=True)),
    ),
    "a result in odd words from outside": Setup((calls("ask", "ask"), DONE)),
    "a result instead of an approval": Setup((calls("guarded", "look"), DONE), decides=(Decides(("result",)),)),
    "a denial in odd words": Setup((calls("guarded", "write"), DONE), decides=(Decides(("deny",)),)),
}
TEXTS = {
    "odd words in a tool's file": Setup((calls("write", "odd_name"), DONE)),
    "odd words in a tool's error": Setup((calls("odd_error"), DONE)),
    "odd words in instructions": Setup((DONE,), instructions=f"Be good {LONE}."),
    "odd words in a question of parts": Setup((DONE,), question=2),
    "odd words of a model that fails": Setup((Breaks("odd_words"), DONE)),
    "odd words by a rule": Setup((calls("write"), DONE), rules=(Rule("deny"),)),
    "odd words of a condition": Setup((Says("long and odd", calls("look").calls), DONE), stop_when=19),
}
GOING_ON = {
    f"goes on after {name}": Setup((*[calls("write")] * 4, DONE), limits=limits, on_limit=on_limit, goes_on=1)
    for name, limits, on_limit in (
        ("its steps", Limits(steps=2), "stop"),
        ("its closing answer", Limits(steps=2), "answer"),
        ("its tool calls", Limits(tool_calls=2), "raise"),
        ("its tokens", Limits(tokens=6_000), "stop"),
    )
}
GOING_ON["goes on after its answer"] = Setup((calls("write"), DONE, DONE), goes_on=1)
BATCHES = {
    "a dozen calls of all effects": Setup(
        (calls(*["look", "put", "write", "fails", "through_door", "write_slowly"] * 2), DONE)
    ),
    "writes of one reply": Setup((calls("write_slowly", "write", "write"), DONE)),
    "writes that may overlap": Setup((calls("write_beside", "write_beside"), DONE)),
    "a slow write beside one that is killed": Setup((calls("write", "write_slowly", "look"), DONE)),
}
CLOCKS = {
    f"a clock that is set {which}": replace(calling(WRITES), clock=steps, limits=Limits(seconds=60))
    for which, steps in (("ahead", (HOUR,)), ("back", (-HOUR,)), ("to and fro", (HOUR, -3 * HOUR)))
}
OVER_THE_BOUND = {
    "a tool gives the application too much": Setup((calls("heaps", "write"), DONE), bound=100),
    "an agent below gives too much": calling(Setup((calls("heaps"), DONE)), bound=100),
    "a reply goes on and on": Setup((calls("write"), Says("long " * 60, calls("look").calls), DONE), bound=100),
    "a reply below goes on and on": calling(Setup((Says("long " * 60),)), bound=100),
    "a reply of many small pieces goes on": Setup((calls(*["look"] * 9), DONE), stream=SLOWLY, bound=100),
}


def _known(*calls_of: tuple[str, int]) -> Setup:
    """A run that writes where it may be known afterwards what was written."""
    made: Calls = tuple((f"k{i}", name, f'{{"n": {n}}}') for i, (name, n) in enumerate(calls_of))
    return Setup((Says("", made, "tool_calls"), DONE))


RECOVERED = {
    "it is known what was written": _known(("write_known", 0), ("write_found", 0)),
    "nobody knows what was written": _known(("write_known", 1), ("write_found", 1)),
    "whoever knows what was written raises": _known(("write_known", 2), ("write_found", 2)),
    "whoever knows what was written is cancelled": _known(("write_found", 3), ("write_known", 3)),
    "the model is told that nobody knows": replace(_known(("write_known", 1)), on_interrupted="tell"),
    "it is known below what was written": calling(_known(("write_known", 0), ("write_known", 2))),
    "a hook sees what was found out": replace(_known(("write_known", 0)), hooks=Hooks(Reacts("result"))),
    "a rule asks about what is known": replace(_known(("write_known", 0)), rules=(Rule("ask", ("write_known",)),)),
} | {
    f"a person says of a call in flight: {how}": replace(
        calling(Setup((calls("write", "put"), DONE))), settles=(how,), live=(("tick", 3), ("send", 0))
    )
    for how in SETTLES
}
TAKEN_OVER = (
    {
        f"taken over after {count} turns": replace(
            calling(Setup((calls("write", "put", "look"), DONE))), steers=(("tick", count), ("takeover", 0))
        )
        for count in (1, 5, 10, 20, 30, 40, 60)
    }
    | {
        f"others would take over what works below after {count} turns": replace(
            calling(calling(Setup((calls("write", "put", "look"), DONE)))),
            steers=(("tick", count), ("would take over", 0)),
        )
        for count in (6, 12)
    }
    | {
        f"cancelled as what was handed on is written, after {count} turns": replace(
            calling(Setup((DONE,)), "pass_on"), paper=paper, steers=(("tick", count), ("cancel", 0))
        )
        for paper, count in ((Paper(), 5), (Paper(slow=True), 12), (Paper(late=2), 22))
    }
    | {
        "spoken to and taken over before its first turn": Setup((DONE,), steers=(("send", 0), ("takeover", 0))),
    }
    | {
        f"taken over after {count} turns, and found out what was written": Setup(
            (calls("write_known"), DONE), steers=(("tick", count), ("takeover", 0))
        )
        for count in (1, 2, 3)
    }
)
NO_TOOLS = {
    f"a step without tools tells nothing of the size of the next, under {how}": Setup(
        (calls("look"), Says("", (("a", "look", "{}"),), "tool_calls"), DONE),
        prepare=len(PREPARES) - 1,
        output_mode="tool",
        on_limit="stop",
        biller=Biller("o200k", around_tools=346),
        limits=Limits(tokens=4300 if how == "a limit" else None),
        budget=4300 if how == "a budget" else None,
    )
    for how in ("a limit", "a budget")
}
BETWEEN = {
    "a reply that breaks off after a blank is not the last text": Setup(
        (Says("hm", calls("look").calls, "tool_calls"), Breaks("overloaded", " "), DONE),
        limits=Limits(tokens=9000),
        on_limit="stop",
    ),
    "a run goes on with longer texts than it had": Setup(
        (calls("rows", "rows", "rows"), calls("guarded"), DONE),
        paper=Paper(redacts=True),
        on_limit="stop",
        biller=Biller("o200k"),
        limits=Limits(tokens=7900),
    ),
}
TIGHT, FREE, CLOSED = asking("tight"), asking("free"), asking("closed")
SKILLED = {
    "a skill is asked for twice in one reply and again": with_asks(
        Setup((calls("look"), calls("write", "put"), DONE), skills=1), [(0, TIGHT), (0, TIGHT), (1, TIGHT)]
    ),
    "a skill is asked for while the reply arrives, and it breaks off": Setup(
        (Breaks("overloaded", calls=(("s", *TIGHT),), then=Says("", (("s", *TIGHT),)), after=4), calls("write"), DONE),
        stream=SLOWLY,
        skills=1,
        traced="at once",
    ),
    "a policy cuts what a skill brought": with_asks(
        Setup((calls("rows", "heaps"), calls("rows"), calls("write"), DONE), skills=2, context=14, forgets=True),
        [(0, TIGHT), (2, TIGHT)],
    ),
    "a summary is written while a skill is active": with_asks(
        Setup((calls("rows"), calls("rows"), calls("write"), DONE), skills=1, context=18, typed="free"), [(0, TIGHT)]
    ),
    "a summary is cancelled while it is written": Setup(
        (calls("heaps", "rows"), calls("rows", "heaps"), calls("write", "rows"), Says("a summary of it"), DONE),
        context=18,
        skills=2,
        stream=SLOWLY,
        steers=(("tick", 45), ("cancel", 0)),
    ),
    "a person must agree to a skill": with_asks(
        Setup((calls("look"), calls("write"), DONE), skills=1, rules=(Rule("ask", (TIGHT[0],)),)),
        [(0, CLOSED), (0, TIGHT)],
    ),
    "a skill is handed on with the conversation": with_asks(
        calling(
            with_asks(Setup((calls("look", "write"), DONE), skills=2), [(0, TIGHT)]),
            PASS_ON,
            skills=3,
            typed="tight",
            forgets=True,
            traced="content",
        ),
        [(0, FREE)],
    ),
    "an agent below follows a skill": calling(
        with_asks(Setup((calls("look"), calls("write", "put"), DONE), skills=1), [(0, TIGHT)]), skills=1, typed="tight"
    ),
    "another call may take the place of a skill that is asked for twice": with_asks(
        Setup((calls("look"), DONE), skills=3, hooks=Hooks(Reacts("other_wrong", times=1))), [(0, TIGHT), (0, TIGHT)]
    ),
    "an alternative is a skill": reacting("other", "look", "put", other=TIGHT[0], skills=1),
}
TOLD = {
    f"telemetry is {how}, and a sub-agent waits": calling(
        Setup((calls("guarded", "fails"), Breaks("overloaded", "half", then=DONE))), traced=how
    )
    for how in ("looked at", "raising")
} | {
    "a model fails below, for whoever may not see its inside": calling(Setup((Breaks("authentication"),))),
    "a model fails as it is to sum up, likewise": Setup(
        (*[calls("rows")] * 4, Breaks("authentication"), DONE), context=18
    ),
}
ROOM, DOLLARS = Fund(tokens=1_000_000), Fund(usd=Decimal(5), per="user")
FUNDED = {
    "a budget is given first when a person decides": Setup(
        (calls("guarded"), calls("write"), DONE), funds=(ROOM, DOLLARS), brings=((), (0,), (1,)), lasting=True
    ),
    "other budgets are given while an agent below waits": calling(
        Setup((calls("guarded"), DONE), budget=1_000_000),
        funds=(ROOM, DOLLARS),
        brings=((0,), (1, 0), (1,)),
        lasting=True,
    ),
    "a budget is given first where a limit has stopped it": Setup(
        (calls("look"), calls("write"), DONE), limits=Limits(steps=2), goes_on=2, funds=(DOLLARS,), brings=((), (0,))
    ),
    "a run goes on under another budget in place of its own": Setup(
        (DONE,), goes_on=1, funds=(ROOM, DOLLARS), brings=((0,), (1,)), lasting=True
    ),
}
ENDED = {
    "another process ends a run whose agent below waits": calling(
        Setup((calls("guarded", "write_slowly"), DONE), budget=1_000_000), cancels=0, budget=1_000_000, lasting=True
    ),
    "another process ends what was left in the middle": Setup(
        (calls("write", "put", "look"), DONE), cancels=0, funds=(ROOM,), brings=((0,),), limits=Limits(tokens=90_000)
    ),
}
CHANGED = {
    "a tool that was under way is gone": Setup(
        (calls("write", "put", "look", "ask"), DONE), changes=(("lacks", ("write", "put", "ask")),)
    ),
    "a tool that wrote says by then that it may be made again": Setup(
        (calls("write", "put", "write_slowly"), DONE), changes=(("eases", ("write", "write_slowly")),)
    ),
    "another condition holds when it is taken up": Setup(
        (calls("guarded"), calls("write"), calls("look"), DONE), changes=(("stop_when", 17),)
    ),
    "another model is asked when it is taken up": Setup(
        (calls("guarded"), Breaks("overloaded", "half an "), DONE),
        changes=(("second", Second(Biller(input=500, output=1500))),),
        limits=Limits(usd=Decimal(1)),
        usd=Decimal(1),
        funds=(ROOM,),
        brings=((), (0,)),
    ),
    "tools are off when it is taken up": Setup(
        (calls("guarded"), calls("write"), DONE), changes=(("tool_choice", "none"), ("context", 14))
    ),
}
TALKED = {
    "a conversation goes on while its run waits": Setup((calls("guarded", "ask"), DONE), talks="meanwhile"),
    "a run that waited takes its place in its conversation": calling(
        Setup((calls("guarded"), DONE)), PASS_ON, talks="given", paper=Paper(redacts=True), goes_on=1
    ),
}


def _numbered(name: str, **numbers: int) -> Calls:
    return tuple((key, name, f'{{"n": {n}}}') for key, n in numbers.items())


def _withdrawn(first: Calls, then: Calls, **options: object) -> Setup:
    """A reply that breaks off once its calls have begun, and is written anew with others."""
    breaks = Breaks("overloaded", calls=first, then=Says("", then, "tool_calls"))
    return Setup((breaks, DONE), stream=Stream(True, (5,)), paper=Paper(redacts=True), **options)  # type: ignore[arg-type]


ALIKE = {
    "a call of a withdrawn reply is written like one of the next": _withdrawn(
        _numbered("look", a=1), _numbered("look", a=2)
    ),
    "calls of a withdrawn reply come in another order, and are written alike": _withdrawn(
        _numbered("look", a=1, b=2), _numbered("look", c=2, d=1)
    ),
    "calls of a withdrawn reply are looked at, and are written alike": _withdrawn(
        _numbered("look", a=1, b=2), _numbered("look", c=2, b=3, d=1), hooks=Hooks(Reacts("retry_other", times=1))
    ),
    "an early call is written like one beside it": Setup(
        (Says("", (*_numbered("look", a=1, b=2), *_numbered("write", c=1)), "tool_calls"), DONE),
        stream=Stream(True, (5,)),
        paper=Paper(redacts=True),
    ),
} | {
    f"a call in the place of another is written like it: {what}, {'asked about' if rules else 'at once'}": Setup(
        (Says("", (*_numbered("put", a=1), *_numbered("write", b=1)), "tool_calls"), DONE),
        hooks=Hooks(Reacts(what, "put", times=1)),
        rules=rules,
        decides=(Decides(("edit",)),) if what == "retry" else (Decides(),),
        paper=Paper(redacts=True),
    )
    for what in ("retry", "retry_other", "other")
    for rules in ((), (Rule("ask", ("put", "write"), repeats=1),))
}
SENT_BACK = {
    f"answers are sent back, here and below: {name}, {times}, {mode}": Setup(
        (Says("hm"), calls(name), *[Says("so be it")] * 4, DONE),
        hooks=Hooks(answers=Temper("waits"), objections=times),
        below=(Below(Setup((Says("fine"),) * 3, hooks=Hooks(answers=Temper(), objections=2)), name),),
        stream=Stream(True, (1,)),
        steers=(("tick", 5),),
        output_mode=mode,
    )
    for times, name, mode in ((1, HELPER, None), (2, PASS_ON, None), (1, PASS_ON, "prompted"), (2, HELPER, "tool"))
}
QUEUED = {
    "what is decided is delivered again before a worker has it": Setup(
        (calls("guarded", "ask"), calls("guarded"), DONE),
        decides=(Decides(queued=True), Decides(("deny",), queued=True)),
    ),
    "what is decided below is delivered again before a worker has it": calling(
        Setup((calls("guarded", "ask"), DONE)), decides=(Decides(("edit",), queued=True, partly=True),)
    ),
}
FOUND: dict[str, Setup] = {
    name: setup
    for table in (
        REACTIONS, HOOKS, RULES, STREAMS, TOOLS_THAT_END_THE_WORLD, BELOW, JOURNALS, DECISIONS, TEXTS, GOING_ON,
        BATCHES, STEPS, LIMITED, CLOCKS, RECOVERED, TAKEN_OVER,
        OVER_THE_BOUND, NO_TOOLS, BETWEEN, SKILLED, TOLD, FUNDED, ENDED, CHANGED, TALKED, ALIKE,
        SENT_BACK, QUEUED,
    )
    for name, setup in table.items()
}  # fmt: skip
