"""Output: what a result says of its answer is so, live, read back, and replayed.

What was found, and the test that holds it:

- `output=` with a stop condition -> test_finished_by_a_condition_has_an_output_or_says_that_there_is_none,
  test_finished_by_a_condition_takes_an_output_that_is_there
- `result.error` read back from a journal loses its type -> test_an_error_read_back_from_a_journal_keeps_its_type
- `ReplayModel` drops the cost -> test_a_run_under_a_limit_on_money_can_be_replayed,
  test_a_replay_costs_what_the_run_cost
- `RunResult.to_dict()` -> test_a_result_as_a_dict_is_made_of_plain_data,
  test_the_tool_calls_of_a_result_are_plain_dicts,
  test_a_result_as_a_dict_has_what_waits_and_what_failed,
  test_a_result_as_a_dict_of_every_kind_of_run_can_be_written_as_json
- a readable `print(result)` -> test_a_printed_result_shows_why_it_stopped,
  test_a_printed_result_shows_the_cause_of_a_failure,
  test_a_printed_result_shows_what_waits
- text to show when the model says nothing -> test_a_result_without_text_has_a_message,
  test_a_model_that_says_nothing_at_a_limit_leaves_a_message, test_a_result_with_text_is_its_message

"""

import json
from decimal import Decimal

import pytest
from play import Bank, within
from pydantic import BaseModel

from treadle import (
    Agent,
    Limits,
    MemoryJournal,
    ModelSettings,
    Price,
    Retries,
    SqliteJournal,
    Usage,
    ask_before,
    has_tool_call,
    step_count,
)
from treadle.models import (
    AuthenticationFailed,
    BadRequest,
    ConnectionFailed,
    ContentFiltered,
    ContextOverflow,
    ModelError,
    ModelTimeout,
    Overloaded,
    ProtocolError,
    RateLimited,
    ToolUseFailed,
)
from treadle.testing import ReplayModel, ScriptedModel, ScriptExhausted

pytestmark = pytest.mark.anyio


class Bill(BaseModel):
    amount: int


@pytest.mark.parametrize("mode", ["prompted", "tool"])
@pytest.mark.parametrize("condition", [has_tool_call("look"), step_count(1), lambda state: "enough"])
async def test_finished_by_a_condition_has_an_output_or_says_that_there_is_none(mode, condition):
    agent = Agent(
        ScriptedModel([[("look", {"key": "a"})], "none"]), tools=Bank().tools, output=Bill, output_mode=mode,
        stop_when=condition,
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert result.stop.reason == "condition"
    assert isinstance(result.output, Bill) or "no output" in result.stop.detail


async def test_finished_by_a_condition_takes_an_output_that_is_there():
    agent = Agent(
        ScriptedModel([('{"amount": 5}', [("look", {"key": "a"})])]), tools=Bank().tools, output=Bill,
        output_mode="prompted", stop_when=has_tool_call("look"),
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert result.output == Bill(amount=5)


class Drained(Overloaded):
    """An error of somebody's own, below one of ours."""

    kind = "drained"


ERRORS = [
    AuthenticationFailed, BadRequest, ConnectionFailed, ContentFiltered, ContextOverflow, ModelError, ModelTimeout,
    Overloaded, ProtocolError, RateLimited, ToolUseFailed, ScriptExhausted, Drained,
]  # fmt: skip


@pytest.mark.parametrize("kind", ERRORS)
async def test_an_error_read_back_from_a_journal_keeps_its_type(tmp_path, kind):
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        agent = Agent(ScriptedModel(lambda request: kind("it broke")), retries=Retries(attempts=1), journal=journal)
        first = await within(agent.run("go"))
        assert type(first.error) is kind
        again = await within(agent.resume(first.run_id))
        assert type(again.error) is kind
        assert str(again.error) == str(first.error)


async def replayed(limits=None):
    journal = MemoryJournal()
    turns = [[("look", {"key": "a"})], "done"]
    model = ScriptedModel(turns, usage=Usage(1000, 100), price=Price(1, 5))
    settings = ModelSettings(max_tokens=1000)
    agent = Agent(model, tools=Bank().tools, limits=limits, journal=journal, settings=settings)
    first = await within(agent.run("go"))
    replay = await ReplayModel.of(journal, first.run_id)
    again = Agent(replay, tools=Bank().tools, limits=limits, settings=settings)
    return first, await within(again.run("go"))


async def test_a_run_under_a_limit_on_money_can_be_replayed():
    first, again = await replayed(Limits(usd=Decimal(1)))
    assert again.text == first.text
    assert again.cost == first.cost


async def test_a_replay_costs_what_the_run_cost():
    first, again = await replayed()
    assert first.cost == Decimal("0.003")
    assert again.cost == first.cost
    assert [step.cost for step in again.steps] == [step.cost for step in first.steps]


async def results():
    """A result of each kind, by name."""
    bank = Bank()
    look = [("look", {"key": "a"})]

    async def run(turns, **options):
        agent = Agent(ScriptedModel(turns, usage=Usage(10, 5), price=Price(1, 5)), tools=bank.tools, **options)
        return await within(agent.run("go"))

    return {
        "answered": await run([look, "done"]),
        "waiting": await run([[("pay", {"amount": 5})]], approvals=[ask_before("pay", reason="money")]),
        "limit": await run(lambda request: look, limits=Limits(steps=1), on_limit="stop"),
        "failed": await run([look, AuthenticationFailed("the key is not valid", status=401)]),
        "typed": await run(['{"amount": 5}'], output=Bill, output_mode="prompted"),
    }


async def test_a_result_as_a_dict_is_made_of_plain_data():
    result = (await results())["answered"]
    found = result.to_dict()
    assert found["run_id"] == result.run_id
    assert found["text"] == "done"
    assert found["finished"] is True
    assert found["stop"]["reason"] == "answered"
    assert found["usage"]["input_tokens"] == 20
    assert [message["role"] for message in found["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert len(found["steps"]) == 2


async def test_the_tool_calls_of_a_result_are_plain_dicts():
    (call,) = (await results())["answered"].to_dict()["tool_calls_made"]
    assert call["name"] == "look"
    assert call["arguments"] == {"key": "a"}
    assert call["result"] == "value of a"
    assert call["is_error"] is False
    assert call["id"] == "call_0_0"


async def test_a_result_as_a_dict_of_every_kind_of_run_can_be_written_as_json():
    for name, result in (await results()).items():
        found = result.to_dict()
        assert json.loads(json.dumps(found)) == found, name
        assert found["stop"]["reason"] == result.stop.reason
    assert found["output"] == {"amount": 5}


async def test_a_result_as_a_dict_has_what_waits_and_what_failed():
    by_name = await results()
    (pending,) = by_name["waiting"].to_dict()["pending"]
    assert (pending["tool"], pending["arguments"], pending["kind"]) == ("pay", {"amount": 5}, "approval")
    assert pending["question"] == "money"
    error = by_name["failed"].to_dict()["error"]
    assert (error["kind"], error["message"]) == ("authentication_failed", "the key is not valid")


async def test_a_printed_result_shows_why_it_stopped():
    for name, result in (await results()).items():
        assert result.stop.reason in str(result), name
        assert result.run_id in str(result), name
    assert "done" in str((await results())["answered"])


async def test_a_printed_result_shows_the_cause_of_a_failure():
    result = (await results())["failed"]
    assert "AuthenticationFailed" in str(result)
    assert "the key is not valid" in str(result)


async def test_a_printed_result_shows_what_waits():
    shown = str((await results())["waiting"])
    assert "pay" in shown
    assert "call_0_0" in shown


async def test_a_result_with_text_is_its_message():
    result = (await results())["answered"]
    assert result.message == "done"


@pytest.mark.parametrize("name", ["limit", "failed", "waiting"])
async def test_a_result_without_text_has_a_message(name):
    result = (await results())[name]
    assert result.text == ""
    assert result.message.strip()
    assert result.stop.advice in result.message
    if name == "limit":
        assert "1 step" in result.message
    if name == "failed":
        assert "the key is not valid" in result.message


async def test_a_model_that_says_nothing_at_a_limit_leaves_a_message():
    def silent(request):
        return "" if request.tool_choice == "none" else [("look", {"key": str(request.step)})]

    agent = Agent(ScriptedModel(silent), tools=Bank().tools, limits=Limits(steps=3))
    result = await within(agent.run("go"))
    assert not result.finished
    assert "steps" in result.message
