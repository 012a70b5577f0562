"""Early calls: what starts while a reply is still arriving goes through the same door as any other call.

What was found (`eager`, the default, and a stream that pauses):

- `AskUser` leaves the run without an end -> test_a_question_about_an_early_call_pauses_the_run
- the call of a withdrawn reply uses up the limit -> test_an_early_call_of_a_withdrawn_reply_does_not_use_up_the_limit
- a read tool with only optional arguments starts with its defaults when the reply is cut after its name
  -> test_a_call_cut_right_after_its_name_does_not_start
- a call that did run is told as "not executed" -> test_an_early_call_that_ran_is_not_told_as_not_executed
- the same door -> test_a_hook_sees_an_early_call_once, test_a_hook_that_raises_on_an_early_call_keeps_its_result,
  test_an_alternative_to_an_early_call_runs_once, test_an_alternative_to_an_early_call_waits_for_the_whole_reply,
  test_an_early_call_is_in_the_journal_before_it_runs, test_the_result_of_an_early_call_is_journaled_as_it_arrives,
  test_an_early_call_that_raises_system_exit_is_a_tool_error, test_an_early_call_that_a_rule_denies_does_not_start,
  test_a_hook_that_raises_on_another_call_lets_an_early_one_come_back, test_an_early_call_outlives_a_crash,
  test_a_tool_that_the_step_does_not_choose_does_not_start_early
- `tool_calls_made` was said to have every call, and has none of a reply that was withdrawn
  -> test_a_call_of_a_withdrawn_reply_counts_and_stands_in_the_events_alone
- a run whose reply never came, and to which something is said then, is given what its call brought before that
  -> test_what_an_early_call_brought_answers_nothing_that_was_said_after_it
"""

import asyncio

import pytest
from play import Bank, apart, copied, pieces, reply, told, within

from treadle import Agent, Alternative, AskUser, Limits, MemoryJournal, Retries, StepSettings, deny, tool
from treadle.journal import JournalUnavailable
from treadle.kernel.events import ModelReplied, ToolFinished, ToolStarted
from treadle.models import ConnectionFailed, ToolCallCompleted, ToolCallStarted
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

LOOK = ("a1", "look", '{"key": "a"}')


async def pausing(*calls, whole=None, finish="tool_calls"):
    """A stream that gives the calls, then waits long enough for them to start and end, then the reply."""
    for call in calls:
        for piece in pieces(*call):
            yield piece
    await asyncio.sleep(0.02)
    yield reply(*calls, finish=finish) if whole is None else whole


async def test_a_question_about_an_early_call_pauses_the_run():
    bank = Bank()
    agent = Agent(
        ScriptedModel([pausing(LOOK), "done"]), tools=[bank.look],
        on_tool_result=lambda call, output: AskUser("Is it?"), limits=Limits(seconds=5),
    )  # fmt: skip
    waiting = await within(agent.run("go"))
    assert waiting.stop.reason == "waiting"
    (pending,) = waiting.pending
    assert (pending.kind, pending.question) == ("result", "Is it?")
    done = await within(agent.resume(waiting, results={pending.call_id: "it is"}))
    assert done.finished
    assert told(done) == ["it is"]
    assert bank.ran == ["look a"]


async def test_an_early_call_of_a_withdrawn_reply_does_not_use_up_the_limit():
    bank = Bank()

    async def breaks():
        for piece in pieces(*LOOK):
            yield piece
        await asyncio.sleep(0.02)
        raise ConnectionFailed("reset")

    agent = Agent(
        ScriptedModel([breaks(), [("look", {"key": "b"})], "done"]), tools=[bank.look], retries=Retries(base=0.0),
        limits=Limits(tool_calls=1, seconds=5),
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert told(result)[0] == "value of b"
    assert bank.times("look b") == 1


async def test_a_call_of_a_withdrawn_reply_counts_and_stands_in_the_events_alone():
    async def breaks_off():
        for piece in pieces(*LOOK):
            yield piece
        await asyncio.sleep(0.02)
        raise ConnectionFailed("it broke off")

    bank = Bank()
    model = ScriptedModel([breaks_off(), [("look", {"key": "b"})], "done"])
    result = await within(Agent(model, tools=[bank.look], retries=Retries(attempts=2, base=0.01)).run("go"))
    assert bank.ran == ["look a", "look b"]
    assert [call.arguments for call in result.tool_calls_made] == [{"key": "b"}]
    assert result.steps[-1].decision.tool_calls == 2
    assert next(event.call_id for event in result.events if isinstance(event, ToolStarted)) == "a1"


@pytest.mark.parametrize("redact", [None, str])
async def test_what_an_early_call_brought_answers_nothing_that_was_said_after_it(redact):
    balances = iter(["100", "200"])

    @tool(effect="read")
    def balance(account: str) -> str:
        """Says what is in an account."""
        return next(balances)

    async def breaks():
        for piece in pieces("a1", "balance", '{"account": "x"}'):
            yield piece
        await asyncio.sleep(0.02)
        raise ConnectionFailed("reset")

    model = ScriptedModel([breaks(), [("balance", {"account": "x"})], "done"])
    agent = Agent(model, tools=[balance], journal=MemoryJournal(redact=redact), retries=0)
    failed = await within(agent.run("What is in x?"))
    assert failed.stop.reason == "model_error"
    result = await within(agent.resume(failed.run_id, message="I have paid 100 in. And now?"))
    assert told(result) == ["200"]
    assert len([event for event in result.events if isinstance(event, ToolStarted)]) == 2
    assert (await agent.replay(result.run_id)).difference is None


@pytest.mark.parametrize("finish", ["length", "content_filter"])
async def test_a_call_cut_right_after_its_name_does_not_start(finish):
    ran = []

    @tool(effect="read")
    async def everything(kind: str = "all") -> str:
        """List things."""
        ran.append(kind)
        return "things"

    async def cut():
        yield ToolCallStarted("a1", "everything")
        yield ToolCallCompleted("a1")
        await asyncio.sleep(0.02)
        yield reply(("a1", "everything", ""), finish=finish)

    agent = Agent(ScriptedModel([cut(), "done", "done"]), tools=[everything], limits=Limits(seconds=5))
    await within(agent.run("go"))
    assert not ran


@pytest.mark.parametrize("finish", ["length", "unknown", "content_filter"])
async def test_an_early_call_that_ran_is_not_told_as_not_executed(finish):
    bank = Bank()
    agent = Agent(
        ScriptedModel([pausing(LOOK, finish=finish), "done", "done"]), tools=[bank.look], limits=Limits(seconds=5)
    )
    result = await within(agent.run("go"))
    assert bank.ran == ["look a"]
    assert all('"executed":false' not in text for text in told(result))
    assert all("value of a" in text for text in told(result))


async def test_a_hook_sees_an_early_call_once():
    bank, seen = Bank(), []
    agent = Agent(
        ScriptedModel([pausing(LOOK), "done"]), tools=[bank.look], limits=Limits(seconds=5),
        on_tool_result=lambda call, output: seen.append(output.content),
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert result.finished
    assert bank.ran == ["look a"]
    assert seen == ["value of a"]


class Broken(Exception):
    pass


async def test_a_hook_that_raises_on_an_early_call_keeps_its_result():
    bank, journal = Bank(), MemoryJournal()

    def broken(call, output):
        raise Broken("mine")

    model = ScriptedModel([pausing(LOOK), "done"])
    with pytest.raises(Broken):
        await within(Agent(model, tools=[bank.look], on_tool_result=broken, journal=journal).run("go"))
    (info,) = await journal.list()
    finished = [event for event in await journal.read(info.run_id) if isinstance(event, ToolFinished)]
    assert [event.content for event in finished] == ["value of a"]
    bank.ran.clear()

    def again(request):
        return "done" if request.step else reply(("a2", "look", '{"key": "a"}'))

    mended = Agent(ScriptedModel(again), tools=[bank.look], on_tool_result=lambda call, output: None, journal=journal)
    result = await within(mended.resume(info.run_id))
    assert result.finished
    assert told(result) == ["value of a"]
    assert not bank.ran


async def test_a_hook_that_raises_on_another_call_lets_an_early_one_come_back():
    begun, ended = [], []

    @tool(effect="read")
    async def slowly(key: str) -> str:
        """Looks for long."""
        begun.append(key)
        await asyncio.sleep(0.05)
        ended.append(key)
        return key

    def check(call, output):
        if call.name == "look":
            raise ValueError("mine")

    async def stream():
        for piece in pieces("s1", "slowly", '{"key": "a"}'):
            yield piece
        await asyncio.sleep(0.01)
        yield reply(("s1", "slowly", '{"key": "a"}'), LOOK)

    bank, journal = Bank(), MemoryJournal()
    agent = Agent(ScriptedModel([stream(), "done"]), tools=[slowly, bank.look], on_tool_result=check, journal=journal)
    with pytest.raises(ValueError, match="mine"):
        await within(agent.run("go"))
    (run,) = await journal.list(5)
    assert (begun, ended) == (["a"], ["a"])
    agent = Agent(ScriptedModel(["done"]), tools=[slowly, bank.look], on_tool_result=lambda *_: None, journal=journal)
    assert told(await within(agent.resume(run.run_id))) == ["a", "value of a"]
    assert (begun, bank.ran) == (["a"], ["look a"])


async def test_an_alternative_to_an_early_call_runs_once():
    bank = Bank()
    agent = Agent(
        ScriptedModel([pausing(LOOK), "done"]), tools=[bank.look, bank.pay], limits=Limits(seconds=5),
        on_tool_result=lambda call, output: Alternative("pay", {"amount": 5}),
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert result.finished
    assert bank.ran == ["look a", "pay 5"]
    assert told(result) == ["paid 5"]


async def test_an_alternative_to_an_early_call_waits_for_the_whole_reply():
    """A reply that is withdrawn after all must not have paid anything."""
    bank = Bank()

    async def withdrawn():
        for piece in pieces(*LOOK):
            yield piece
        await asyncio.sleep(0.02)
        assert bank.times("pay") == 0
        yield reply(("b1", "look", '{"key": "b"}'))

    agent = Agent(
        ScriptedModel([withdrawn(), "done"]), tools=[bank.look, bank.pay], limits=Limits(seconds=5),
        on_tool_result=lambda call, output: (
            Alternative("pay", {"amount": 5}) if "value of a" in output.content else None
        ),
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert result.finished
    assert bank.times("pay") == 0


async def test_an_early_call_is_in_the_journal_before_it_runs():
    journal, seen = MemoryJournal(), []

    @tool(effect="read")
    async def look(key: str) -> str:
        """Look something up."""
        (info,) = await journal.list()
        seen.extend(await journal.read(info.run_id))
        return f"value of {key}"

    agent = Agent(ScriptedModel([pausing(LOOK), "done"]), tools=[look], journal=journal)
    await within(agent.run("go"))
    (started,) = [event for event in seen if isinstance(event, ToolStarted)]
    assert (started.call_id, started.name) == ("a1", "look")


async def test_the_result_of_an_early_call_is_journaled_as_it_arrives():
    journal, bank, seen = MemoryJournal(), Bank(), []

    async def watching():
        for piece in pieces(*LOOK):
            yield piece
        await asyncio.sleep(0.02)
        (info,) = await journal.list()
        seen.extend(await journal.read(info.run_id))
        yield reply(LOOK)

    agent = Agent(ScriptedModel([watching(), "done"]), tools=[bank.look], journal=journal)
    await within(agent.run("go"))
    assert [event.content for event in seen if isinstance(event, ToolFinished)] == ["value of a"]


async def test_an_early_call_outlives_a_crash():
    journal, bank, left = MemoryJournal(), Bank(), []

    async def dies():
        for piece in pieces(*LOOK):
            yield piece
        await asyncio.sleep(0.02)
        left.append(await copied(journal))
        yield reply(LOOK)

    result = await within(Agent(ScriptedModel([dies(), "done"]), tools=[bank.look], journal=journal).run("go"))
    bank.ran.clear()

    def again(request):
        return "done" if request.step else reply(("a2", "look", '{"key": "a"}'))

    taken_up = Agent(ScriptedModel(again), tools=[bank.look], journal=left[0])
    done = await within(taken_up.resume(result.run_id))
    assert done.finished
    assert told(done) == ["value of a"]
    assert not bank.ran


@pytest.mark.parametrize(
    "raised",
    [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError("mine")],
    ids=lambda raised: type(raised).__name__,
)
def test_an_early_call_that_raises_system_exit_is_a_tool_error(raised):
    @tool(effect="read")
    async def look(key: str) -> str:
        """Look something up."""
        raise raised

    async def main():
        agent = Agent(ScriptedModel([pausing(LOOK), "done"]), tools=[look], limits=Limits(seconds=5))
        return await agent.run("go")

    result = apart(main)
    assert result.finished
    (record,) = result.tool_calls_made
    assert record.is_error
    assert type(raised).__name__ in record.result.text


async def test_an_early_call_that_a_rule_denies_does_not_start():
    bank = Bank()
    agent = Agent(ScriptedModel([pausing(LOOK), "done"]), tools=[bank.look], approvals=[deny("look", reason="private")])
    result = await within(agent.run("go"))
    assert not bank.ran
    assert "private" in told(result)[0]


@pytest.mark.parametrize("choice", ["none", "other"])
async def test_a_tool_that_the_step_does_not_choose_does_not_start_early(choice):
    bank = Bank()

    @tool(effect="read")
    async def other() -> str:
        """Do something else."""
        return "else"

    agent = Agent(
        ScriptedModel([pausing(LOOK), "done", "done", "done"]), tools=[bank.look, other], limits=Limits(steps=4),
        prepare_step=lambda context: StepSettings(tool_choice=choice) if context.step_number == 0 else None,
    )  # fmt: skip
    await within(agent.run("go"))
    assert not bank.ran


@pytest.mark.parametrize("kind", [ToolStarted, ToolFinished])
async def test_a_journal_that_fails_under_an_early_call_ends_the_reply_at_its_next_piece(kind):
    """It was heard to its end, and told only then."""
    failed, went_on = asyncio.Event(), []

    class Fails(MemoryJournal):
        async def append(self, run_id, seq, events):
            if any(isinstance(event, kind) for event in events):
                failed.set()
                raise JournalUnavailable("the disk is full")
            return await super().append(run_id, seq, events)

    async def arrives():
        for piece in pieces(*LOOK):
            yield piece
        await failed.wait()
        # Whoever waits for the journal is told in the turns that follow.
        for _ in range(10):
            await asyncio.sleep(0)
        yield ToolCallStarted("another", "look")
        went_on.append(True)
        yield reply(LOOK)

    agent = Agent(ScriptedModel([arrives()]), tools=[Bank().look], journal=Fails())
    with pytest.raises(JournalUnavailable, match="the disk is full"):
        await within(agent.run("go"))
    assert not went_on


@pytest.mark.parametrize("id", ["c0", "d0"])
@pytest.mark.parametrize("back", ["before", "after"])
async def test_a_call_under_way_as_its_reply_breaks_off_is_not_made_again_under_another_id(id, back):
    """No defect: that it was begun once more, or its result lost, went unnoticed."""
    ran, begun, goes_on = [], asyncio.Event(), asyncio.Event()

    @tool(effect="read")
    async def look(key: str) -> str:
        """Looks something up."""
        ran.append(key)
        begun.set()
        await goes_on.wait()
        return f"value of {key}"

    async def breaks_off():
        for piece in pieces("c0", "look", '{"key": "a"}'):
            yield piece
        await begun.wait()
        if back == "before":
            goes_on.set()
            await asyncio.sleep(0)
        raise ConnectionFailed("it broke off")

    async def again():
        for piece in pieces(id, "look", '{"key":"a"}'):
            yield piece
        for _ in range(9):
            await asyncio.sleep(0)
        yield reply((id, "look", '{"key":"a"}'))

    def told_of(event):
        if isinstance(event, ModelReplied):
            goes_on.set()

    agent = Agent(ScriptedModel([breaks_off(), again(), "Done."]), tools=[look], retries=Retries(attempts=2, base=0))
    result = await within(agent.run("go", on_event=told_of))
    assert (result.text, ran, told(result)) == ("Done.", ["a"], ["value of a"])
    assert len(result.tool_calls_made) == 1
