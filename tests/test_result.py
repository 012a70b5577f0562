"""Results: as plain data and in words; read back from a journal, the error keeps its type and what was known of it."""

import dataclasses
import json
from datetime import datetime
from decimal import Decimal

import pytest
from pydantic import BaseModel, ConfigDict, field_serializer

from treadle import Agent, Image, MemoryJournal, Misuse, Pending, RunStopped, SqliteJournal, Text, external_tool, tool
from treadle.cli.report import as_json
from treadle.kernel.events import ErrorInfo, ModelFailed
from treadle.kernel.messages import AssistantMessage, ToolCall
from treadle.models import (
    BadRequest,
    ConnectionFailed,
    ModelError,
    Overloaded,
    RateLimited,
    ToolUseFailed,
)
from treadle.models.errors import UnsoundReply
from treadle.models.fallback import FallbackModel
from treadle.models.port import ModelReply
from treadle.result import fingerprint
from treadle.testing import ScriptedModel, ScriptExhausted

pytestmark = pytest.mark.anyio


class OutOfCredit(RateLimited):
    """A kind of somebody's own, with arguments of its own, below another."""

    kind = "out_of_credit"
    retryable = False

    def __init__(self, account: str) -> None:
        super().__init__(f"{account} is out of credit", status=402, request_id="req_9")
        self.account = account


class Silent(BadRequest):
    """A kind that has no name of its own: it is recorded under its parent's."""


async def read_back(model, tmp_path):
    """The error of a run that a model's failure ended, in the process and read from the journal."""
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        first = await Agent(model, journal=journal, retries=0).run("go")
        again = await Agent(ScriptedModel([]), journal=journal).resume(first.run_id)
    assert first.stop.reason == again.stop.reason == "model_error"
    return first.error, again.error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Overloaded("busy", retry_after=7.5, status=529, request_id="req_1"), Overloaded),
        (ToolUseFailed("no", failed_text="<call"), ToolUseFailed),
        (UnsoundReply("no"), UnsoundReply),
        (OutOfCredit("acme"), OutOfCredit),
        (Silent("no"), BadRequest),
        (ModelError("no"), ModelError),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, ModelError) else "",
)
async def test_an_error_read_back_from_a_journal_keeps_its_type(error, kind, tmp_path):
    first, again = await read_back(ScriptedModel([error]), tmp_path)
    assert first is error
    assert type(again) is kind
    names = ("kind", "retryable", "retry_after", "status", "request_id")
    assert [getattr(again, name) for name in names] == [getattr(error, name) for name in names]
    assert str(again) == str(error)


async def test_a_script_that_is_used_up_is_one_after_reading_it_back_too(tmp_path):
    first, again = await read_back(ScriptedModel([]), tmp_path)
    assert type(first) is type(again) is ScriptExhausted


async def test_the_error_of_several_models_keeps_its_type_and_how_long_to_wait(tmp_path):
    models = [ScriptedModel([RateLimited("no", retry_after=60)]), ScriptedModel([ConnectionFailed("no")])]
    first, again = await read_back(FallbackModel(models), tmp_path)
    assert type(first) is type(again)
    assert again.retry_after == first.retry_after


async def test_a_kind_that_is_not_known_here_keeps_its_name():
    failed = ModelFailed(0, ErrorInfo("of_another_program", "no", retryable=True))
    async with MemoryJournal() as journal:
        first = await Agent(ScriptedModel([ModelError("no")]), journal=journal).run("go")
        events = [failed if isinstance(event, ModelFailed) else event for event in await journal.read(first.run_id)]
        await journal.delete(first.run_id)
        await journal.append(first.run_id, 0, events)
        again = (await Agent(ScriptedModel([]), journal=journal).resume(first.run_id)).error
    assert (type(again), again.kind, again.retryable) == (ModelError, "of_another_program", True)
    assert ModelError("no").kind == "model_error"


class Weighed(BaseModel):
    grams: Decimal
    at: datetime


def results_of_many_kinds():
    def weigh(amount: Decimal) -> str:
        """Weigh."""
        return "weighed"

    precise = reply(f'{{"amount": {EXACT}}}')
    weighed = f'{{"grams": {EXACT}, "at": "2026-11-21T12:00:00Z"}}'
    asked = tool(weigh, needs_approval=True)
    done = external_tool("done", "Done.", {"type": "object"})
    return {
        "typed": Agent(ScriptedModel([weighed]), output=Weighed),
        "waiting": Agent(ScriptedModel([precise]), tools=[asked]),
        "external": Agent(ScriptedModel([[("done", {"grams": 1.5})]]), tools=[done]),
        "not a number": Agent(ScriptedModel(["NaN"]), output=float),
        "pictures": Agent(ScriptedModel([[("look", {})], "a cat"]), tools=[look]),
        "failed": Agent(ScriptedModel([RateLimited("no", retry_after=2.5)]), retries=0),
    }


@tool(effect="read")
def look() -> list[Text | Image]:
    """Looks."""
    return [Text("here"), Image(b"png", "image/png")]


def reply(arguments):
    return ModelReply(AssistantMessage((ToolCall("a", "weigh", arguments),)), None, "tool_calls")


EXACT = "100000000000000000.01"


@pytest.mark.parametrize("kind", results_of_many_kinds())
async def test_a_result_as_a_dict_equals_what_json_makes_of_it(kind):
    result = await results_of_many_kinds()[kind].run("go")
    found = result.to_dict()
    assert json.loads(json.dumps(found)) == found
    assert set(found["usage"]) >= {"input_tokens", "output_tokens"}


async def test_a_result_as_a_dict_keeps_every_digit():
    by_kind = results_of_many_kinds()
    typed = (await by_kind["typed"].run("go")).to_dict()
    assert typed["output"] == {"grams": EXACT, "at": "2026-11-21T12:00:00Z"}
    waiting = (await by_kind["waiting"].run("go")).to_dict()
    assert waiting["pending"][0]["arguments"] == {"amount": EXACT}
    assert waiting["steps"][0]["calls"][0]["arguments"] == {"amount": EXACT}


class Picture(BaseModel):
    """Read from base64, which is no text."""

    model_config = ConfigDict(val_json_bytes="base64")
    pixels: bytes


class Sealed(BaseModel):
    pixels: str

    @field_serializer("pixels")
    def never(self, value: str) -> str:
        raise KeyError(value)


@pytest.mark.parametrize("kind", [Picture, Sealed])
async def test_an_answer_without_a_form_in_json_is_told_as_it_was_given(kind):
    result = await Agent(ScriptedModel(['{"pixels": "//8="}']), output=kind).run("go")
    assert isinstance(result.output, kind)
    assert result.to_dict()["output"] == as_json(result, "scripted")["output"] == {"pixels": "//8="}


@pytest.mark.parametrize("number", [EXACT, "1e-400", "0.1", "1.10", "-0.0", "3", "12345678901234567890.5"])
async def test_the_key_of_a_call_is_that_of_its_arguments_as_they_are_shown(number):
    weigh = external_tool("weigh", "Weighs.", {"type": "object"}, wait=True)
    result = await Agent(ScriptedModel([reply(f'{{"amount": {number}}}')]), tools=[weigh]).run("go")
    (waiting,) = result.pending
    assert Decimal(str(waiting.arguments["amount"])) == Decimal(number)
    assert waiting.key == f"a#{fingerprint(waiting.arguments_json)}"


async def test_an_external_tools_arguments_keep_every_digit_and_are_the_same_read_back(tmp_path):
    weigh = external_tool("weigh", "Weighs.", {"type": "object"})
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        agent = Agent(ScriptedModel([reply(f'{{"amount": {EXACT}, "share": 0.5}}')]), tools=[weigh], journal=journal)
        result = await agent.run("go")
        assert result.output == {"amount": EXACT, "share": 0.5}
        assert (await agent.resume(result.run_id)).output == result.output


async def test_what_a_person_is_shown_of_a_call_hides_nothing():
    hidden = '{"file": "a\\u202etxt.exe", "who": "J\\u00f6rg\\u200b"}'
    weigh = external_tool("weigh", "Weighs.", {"type": "object"}, wait=True)
    shown = str(await Agent(ScriptedModel([reply(hidden)]), tools=[weigh]).run("go"))
    assert '{"file":"a\\u202etxt.exe","who":"Jörg\\u200b"}' in shown


@pytest.mark.parametrize(
    ("status", "says"),
    [("approval", "approve=['a']"), ("result", "results={'a': "), ("interrupted", "have it run again")],
)
async def test_what_a_person_is_shown_says_how_each_kind_is_decided(status, says):
    waits = Pending("a", "weigh", {"amount": 1}, status)
    result = dataclasses.replace(await Agent(ScriptedModel(["x"])).run("go"), pending=(waits,))
    assert "a  weigh({" in str(result)
    assert says in str(result)


async def test_the_short_form_of_a_result_stays_short():
    result = await Agent(ScriptedModel(["word " * 1000])).run("go")
    assert len(repr(result)) < 150
    assert str(result).startswith("word word")


def test_no_text_of_a_model_hides_the_calls_that_stand_below_it() -> None:
    @tool(needs_approval=True)
    def pay(to: str) -> str:
        """Pays somebody."""
        return "paid"

    said = "I pay.\n\tSoon. \x1b[8m\u202e\x9b8m ❤️"
    result = Agent(ScriptedModel([(said, [("pay", {"to": "Eve"})])]), tools=[pay]).run_sync("Pay.")
    shown = str(result)
    assert shown.startswith("I pay.\n\tSoon. 8m ❤️\n")
    assert "\x1b" not in shown
    assert 'pay({"to":"Eve"})' in shown
    assert result.text == said


async def test_a_person_is_shown_what_an_external_tool_was_called_with():
    done = external_tool("done", "Done.", {"type": "object"})
    silent = await Agent(ScriptedModel([[("done", {"total": 2**70})]]), tools=[done]).run("go")
    told = '{"total":1180591620717411303424}'
    assert str(silent).splitlines()[0] == silent.message == told
    beside = await Agent(ScriptedModel([("It is done.", [("done", {"total": 2**70})])]), tools=[done]).run("go")
    assert str(beside).splitlines()[:2] == ["It is done.", told]
    assert beside.message == "It is done."


async def test_a_run_below_that_waits_names_the_run_in_which_it_is_decided():
    @tool(needs_approval=True)
    def pay(to: str) -> str:
        """Pays somebody."""
        return "paid"

    journal = MemoryJournal()
    clerk = Agent(ScriptedModel([[("pay", {"to": "Ann"})]]), name="clerk", tools=[pay])
    head = Agent(ScriptedModel([[("clerk", {"task": "Pay."})], "Done."]), tools=[clerk.as_tool()], journal=journal)
    waiting = await head.run("Pay Ann.")
    below = await head.result(f"{waiting.run_id}.0.call_0_0")
    assert str(below).endswith(f"decided in the run that this one works for: agent.result({waiting.run_id!r})")
    assert "agent.resume(result, approve=['call_0_0/call_0_0'])" in str(waiting)
    for take in (head.resume, head.cancel):
        with pytest.raises(Misuse, match=f"works for run {waiting.run_id}, .* ends with it: name that one"):
            await take(below.run_id)
    with pytest.raises(RunStopped, match=r"^waiting: pay \(call_0_0\)\. Give the decisions or results"):
        below.require()


class Measured(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="constants")

    value: float
    low: float


def test_what_is_no_number_is_none_in_plain_data_whatever_its_type_says():
    """It was a float that no JSON has, nor equals itself where it was NaN."""
    model = ScriptedModel(['{"value": "NaN", "low": "-Infinity"}'])
    found = Agent(model, output=Measured).run_sync("How much is it?").to_dict()
    assert found["output"] == {"value": None, "low": None}
    assert json.loads(json.dumps(found, allow_nan=False)) == found
