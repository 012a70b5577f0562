"""Each limit stops the run with its own reason, before the effect that would break it."""

import asyncio
import reprlib
import subprocess
import sys
from decimal import Decimal
from enum import IntEnum

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle import Agent, Conversation, Limits, MemoryJournal, Misuse, Price, RunStopped, SqliteJournal, tool
from treadle.kernel.messages import AssistantMessage, Text, ToolCall, Usage
from treadle.models import ModelReply, Overloaded
from treadle.testing import ScriptedModel


def counting():
    done = []

    @tool(effect="read")
    async def count(n: int = 0) -> int:
        """Count."""
        done.append(n)
        return n

    return count, done


def always_calls(request):
    return "summary" if request.tool_choice == "none" else [("count", {"n": request.step})]


@pytest.mark.parametrize("steps", [1, 2, 3, 7])
def test_steps_are_never_exceeded_and_the_last_writes_up(steps):
    count, done = counting()
    model = ScriptedModel(always_calls)
    result = Agent(model, tools=[count], limits=Limits(steps=steps)).run_sync("go")
    assert result.stop.reason == "max_steps"
    assert not result.finished
    assert len(model.requests) == steps
    if steps > 1:
        assert result.text == "summary"
        assert model.requests[-1].tool_choice == "none"
        assert len(done) == steps - 1


@pytest.mark.parametrize("steps", [1, 2, 3, 7])
def test_stop_takes_all_steps_and_says_what_to_try(steps):
    count, done = counting()
    model = ScriptedModel(lambda request: ("looking", [("count", {"n": request.step})]))
    result = Agent(model, tools=[count], limits=Limits(steps=steps), on_limit="stop").run_sync("go")
    assert result.stop.reason == "max_steps"
    assert "limits.steps" in result.stop.advice
    assert result.text == "looking"
    assert len(model.requests) == len(done) == steps


def test_raise_carries_the_result():
    count, _ = counting()
    agent = Agent(ScriptedModel(always_calls), tools=[count], limits=Limits(steps=2), on_limit="raise")
    with pytest.raises(RunStopped, match="max_steps") as caught:
        agent.run_sync("go")
    assert len(caught.value.result.tool_calls_made) == 2


def test_without_tools_the_last_step_may_answer():
    result = Agent(ScriptedModel(["hello"]), limits=Limits(steps=1)).run_sync("hi")
    assert result.stop.reason == "answered"
    assert result.text == "hello"


def test_with_tools_one_step_may_still_answer():
    count, _ = counting()
    result = Agent(ScriptedModel(["hello"]), tools=[count], limits=Limits(steps=1)).run_sync("hi")
    assert result.stop.reason == "answered"


@pytest.mark.parametrize("allowed", [0, 1, 3, 4])
def test_tool_calls_are_counted_inside_a_parallel_batch(allowed):
    count, done = counting()

    def reply(request):
        return "summary" if request.tool_choice == "none" else [("count", {"n": i}) for i in range(5)]

    model = ScriptedModel(reply)
    result = Agent(model, tools=[count], limits=Limits(tool_calls=allowed)).run_sync("go")
    assert result.stop.reason == "max_tool_calls"
    assert sorted(done) == list(range(allowed))
    assert len(result.tool_calls_made) == allowed
    results = [m for m in result.messages if m.role == "tool"]
    assert [m.call_id for m in results] == [f"call_0_{i}" for i in range(5)]
    assert [m.is_error for m in results] == [False] * allowed + [True] * (5 - allowed)


def test_using_up_the_tool_calls_is_not_yet_too_many():
    count, _ = counting()
    model = ScriptedModel([[("count", {}), ("count", {})], "done"])
    result = Agent(model, tools=[count], limits=Limits(tool_calls=2)).run_sync("go")
    assert result.stop.reason == "answered"


def test_errors_that_repeat_for_ever_end_the_run():
    @tool
    def broken() -> None:
        """Break."""
        raise ValueError("always")

    model = ScriptedModel(lambda request: "sorry" if request.tool_choice == "none" else [("broken", {})])
    result = Agent(model, tools=[broken], limits=Limits(consecutive_errors=3)).run_sync("go")
    assert result.stop.reason == "consecutive_errors"
    assert result.text == "sorry"
    assert len(model.requests) == 4


def test_a_call_that_goes_well_starts_the_count_of_errors_again():
    tries = []

    @tool
    def flaky(n: int) -> str:
        """Fail, but every third time."""
        tries.append(1)
        if len(tries) % 3:
            raise ValueError("not yet")
        return "well"

    model = ScriptedModel(lambda request: "done" if request.step == 12 else [("flaky", {"n": request.step})])
    result = Agent(model, tools=[flaky], limits=Limits(consecutive_errors=3)).run_sync("go")
    assert result.stop.reason == "answered"


def test_the_deadline_cancels_a_tool_in_flight():
    cancelled = []

    @tool
    async def slow() -> str:
        """Sleep."""
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return "late"

    result = Agent(ScriptedModel([("on it", [("slow", {})])]), tools=[slow], limits=Limits(seconds=0.05)).run_sync("go")
    assert result.stop.reason == "deadline"
    assert cancelled == [True]
    assert result.text == "on it"
    assert result.messages[-1].role == "tool"
    assert "unknown" in result.messages[-1].text


def test_the_deadline_cancels_the_model_and_keeps_what_had_arrived():
    from treadle.models import TextDelta

    async def stalls():
        yield TextDelta("half an ")
        await asyncio.sleep(60)

    result = Agent(ScriptedModel([stalls()]), limits=Limits(seconds=0.05)).run_sync("go")
    assert result.stop.reason == "deadline"
    assert result.text == "half an "


def test_tokens_are_never_exceeded():
    count, _ = counting()

    def reply(request):
        limit = request.settings.max_tokens
        text = Text("x" * 10)
        usage = Usage(100 * (request.step + 1), min(40, limit))
        call = ToolCall(f"c{request.step}", "count", f'{{"n": {request.step}}}')
        return ModelReply(AssistantMessage((text, call)), usage, "tool_calls")

    for tokens in (0, 150, 500, 1000, 2500):
        model = ScriptedModel(reply)
        result = Agent(model, tools=[count], limits=Limits(tokens=tokens)).run_sync("go")
        assert result.stop.reason == "max_tokens"
        assert result.usage.total_tokens <= tokens


def test_money_is_never_exceeded_and_replies_are_capped_to_what_is_left():
    count, _ = counting()
    price = Price(input=1000, output=5000)

    def reply(request):
        usage = Usage(5 * len(request.messages), request.settings.max_tokens)
        call = ToolCall(f"c{request.step}", "count", f'{{"n": {request.step}}}')
        return ModelReply(AssistantMessage((call,)), usage, "tool_calls")

    for usd in (0, 0.5, 1, 3.21):
        result = Agent(ScriptedModel(reply, price=price), tools=[count], limits=Limits(usd=usd)).run_sync("go")
        assert result.stop.reason == "max_cost"
        assert (result.cost or Decimal(0)) <= Decimal(str(usd))


def test_a_money_limit_without_a_price_is_refused_at_once():
    with pytest.raises(Misuse, match="price of scripted is not known"):
        Agent(ScriptedModel(["x"]), limits=Limits(usd=1))
    agent = Agent(ScriptedModel(["x"]))
    with pytest.raises(Misuse, match="price of scripted"):
        agent.run_sync("go", limits=Limits(usd=1))


@pytest.mark.parametrize(
    "wrong",
    [{"steps": 0}, {"steps": -1}, {"steps": 1.5}, {"steps": True}, {"seconds": -1}, {"usd": float("nan")},
     {"tokens": -5}, {"tool_calls": "3"}, {"consecutive_errors": 0}],
)  # fmt: skip
def test_a_wrong_limit_says_what_is_right(wrong):
    with pytest.raises(ValueError, match=f"Limits.{next(iter(wrong))} takes"):
        Limits(**wrong)


def test_presets():
    assert [Limits.simple().steps, Limits.medium().steps, Limits.complex().steps] == [3, 5, 10]


def test_a_failure_of_the_closing_call_keeps_the_limit_as_the_reason():
    count, _ = counting()
    model = ScriptedModel(
        lambda request: Overloaded("busy") if request.tool_choice == "none" else ("so far", [("count", {})])
    )
    result = Agent(model, tools=[count], limits=Limits(steps=3), retries=0).run_sync("go")
    assert result.stop.reason == "max_steps"
    assert result.text == "so far"
    assert isinstance(result.error, Overloaded)


def test_every_step_says_why_it_was_made_and_the_result_why_it_ended():
    count, _ = counting()
    result = Agent(ScriptedModel(always_calls), tools=[count], limits=Limits(steps=4)).run_sync("go")
    assert [step.decision.verdict for step in result.steps] == ["go", "go", "go", "land"]
    rows = {check.name: check for check in result.decision.checks(result.limits)}
    assert rows["steps"].bound == 4
    assert rows["tool_calls"].value == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"seconds": Decimal(30)},
        {"seconds": float("inf")},
        {"seconds": float("nan")},
        {"seconds": "30"},
        {"seconds": 10**400},
        {"steps": 10**400},
        {"tokens": float("inf")},
        {"tokens": Decimal(3)},
        {"usd": float("inf")},
        {"usd": Decimal("Infinity")},
        {"usd": Decimal("sNaN")},
        {"usd": Decimal("1E+30")},
        {"usd": 10**400},
        {"usd": True},
        {"usd": "1"},
        {"usd": -0.01},
    ],
    ids=reprlib.repr,
)
def test_a_limit_that_would_crash_the_run_later_is_refused_where_it_is_given(wrong):
    with pytest.raises(ValueError, match=f"Limits.{next(iter(wrong))} takes .* or None for no limit") as caught:
        Limits(**wrong)
    assert len(str(caught.value)) < 250


def test_the_largest_limits_there_are_hold_a_run_that_is_journaled(tmp_path):
    most = 2**63 - 1
    limits = Limits(most, most, float(2**62), Decimal("1E+15"), most, most)
    journal = SqliteJournal(tmp_path / "runs.db")

    async def run():
        agent = Agent(ScriptedModel(["hello"], price=Price(1, 1)), limits=limits, journal=journal)
        result = await agent.run("hi")
        async with journal:
            return result, (await journal.read(result.run_id))[0].limits

    result, stored = asyncio.run(run())
    assert result.stop.reason == "answered"
    assert stored == limits


class Few(IntEnum):
    STEPS = 3


class Half(float):
    """A number like NumPy's, which msgspec has no JSON form for."""


def test_numbers_of_other_kinds_become_plain_ones():
    limits = Limits(steps=Few.STEPS, seconds=Half(0.5), usd=Half(0.5))
    assert [type(limits.steps), type(limits.seconds), type(limits.usd)] == [int, float, Decimal]
    assert msgspec.json.decode(msgspec.json.encode(limits), type=Limits) == Limits(
        steps=3, seconds=0.5, usd=Decimal("0.5")
    )


@given(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.decimals(), st.text(max_size=3), st.binary(max_size=3)
    ),
    st.sampled_from(["steps", "tool_calls", "seconds", "usd", "tokens", "consecutive_errors"]),
)
def test_a_limit_is_refused_or_keeps_its_value_through_a_journal(value, name):
    try:
        limits = Limits(**{name: value})
    except ValueError:
        with pytest.raises(ValueError, match=f"Limits.{name} takes"):
            Limits(**{name: value})
    else:
        assert msgspec.json.decode(msgspec.json.encode(limits), type=Limits) == limits
        assert getattr(limits, name) == value


async def _under(own, caplog, **given):
    """A run of an agent with limits of its `own`, given others at its beginning, and what the log says of it."""
    count, _ = counting()
    agent = Agent(ScriptedModel([[("count", {})]] * 9), tools=[count], limits=own, on_limit="stop")
    caplog.clear()
    return agent, await agent.run("go", **given), [one.getMessage() for one in caplog.records]


def test_a_limit_on_money_that_other_limits_lift_is_told(caplog):
    async def main():
        agent, short, told = await _under(Limits(steps=2, tokens=90_000), caplog)
        assert told == []
        await agent.resume(short, limits=Limits(steps=3))
        (line,) = [one.getMessage() for one in caplog.records]
        assert "goes without tokens=90000" in line
        assert "msgspec.structs.replace(result.limits" in line
        caplog.clear()
        await agent.fork(short, at=1, limits=Limits(steps=3))
        assert ["goes without tokens=90000" in one.getMessage() for one in caplog.records] == [True]

        _, _, told = await _under(Limits(tokens=90_000), caplog, limits=Limits.simple())
        assert ["tokens=90000" in one and "structs.replace(agent.limits" in one for one in told] == [True]
        _, _, told = await _under(Limits(tokens=90_000), caplog, limits=Limits(steps=2, tokens=80_000))
        assert told == []

    asyncio.run(main())


def test_a_lifted_limit_is_told_where_no_logging_is_set_up():
    """As in a script: the logger of the library says nothing on its own there."""
    program = """
import asyncio
from treadle import Agent, Limits
from treadle.testing import ScriptedModel
asyncio.run(Agent(ScriptedModel(["done"]), limits=Limits(tokens=90_000)).run("go", limits=Limits.simple()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert "goes without tokens=90000" in done.stderr


@pytest.mark.parametrize("end", [RuntimeError("the model is down"), "", "There is little."])
def test_a_closing_reply_that_was_not_made_leaves_no_word_that_tools_are_off(end):
    """It stood in the conversation, after which the next question was asked."""
    count, _ = counting()

    def script(request):
        last = request.messages[-1].text
        if "Tools are off" in last and isinstance(end, Exception):
            raise end
        if "Tools are off" in last:
            return end
        return "Hello." if last == "And now?" else [("count", {"n": request.step})]

    talk, agent = Conversation(), Agent(ScriptedModel(script), tools=[count], limits=Limits(steps=3))
    first = agent.run_sync("Count.", conversation=talk)
    assert first.stop.reason == "max_steps"
    answered = isinstance(end, str) and bool(end)
    said = ["user", "assistant", "tool", "assistant", "tool", *["user", "assistant"] * answered]
    assert [one.role for one in talk.messages] == [one.role for one in first.messages] == said
    assert agent.run_sync("And now?", conversation=talk).text == "Hello."


@pytest.mark.parametrize(("then", "reason"), [("I paid nothing.", "answered"), ([("count", {})], "max_tool_calls")])
def test_a_limit_that_is_lowered_below_what_waits_ends_the_run_at_the_next_call(then, reason):
    count, _ = counting()
    paid = []

    @tool(needs_approval=True)
    def pay() -> None:
        """Pays what is due."""
        paid.append(1)

    model = ScriptedModel([[("count", {}), ("pay", {})], then, "It ends here."])
    agent = Agent(model, tools=[count, pay], journal=MemoryJournal())
    waiting = agent.run_sync("Pay.")
    result = asyncio.run(agent.resume(waiting.run_id, approve=waiting.pending, limits=Limits(tool_calls=1)))
    assert (result.stop.reason, paid) == (reason, [])
    assert "not executed" in result.messages[3].text
