"""Calls, results and replies at their bounds: what is told of them, what they share, and what is refused."""

import asyncio
import time

import pytest

from treadle import (
    Agent,
    Alternative,
    AskUser,
    Conversation,
    Image,
    Limits,
    MemoryJournal,
    Misuse,
    ModelSettings,
    Price,
    Retry,
    ShortenResult,
    SqliteJournal,
    StepSettings,
    Text,
    ToolContext,
    ToolResult,
    Usage,
    external_tool,
    handoff,
    tool,
)
from treadle.kernel.messages import AssistantMessage, ToolCall, UserMessage
from treadle.models import ModelReply, RateLimited, TextDelta
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@tool(effect="read")
def look(n: int) -> str:
    """Look."""
    return f"page {n}"


class Paid(ScriptedModel):
    """Each reply costs a tenth of a dollar, and is never longer than that."""

    max_output_tokens = 100

    def __init__(self, turn):
        self.calls = 0

        def counted(request):
            self.calls += 1
            return turn(request)

        super().__init__(counted, usage=Usage(0, 100), price=Price(0, 1000))


def five_at_once(worker, limits, journal=None):
    def turn(request):
        tasks = [("worker", {"task": f"t{i}"}) for i in range(5)]
        return "done" if request.step or request.tool_choice == "none" else tasks

    return Agent(Paid(turn), tools=[worker.as_tool()], limits=limits, journal=journal)


async def test_sub_runs_that_wait_side_by_side_share_one_budget():
    @tool(needs_approval=True)
    def pay(n: int) -> str:
        """Pay."""
        return "paid"

    def turn(request):
        if request.tool_choice == "none":
            return "closing"
        return [("pay", {"n": 1})] if request.step == 5 else [("look", {"n": request.step})]

    worker = Agent(Paid(turn), name="worker", tools=[look, pay], limits=Limits(steps=100))
    boss = five_at_once(worker, Limits(usd=4, steps=1000, tool_calls=1000))
    result = await boss.run("go")
    while result.pending:
        assert float(result.cost) == pytest.approx((worker.model.calls + boss.model.calls) / 10)
        result = await boss.resume(result, approve=[result.pending[0].call_id])
    assert worker.model.calls + boss.model.calls <= 40


async def test_sub_runs_in_flight_when_a_process_died_share_one_limit():
    order = []

    class Recording(MemoryJournal):
        async def append(self, run_id, seq, events):
            await super().append(run_id, seq, events)
            order.append((run_id, seq, list(events)))

    def build(journal):
        def turn(request):
            closing = request.tool_choice == "none" or request.step >= 3
            return "closing" if closing else [("look", {"n": request.step})]

        worker = Agent(Paid(turn), name="worker", tools=[look])
        return five_at_once(worker, Limits(steps=8), journal)

    await build(Recording()).run("go")
    for count in range(1, len(order) + 1):
        journal = MemoryJournal()
        for one in order[:count]:
            await journal.append(*one)
        result = await build(journal).resume(order[0][0])
        assert len(result.steps) + result.sub_steps <= 8


async def test_a_call_that_is_made_again_keeps_its_idempotency_key():
    keys = []

    @tool(effect="idempotent")
    async def order(product: str, context: ToolContext) -> str:
        """Order."""
        keys.append(context.idempotency_key)
        if len(keys) == 1:
            raise TimeoutError("no answer")
        return "ordered"

    react = lambda call, result: Retry() if result.is_error else None  # noqa: E731
    agent = Agent(ScriptedModel([[("order", {"product": "tea"})], "ok"]), tools=[order], on_tool_result=react)
    await agent.run("go")
    assert len(keys) == 2
    assert len(set(keys)) == 1


async def test_an_agent_that_writes_is_not_asked_again_by_a_retry():
    paid = []

    @tool
    def pay(n: int) -> str:
        """Pay."""
        paid.append(n)
        return "paid"

    first = lambda request: [("look", {"n": request.step})] if request.step else [("pay", {"n": 1})]  # noqa: E731
    clerk = Agent(ScriptedModel(first), name="clerk", tools=[pay, look], limits=Limits(steps=3), on_limit="stop")
    boss = Agent(
        ScriptedModel([[("clerk", {"task": "pay"})], "done"]), tools=[clerk.as_tool()],
        on_tool_result=lambda call, result: Retry() if result.is_error else None,
    )  # fmt: skip
    await boss.run("go")
    assert paid == [1]


@pytest.mark.parametrize("how", ["deadline", "cancel"])
async def test_a_result_that_was_not_released_is_never_shown(how):
    hangs, shown = [True], []

    async def redact(call, result):
        if hangs:
            await asyncio.sleep(30)
        return "[redacted]"

    def turn(request):
        shown.extend(message.text for message in request.messages if message.role == "tool")
        return "done" if len(request.messages) > 2 else [("look", {"n": 4711})]

    seconds = 0.1 if how == "deadline" else 60
    agent = Agent(ScriptedModel(turn), tools=[look], on_tool_result=redact, limits=Limits(seconds=seconds))
    async with agent.stream("go") as run:
        await asyncio.sleep(0.05)
        result = await run.cancel() if how == "cancel" else await asyncio.wait_for(_ended(run), 5)
    hangs.clear()
    await agent.resume(result, limits=Limits(seconds=60), message="go on")
    assert shown
    assert not any("4711" in text for text in shown)


async def _ended(run):
    async for _ in run:
        pass
    return run.result


async def test_a_call_that_waits_is_not_told_as_done():
    seen = []

    def turn(request):
        seen.append([message.text for message in request.messages if message.role == "tool"])
        return "ok" if len(seen) > 1 else [("ask_shop", {}), ("look", {"n": 1})]

    agent = Agent(
        ScriptedModel(turn), tools=[external_tool("ask_shop", "Ask.", wait=True), look],
        on_tool_result=lambda call, result: AskUser("Is it?") if call.name == "look" else None,
    )  # fmt: skip
    talk = Conversation()
    assert (await agent.run("Order a shirt.", conversation=talk)).stop.reason == "waiting"
    await agent.run("And now?", conversation=talk)
    waits, uncertain = seen[-1]
    assert "waits for one from outside" in waits
    assert "has not answered yet" in uncertain
    assert "page 1" not in uncertain


async def test_a_run_that_was_cancelled_at_once_goes_on_without_a_journal():
    below = Agent(ScriptedModel(["sub"]), name="below")
    agent = Agent(ScriptedModel([[("below", {"task": "t"})], "done"]), tools=[below.as_tool()])
    async with agent.stream("go") as run:
        result = await run.cancel()
    assert (await agent.resume(result, message="go on")).text == "done"


async def test_an_external_alternative_is_said_to_be_external():
    shop = external_tool("shop", "Ask.", wait=True)
    agent = Agent(
        ScriptedModel([[("look", {"n": 1})]]),
        tools=[look, shop],
        on_tool_result=lambda call, _: Alternative("shop", {}),
    )
    with pytest.raises(Misuse, match="external tool, which cannot stand in"):
        await agent.run("go")


async def test_arguments_nested_deeply_harm_nobody():
    deep = '{"a":' + "[" * 1500 + "]" * 1500 + "}"
    agent = Agent(
        ScriptedModel([[("look", deep)], "ok"]), tools=[look],
        on_tool_result=lambda call, _: call.arguments and None,
    )  # fmt: skip
    result = await agent.run("go")
    assert result.text == "ok"
    assert result.to_dict()["tool_calls_made"]


@pytest.mark.parametrize(
    "options",
    [
        {"settings": ModelSettings(max_tokens=1e3)},
        {"settings": ModelSettings(stop="END")},
        {"watch_progress": 1},
        {"name": 5},
        {"prepare_step": lambda context: StepSettings(instructions=5)},
        {"prepare_step": lambda context: StepSettings(settings=ModelSettings(seed=1.5))},
    ],
    ids=range(6),
)
async def test_values_that_no_journal_could_give_back_are_refused(options, tmp_path):
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        with pytest.raises(Misuse):
            await Agent(ScriptedModel(["ok"]), journal=journal, **options).run("go")
        for info in await journal.list():
            await journal.read(info.run_id)


async def test_a_result_with_a_truthy_error_can_be_read_again(tmp_path):
    @tool(effect="read")
    def fails() -> ToolResult:
        """Fail."""
        return ToolResult("no", is_error=1)

    async with SqliteJournal(tmp_path / "runs.db") as journal:
        result = await Agent(ScriptedModel([[("fails", {})], "ok"]), tools=[fails], journal=journal).run("go")
        assert result.tool_calls_made[0].is_error is True
        assert await journal.read(result.run_id)


def test_a_picture_takes_bytes():
    with pytest.raises(ValueError, match="not in base64"):
        Image(data="iVBORw0KGgo")


@pytest.mark.parametrize("after", ["5", float("nan"), float("inf"), -1, True])
async def test_an_odd_retry_after_ends_as_a_model_error(after):
    def busy(request):
        raise RateLimited("slow down", retry_after=after)

    agent = Agent(ScriptedModel(busy), limits=Limits(seconds=None), retries=1)
    result = await asyncio.wait_for(agent.run("go"), 10)
    assert result.stop.reason == "model_error"


TWICE = [UserMessage("a"), AssistantMessage((ToolCall("x", "look", "{}"), ToolCall("x", "look", "{}")))]


@pytest.mark.parametrize(
    "messages",
    [
        [UserMessage("a"), AssistantMessage((Text("b"),))],
        [AssistantMessage((Text("b"),))],
        [UserMessage("")],
        [UserMessage((Text(" "),))],
        TWICE,
    ],
    ids=range(5),
)
async def test_a_request_always_ends_with_something_to_answer(messages):
    model = ScriptedModel(["ok"])
    agent = Agent(model, tools=[look], prepare_step=lambda context: StepSettings(messages=messages))
    await agent.run("q")
    sent = list(model.requests[0].messages)
    assert sent[-1].role in ("user", "tool")
    assert all(message.says_something for message in sent if message.role != "tool")
    ids = [call.id for message in sent if message.role == "assistant" for call in message.calls]
    assert len(ids) == len(set(ids))


async def test_a_choice_that_cannot_be_kept_is_refused():
    with pytest.raises(Misuse, match="needs a tool"):
        Agent("offline", tool_choice="required")
    chosen = Agent(
        ScriptedModel(["ok"]), tools=[look], tool_choice="look", prepare_step=lambda context: StepSettings(tools=[])
    )
    with pytest.raises(Misuse, match="tool_choice 'look'"):
        await chosen.run("q")


async def test_a_stream_that_never_waits_keeps_the_deadline():
    class Endless:
        name = "endless"

        async def stream(self, request):
            begun = time.monotonic()
            while time.monotonic() - begun < 20:
                yield TextDelta("x")
            yield ModelReply(AssistantMessage((Text("late"),)))

    result = await Agent(Endless(), limits=Limits(seconds=0.2)).run("q")
    assert result.stop.reason == "deadline"


async def test_a_shortened_result_can_be_read_after_a_hand_off():
    @tool(effect="read")
    def page() -> str:
        """Give a page."""
        return "START " + "lorem " * 2000 + " END"

    other = ScriptedModel(
        lambda request: "end" if request.step else [("read_result", {"call_id": "call_0_0", "offset": 11_000})]
    )
    calls = [[("page", {})], [("transfer_to_b", {})]]
    first = Agent(
        ScriptedModel(calls), tools=[page, handoff(Agent(other, name="b"))], context=ShortenResult(max_tokens=100)
    )
    await first.run("q")
    assert " END" in other.requests[1].messages[-1].text


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("max_output_tokens", 1e3), ("max_output_tokens", "8192"), ("context_window", "200000"),
     ("context_window", float("nan"))],
)  # fmt: skip
async def test_odd_words_of_a_model_about_itself_are_no_words(attribute, value, tmp_path):
    model = ScriptedModel(["x"], usage=Usage(1, 1))
    setattr(model, attribute, value)
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        result = await Agent(model, journal=journal, limits=Limits(tokens=5000)).run("q")
        assert result.text == "x"
        assert await journal.read(result.run_id)


async def test_what_is_no_message_is_not_sent_to_a_run():
    agent = Agent(ScriptedModel([[("look", {"n": 1})], "ok"]), tools=[look])
    async with agent.stream("q") as run:
        for odd in (None, "", 5, [Text(5)]):
            with pytest.raises(Misuse):
                await run.send(odd)
        assert (await _ended(run)).text == "ok"


def test_what_is_no_message_leaves_a_saved_conversation_as_it_was(tmp_path):
    talk = Conversation()
    talk.add_user("precious")
    for odd in (UserMessage(5), AssistantMessage((Text(5),))):
        with pytest.raises(Misuse):
            talk.replace([odd])
    talk.save(tmp_path / "talk.json")
    assert Conversation.load(tmp_path / "talk.json").messages == talk.messages


async def test_a_model_that_exits_is_a_model_error():
    def leaves(request):
        raise SystemExit(0)

    result = await asyncio.wait_for(Agent(ScriptedModel(leaves)).run("go"), 5)
    assert result.stop.reason == "model_error"
    assert "SystemExit" in result.stop.detail
