"""Inlets: what comes in is checked once, where it comes in, and what cannot be stored never ends a run.

What was found, and the test that holds it:

- a lone surrogate in a tool's file, an instruction, a question in parts, a model's error, an `AskUser` question
  -> test_a_lone_surrogate_in_a_tools_file_is_made_storable, test_a_lone_surrogate_in_an_instruction_is_made_storable,
  test_a_lone_surrogate_in_a_question_is_made_storable, test_a_lone_surrogate_in_a_models_error_is_made_storable,
  test_a_lone_surrogate_in_a_question_to_the_person_is_made_storable,
  test_a_write_whose_file_name_is_no_text_runs_once
- text is made storable at the door, everywhere, and said so ->
  test_a_lone_surrogate_in_a_conversation_is_made_storable,
  test_a_lone_surrogate_in_a_reply_is_made_storable, test_a_lone_surrogate_in_a_decision_is_made_storable,
  test_a_lone_surrogate_in_the_settings_of_a_step_is_made_storable, test_what_a_hook_returns_is_made_storable,
  test_made_storable_is_said
- a model of one's own that replies what no reply may be -> test_a_reply_of_the_wrong_kind_is_a_model_error,
  test_a_reply_that_is_meant_beyond_doubt_is_put_right_or_a_model_error,
  test_a_cost_that_raises_is_a_model_error, test_a_journal_of_a_wrong_reply_can_be_read_again
- what LangChain models report is the same inlet -> test_what_a_langchain_model_reports_is_checked
- limits and prices that crash later -> test_a_limit_that_would_crash_later_is_refused,
  test_a_price_that_would_crash_later_is_refused
- costs do not depend on the caller's decimal context -> test_a_cost_does_not_depend_on_the_callers_decimal_context,
  test_a_cost_is_reckoned_where_the_callers_context_traps
- decimals keep every digit -> test_a_decimal_argument_keeps_every_digit, test_a_decimal_result_keeps_every_digit,
  test_a_decimal_output_keeps_every_digit, test_an_edited_decimal_argument_keeps_every_digit,
  test_a_pending_decimal_argument_is_shown_with_every_digit, test_a_decimal_output_is_journaled_with_every_digit
- `Conversation.save` from two threads -> test_a_conversation_saved_from_two_threads_is_whole
"""

import decimal
import threading
from decimal import Decimal

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from play import Bank, reply, told, within
from pydantic import BaseModel

from treadle import (
    Agent,
    AskUser,
    Conversation,
    File,
    Image,
    Limits,
    Misuse,
    Price,
    Retries,
    SqliteJournal,
    StepSettings,
    Text,
    ToolError,
    Usage,
    ask_before,
    tool,
)
from treadle.kernel.events import ToolStarted
from treadle.kernel.messages import AssistantMessage, Thinking, ToolCall, UserMessage
from treadle.models import BadRequest, ModelReply, TextDelta
from treadle.models.langchain import LangChainModel
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

LATIN = b"caf\xe9.pdf".decode("utf-8", "surrogateescape")
"""A latin-1 file name as `os.listdir` gives it."""


async def stored(tmp_path, turns, question="go", **options):
    """The result of a run with a journal on disk, and what can be read of it afterwards."""
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        agent = Agent(ScriptedModel(turns), journal=journal, retries=Retries(base=0.0), **options)
        result = await within(agent.run(question))
        events = await journal.read(result.run_id)
        assert len(events) == len(result.events)
        return result, events


@pytest.mark.parametrize(
    "content",
    [File(b"x", name=LATIN), File(url=f"https://x/{LATIN}"), Image(url=f"https://x/{LATIN}"), Text(LATIN), LATIN,
     [Text("here:"), File(b"x", name=LATIN)], {"name": LATIN}, {LATIN: 1}],
    ids=["file", "address", "image", "text", "string", "list", "value", "key"],
)  # fmt: skip
async def test_a_lone_surrogate_in_a_tools_file_is_made_storable(tmp_path, content):
    ran = []

    @tool
    async def fetch() -> object:
        """Fetch."""
        ran.append("fetch")
        return content

    result, _ = await stored(tmp_path, [[("fetch", {})], "done"], tools=[fetch])
    assert result.finished
    assert ran == ["fetch"]
    "".join(map(repr, result.messages)).encode("utf-8")


async def test_a_write_whose_file_name_is_no_text_runs_once(tmp_path):
    """An approved call that ran, and whose result could not be stored, was run again and failed again."""
    ran = []

    @tool(needs_approval=True)
    async def fetch() -> File:
        """Fetch."""
        ran.append("fetch")
        return File(b"x", name=LATIN)

    async with SqliteJournal(tmp_path / "runs.db") as journal:
        agent = Agent(ScriptedModel([[("fetch", {})], "done"]), tools=[fetch], journal=journal)
        waiting = await within(agent.run("go"))
        result = await within(agent.resume(waiting.run_id, approve=[waiting.pending[0].key]))
    assert result.finished
    assert ran == ["fetch"]


@pytest.mark.parametrize("instructions", [LATIN, lambda context: LATIN], ids=["text", "function"])
async def test_a_lone_surrogate_in_an_instruction_is_made_storable(tmp_path, instructions):
    result, _ = await stored(tmp_path, ["done"], instructions=instructions)
    assert result.finished


@pytest.mark.parametrize(
    "question",
    [LATIN, [Text(LATIN)], [Text("what is it?"), File(b"x", name=LATIN)], UserMessage(LATIN),
     UserMessage((Text(LATIN),))],
    ids=["text", "parts", "file", "message", "message of parts"],
)  # fmt: skip
async def test_a_lone_surrogate_in_a_question_is_made_storable(tmp_path, question):
    result, _ = await stored(tmp_path, ["done"], question)
    assert result.finished


async def test_a_lone_surrogate_in_a_conversation_is_made_storable(tmp_path):
    conversation = Conversation()
    conversation.add_user(LATIN)
    conversation.add_assistant(LATIN)
    conversation.add_user([Text(LATIN)])
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        result = await within(Agent(ScriptedModel(["done"]), journal=journal).run("go", conversation=conversation))
        assert result.finished
        assert len(await journal.read(result.run_id)) == len(result.events)
    conversation.save(tmp_path / "said.json")
    assert len(Conversation.load(tmp_path / "said.json")) == len(conversation)


async def test_a_lone_surrogate_in_a_models_error_is_made_storable(tmp_path):
    result, _ = await stored(tmp_path, [BadRequest(f"no such file: {LATIN}")])
    assert result.stop.reason == "model_error"
    assert "no such file" in str(result.error)


@pytest.mark.parametrize(
    "message",
    [
        AssistantMessage((Text(LATIN),)),
        AssistantMessage((Thinking(LATIN), Text("done"))),
        AssistantMessage((ToolCall("a", "look", f'{{"key": "{LATIN}"}}'),)),
        AssistantMessage((ToolCall(LATIN, LATIN, "{}"),)),
    ],
    ids=["text", "thinking", "arguments", "name"],
)
async def test_a_lone_surrogate_in_a_reply_is_made_storable(tmp_path, message):
    finish = "tool_calls" if message.calls else "stop"
    turns = [ModelReply(message, finish=finish), "done"]
    result, _ = await stored(tmp_path, turns, tools=Bank().tools)
    assert result.finished


@pytest.mark.parametrize("where", ["question", "reason", "error"])
async def test_a_lone_surrogate_in_a_question_to_the_person_is_made_storable(tmp_path, where):
    bank = Bank()

    @tool
    async def fails() -> str:
        """Fail."""
        raise ToolError(LATIN, available=[LATIN]) if where == "error" else ValueError(LATIN)

    options = {}
    if where == "question":
        options = {"on_tool_result": lambda call, output: AskUser(f"Is it {LATIN}?")}
    if where == "reason":
        options = {"approvals": [ask_before("fails", reason=f"for {LATIN}")]}
    result, _ = await stored(tmp_path, [[("fails", {})], "done"], tools=[fails, *bank.tools], **options)
    assert result.stop.reason == ("answered" if where == "error" else "waiting")
    if where != "error":
        result.pending[0].question.encode("utf-8")


async def test_a_lone_surrogate_in_a_decision_is_made_storable(tmp_path):
    bank = Bank()
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        agent = Agent(
            ScriptedModel([[("pay", {"amount": 5})], "done"]), tools=bank.tools, journal=journal,
            approvals=[ask_before("pay")],
        )  # fmt: skip
        waiting = await within(agent.run("go"))
        result = await within(agent.resume(waiting.run_id, deny={"call_0_0": f"no {LATIN}"}, message=LATIN))
        assert result.finished
        assert len(await journal.read(result.run_id)) == len(result.events)


async def test_a_lone_surrogate_in_the_settings_of_a_step_is_made_storable(tmp_path):
    result, _ = await stored(
        tmp_path, ["done"], prepare_step=lambda context: StepSettings(instructions=LATIN, messages=[UserMessage(LATIN)])
    )
    assert result.finished


async def test_made_storable_is_said(tmp_path):
    """What stands in the place of what has no text is seen, not dropped."""

    @tool(effect="read")
    async def fetch() -> File:
        """Fetch."""
        return File(b"x", name=LATIN)

    result, _ = await stored(tmp_path, [[("fetch", {})], "done"], tools=[fetch])
    (part,) = next(message for message in result.messages if message.role == "tool").content
    assert part.name.startswith("caf")
    assert part.name.endswith(".pdf")
    assert len(part.name) > len("caf.pdf")


class Own:
    """A model that somebody wrote in five minutes."""

    name = "own"

    def __init__(self, said, cost=None):
        self.said, self._cost = said, cost
        if cost is not None:
            self.cost = lambda usage: cost(usage)

    async def stream(self, request):
        yield self.said


def says(*parts, **fields):
    return ModelReply(AssistantMessage(parts or (Text("hi"),)), **fields)


WRONG = {
    "unknown finish": lambda: says(finish="end_turn"),
    "finish of None": lambda: says(finish=None),
    "list of parts": lambda: ModelReply(AssistantMessage([{"type": "text", "text": "hi"}])),
    "text of None": lambda: says(Text(None)),
    "dict for JSON": lambda: says(ToolCall("a", "look", {"key": "a"}), finish="tool_calls"),
    "None for JSON": lambda: says(ToolCall("a", "look", None), finish="tool_calls"),
    "id of None": lambda: says(ToolCall(None, "look", "{}"), finish="tool_calls"),
    "number for an id": lambda: says(ToolCall(1, "look", "{}"), finish="tool_calls"),
    "float in usage": lambda: says(usage=Usage(1.5, 2)),
    "None in usage": lambda: says(usage=Usage(None, None)),
    "dict for usage": lambda: says(usage={"input_tokens": 1}),
    "negative usage": lambda: says(usage=Usage(-5, 1)),
    "text cost": lambda: says(cost="0.5"),
    "cost that is no number": lambda: says(cost=Decimal("NaN")),
    "model that is no text": lambda: says(model=7),
    "detail that is no text": lambda: says(finish_detail=None),
    "not a reply": lambda: "hi",
    "a delta of None": lambda: TextDelta(None),
}


MEANT = {
    "text for parts": lambda: ModelReply(AssistantMessage("hi")),
    "text for a part": lambda: says("hi"),
    "text for a message": lambda: ModelReply("hi"),
    "float cost": lambda: says(cost=0.5),
    "whole float in usage": lambda: says(usage=Usage(1.0, 2.0)),
}


@pytest.mark.parametrize("meant", MEANT)
async def test_a_reply_that_is_meant_beyond_doubt_is_put_right_or_a_model_error(tmp_path, meant):
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        result = await within(Agent(Own(MEANT[meant]()), journal=journal, retries=0).run("go"))
        assert (result.stop.reason, result.text) in (("answered", "hi"), ("model_error", ""))
        assert result.cost is None or isinstance(result.cost, Decimal)
        assert isinstance(result.usage.input_tokens, int)
        assert list(await journal.read(result.run_id)) == list(result.events)


@pytest.mark.parametrize("wrong", WRONG)
async def test_a_reply_of_the_wrong_kind_is_a_model_error(tmp_path, wrong):
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        agent = Agent(Own(WRONG[wrong]()), tools=Bank().tools, journal=journal, retries=0, limits=Limits(steps=3))
        result = await within(agent.run("go"))
        assert result.stop.reason == "model_error", result.stop
        assert result.error is not None
        assert list(await journal.read(result.run_id)) == list(result.events)


def bankrupt(usage):
    raise LookupError("no price today")


@pytest.mark.parametrize(
    "cost", [bankrupt, lambda usage: "free", lambda usage: Decimal("NaN"), lambda usage: -1.0],
    ids=["raises", "text", "no number", "negative"],
)  # fmt: skip
async def test_a_cost_that_raises_is_a_model_error(tmp_path, cost):
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        result = await within(Agent(Own(says(usage=Usage(1, 1)), cost), journal=journal, retries=0).run("go"))
        assert result.stop.reason == "model_error", result.stop
        assert list(await journal.read(result.run_id)) == list(result.events)


async def test_a_journal_of_a_wrong_reply_can_be_read_again(tmp_path):
    for number, wrong in enumerate((WRONG | MEANT).values()):
        async with SqliteJournal(tmp_path / f"{number}.db") as journal:
            agent = Agent(Own(wrong()), tools=Bank().tools, journal=journal, retries=0, limits=Limits(steps=3))
            try:
                await within(agent.run("go"))
            except Exception as error:
                raise AssertionError(f"{list(WRONG | MEANT)[number]}: {error!r}") from error
            for info in await journal.list():
                await journal.read(info.run_id)


COUNTED = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}


def langchain_reply(**wrong):
    """A message with fields that no integration should set; it can be set all the same."""
    message = AIMessage(content="hi", id="m1")
    for name, value in wrong.items():
        setattr(message, name, value)
    return message


@pytest.mark.parametrize(
    "wrong",
    [
        {"usage_metadata": {"input_tokens": 1.5, "output_tokens": 2.5, "total_tokens": 4.0}},
        {"usage_metadata": {"input_tokens": None, "output_tokens": None, "total_tokens": None}},
        {"usage_metadata": {"total_tokens": 3}},
        {"usage_metadata": COUNTED | {"input_token_details": {"cache_read": 0.5}}},
        {"usage_metadata": {"input_tokens": -1, "output_tokens": 1, "total_tokens": 0}},
        {"id": 7},
    ],
    ids=["floats", "nones", "missing", "float detail", "negative", "id"],
)  # fmt: skip
async def test_what_a_langchain_model_reports_is_checked(tmp_path, wrong):
    """Either the run ends as `model_error`, or what was reported wrongly is left out; never with an exception."""
    model = LangChainModel(GenericFakeChatModel(messages=iter([langchain_reply(**wrong)]), disable_streaming=True))
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        result = await within(Agent(model, journal=journal, retries=0).run("go"))
        assert result.stop.reason in ("answered", "model_error")
        assert isinstance(result.usage.input_tokens, int)
        assert isinstance(result.usage.cache_read_tokens, int)
        assert result.usage.input_tokens >= 0
        assert list(await journal.read(result.run_id)) == list(result.events)


@pytest.mark.parametrize(
    "limit",
    [
        {"seconds": Decimal("5")}, {"seconds": float("inf")}, {"seconds": Decimal("Infinity")}, {"usd": float("inf")},
        {"usd": Decimal("Infinity")}, {"seconds": float("nan")}, {"usd": Decimal("NaN")},
        {"seconds": 10**400}, {"steps": 1.5},
    ],
    ids=lambda limit: str(limit)[:40],
)  # fmt: skip
def test_a_limit_that_would_crash_later_is_refused(limit):
    with pytest.raises(ValueError, match=next(iter(limit))):
        Limits(**limit)


@pytest.mark.parametrize(
    ("input", "output"), [("x", 1), (1, "x"), (float("inf"), 1), (None, 1), (True, 1), ([1], 1), (1, float("nan"))]
)
def test_a_price_that_would_crash_later_is_refused(input, output):
    with pytest.raises(Misuse, match="Price"):
        Price(input, output)


PRICE = Price(Decimal("3.123456789"), Decimal("15.987654321"))


async def priced():
    model = ScriptedModel([[("look", {"key": "a"})], "done"], usage=Usage(123_457, 98_765), price=PRICE)
    return (await within(Agent(model, tools=Bank().tools, limits=Limits(usd=Decimal(10))).run("go"))).cost


async def test_a_cost_does_not_depend_on_the_callers_decimal_context():
    usual = await priced()
    with decimal.localcontext(decimal.Context(prec=3)):
        assert await priced() == usual
    with decimal.localcontext(decimal.Context(prec=3)):
        rough = PRICE.of(Usage(123_457, 98_765))
    assert rough == PRICE.of(Usage(123_457, 98_765))


async def test_a_cost_is_reckoned_where_the_callers_context_traps():
    usual = await priced()
    with decimal.localcontext(decimal.Context(prec=5, traps=[decimal.Inexact, decimal.Rounded])):
        assert await priced() == usual


EXACT = Decimal("100000000000000000.01")
EXACTLY = "100000000000000000.01"


@pytest.mark.parametrize("written", [EXACTLY, f'"{EXACTLY}"'], ids=["number", "text"])
async def test_a_decimal_argument_keeps_every_digit(written):
    seen = []

    @tool
    async def pay(amount: Decimal) -> str:
        """Pay."""
        seen.append(amount)
        return "paid"

    await within(Agent(ScriptedModel([reply(("a", "pay", f'{{"amount": {written}}}')), "done"]), tools=[pay]).run("go"))
    assert seen == [EXACT]


async def test_an_edited_decimal_argument_keeps_every_digit():
    seen = []

    @tool(needs_approval=True)
    async def pay(amount: Decimal) -> str:
        """Pay."""
        seen.append(amount)
        return "paid"

    agent = Agent(ScriptedModel([[("pay", {"amount": 1})], "done"]), tools=[pay])
    waiting = await within(agent.run("go"))
    await within(agent.resume(waiting, approve={"call_0_0": {"amount": EXACT}}))
    assert seen == [EXACT]


async def test_a_pending_decimal_argument_is_shown_with_every_digit():
    @tool(needs_approval=True)
    async def pay(amount: Decimal) -> str:
        """Pay."""
        return "paid"

    agent = Agent(ScriptedModel([reply(("a", "pay", f'{{"amount": {EXACTLY}}}')), "done"]), tools=[pay])
    waiting = await within(agent.run("go"))
    assert EXACTLY in waiting.pending[0].arguments_json


@pytest.mark.parametrize("shape", ["plain", "list", "model"])
async def test_a_decimal_result_keeps_every_digit(shape):
    class Sum(BaseModel):
        amount: Decimal

    value = {"plain": EXACT, "list": [EXACT], "model": Sum(amount=EXACT)}[shape]

    @tool(effect="read")
    async def total() -> object:
        """Add up."""
        return value

    result = await within(Agent(ScriptedModel([[("total", {})], "done"]), tools=[total]).run("go"))
    assert EXACTLY in told(result)[0]


@pytest.mark.parametrize("written", [EXACTLY, f'"{EXACTLY}"'], ids=["number", "text"])
@pytest.mark.parametrize("mode", ["prompted", "tool"])
async def test_a_decimal_output_keeps_every_digit(tmp_path, written, mode):
    class Sum(BaseModel):
        amount: Decimal

    text = f'{{"amount": {written}}}'
    turn = text if mode == "prompted" else reply(("a", "final_answer", text))
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        agent = Agent(ScriptedModel([turn]), output=Sum, output_mode=mode, journal=journal)
        result = await within(agent.run("go"))
        assert result.output == Sum(amount=EXACT)
        again = await within(agent.resume(result.run_id))
        assert again.output == Sum(amount=EXACT)


async def test_a_decimal_output_is_journaled_with_every_digit(tmp_path):
    class Sum(BaseModel):
        amount: Decimal

    async with SqliteJournal(tmp_path / "runs.db") as journal:
        agent = Agent(ScriptedModel([f'{{"amount": {EXACTLY}}}']), output=Sum, output_mode="prompted", journal=journal)
        result = await within(agent.run("go"))
        finished = (await journal.read(result.run_id))[-1]
        assert Decimal(str(finished.output["amount"])) == EXACT


def test_a_conversation_saved_from_two_threads_is_whole(tmp_path):
    path, failures = tmp_path / "said.json", []

    def conversation(letter):
        made = Conversation()
        for n in range(400):
            made.add_user(f"{letter * 50} {n}")
            made.add_assistant(letter * 50)
        return made

    both = [conversation("a"), conversation("b")]
    together = threading.Barrier(2)

    def save(one):
        try:
            for _ in range(15):
                together.wait(20)
                one.save(path)
                assert len(Conversation.load(path)) == 800
        except Exception as error:
            failures.append(error)
            together.abort()

    threads = [threading.Thread(target=save, args=(one,)) for one in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert list(Conversation.load(path).messages) in [list(one.messages) for one in both]
    assert [one.name for one in tmp_path.iterdir()] == ["said.json"]


async def test_what_a_hook_returns_is_made_storable(tmp_path):
    bank = Bank()
    result, events = await stored(
        tmp_path, [[("pay", {"amount": 5})], "done"], tools=bank.tools, on_tool_result=lambda call, output: LATIN
    )
    assert result.finished
    assert bank.ran == ["pay 5"]
    assert sum(isinstance(event, ToolStarted) for event in events) == 1
