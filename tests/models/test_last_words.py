"""The last word on an item of Responses: what servers leave out of it, and pieces that it does not agree with."""

import json
import re
import time

import pytest

from treadle import Agent, tool
from treadle.kernel.events import ModelReplied
from treadle.kernel.messages import Thinking
from treadle.models import OpenAIResponsesModel
from treadle.models.bounds import LONGEST_REPLY

pytestmark = pytest.mark.anyio
USED = {"input_tokens": 7, "output_tokens": 2}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "look"}
PLACE = {"arguments": '{"place": "A"}'}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def item(added, deltas, done, *, closing=None, declared=True):
    """The events of a response with one item; `closing` is how the last event has it, by default as it was done."""
    kinds = {"message": "output_text", "reasoning": "reasoning_summary_text"}
    kind = kinds.get(added["type"], "function_call_arguments")
    events = [{"type": "response.output_item.added", "output_index": 0, "item": added}]
    events += [{"type": f"response.{kind}.delta", "output_index": 0, "delta": delta} for delta in deltas]
    if declared:
        events.append({"type": "response.output_item.done", "output_index": 0, "item": done})
    return [*events, whole(*([done] if closing is None else closing))]


def whole(*output):
    response = {"id": "r", "status": "completed", "output": list(output), "usage": USED}
    return {"type": "response.completed", "response": response}


def said(text):
    return {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def responses(serve, *replies):
    def answer(peer):
        peer.begin()
        for event in replies[min(peer.number, len(replies) - 1)]:
            if event["type"] == "response.completed":
                time.sleep(0.2)
            peer.chunk(f"data: {json.dumps(event)}\n\n".encode())
        peer.end()

    return OpenAIResponsesModel("m", base_url=serve(answer).url, api_key="k")


@pytest.fixture
def seen():
    return []


@pytest.fixture
def look(seen):
    @tool(effect="read")
    def look(place: str = "everywhere") -> str:
        """Looks."""
        seen.append(place)
        return f"seen {place}"

    return look


LEFT_OUT = {
    "null": item(CALL | {"arguments": ""}, ['{"place":', '"A"}'], CALL | {"arguments": None}),
    "empty": item(CALL | {"arguments": ""}, ['{"place":', '"A"}'], CALL | {"arguments": ""}),
    "no field": item(CALL, ['{"place":', '"A"}'], CALL),
    "not in the closing event": item(CALL, ['{"place":', '"A"}'], CALL, closing=[]),
    "only in the closing event": item(CALL, ['{"place":', '"A"}'], CALL, declared=False),
}


@pytest.mark.parametrize("events", LEFT_OUT.values(), ids=LEFT_OUT)
async def test_a_call_that_is_declared_done_without_its_arguments_has_those_that_were_streamed(
    serve, look, seen, events
):
    result = await Agent(responses(serve, events, [whole(said("Done."))]), tools=[look]).run("look")
    assert (seen, result.text) == (["A"], "Done.")
    (call,) = result.tool_calls_made
    assert call.arguments == {"place": "A"}


async def test_a_call_without_arguments_that_is_done_twice_is_made_once(serve, look, seen):
    events = item(CALL, ['{"place": "A"}'], CALL)
    events.insert(-1, events[-2])
    result = await Agent(responses(serve, events, [whole(said("Done."))]), tools=[look]).run("look")
    assert (seen, len(result.tool_calls_made)) == (["A"], 1)


@pytest.mark.parametrize("deltas", [['{"place": "', '"}'], ['{"place": "A"', "}}"], ['{"place": "B"}']])
async def test_pieces_that_are_not_the_call_start_nothing_early(serve, look, seen, deltas):
    events = item(CALL, deltas, CALL | PLACE)
    result = await Agent(responses(serve, events, [whole(said("Done."))]), tools=[look]).run("look")
    assert (seen, result.text) == (["A"], "Done.")


@pytest.mark.parametrize("lacking", [{"content": []}, {"content": None}, {"content": [{"type": "output_text"}]}])
async def test_a_text_that_was_streamed_is_the_answer_though_its_last_word_lacks_it(serve, lacking):
    events = item(said("") | {"content": []}, ["All is", " well."], said("") | lacking)
    result = await Agent(responses(serve, events)).run("hi")
    assert result.text == "All is well."


async def test_thinking_that_was_streamed_and_a_text_that_was_not_are_both_kept(serve):
    thought = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "x"}
    events = item(thought, ["Hm", "."], thought, closing=[thought, said("Yes.")])
    result = await Agent(responses(serve, events)).run("hi")
    assert result.text == "Yes."
    (reply,) = [event.message for event in result.events if isinstance(event, ModelReplied)]
    assert [(part.text, part.data) for part in reply.content if isinstance(part, Thinking)] == [("Hm.", "x")]


APPROVAL = {"type": "mcp_approval_request", "id": "a", "name": "pay", "server_label": "bank", "arguments": "{}"}
SHELL = {"type": "shell_call", "id": "s", "call_id": "c", "status": "completed", "action": {"commands": ["ls"]}}


@pytest.mark.parametrize(
    ("left", "told"),
    [
        (APPROVAL, "wants an approval before it calls 'pay' of the MCP server 'bank'.*\"require_approval\": \"never\""),
        (SHELL, "leaves to the caller .shell_call."),
        ({"type": "custom_tool_call", "id": "u", "call_id": "c", "name": "n", "input": "x"}, "custom_tool_call"),
        ({"type": "tool_search_call", "id": "t", "call_id": "c", "execution": "client"}, "tool_search_call"),
    ],
)
@pytest.mark.parametrize("streaming", [True, False])
async def test_what_is_left_to_the_caller_and_cannot_be_done_is_no_empty_answer(serve, left, told, streaming):
    def answer(peer):
        if streaming:
            peer.begin()
            peer.chunk(f"data: {json.dumps(whole(left))}\n\n".encode())
            peer.end()
        else:
            peer.answer("200 OK", {"content-type": "application/json"}, json.dumps(whole(left)["response"]).encode())

    server = serve(answer)
    model = OpenAIResponsesModel("m", base_url=server.url, api_key="k", streaming=streaming)
    result = await Agent(model).run("pay")
    assert (result.stop.reason, result.usage.input_tokens, len(server.requests)) == ("model_error", 7, 1)
    assert re.search(told, result.stop.detail)


async def test_what_the_provider_has_carried_out_itself_is_no_such_thing(serve):
    output = {"type": "shell_call_output", "id": "o", "call_id": "c", "output": []}
    search = {"type": "tool_search_call", "id": "t", "call_id": None, "execution": "server"}
    result = await Agent(responses(serve, [whole(SHELL, output, search, said("Done."))])).run("look")
    assert result.text == "Done."


async def test_what_is_left_to_the_caller_is_paid_for_also_where_nobody_counted_it(serve):
    closing = whole(APPROVAL)
    closing["response"].pop("usage")
    result = await Agent(responses(serve, [closing])).run("pay")
    assert result.stop.reason == "model_error"
    assert result.usage.input_tokens > 0
    assert result.usage.output_tokens > 0


async def test_a_limit_of_messages_that_cut_a_response_off_is_no_reason_to_ask_again(serve):
    closing = whole(said("One."))
    closing["response"] |= {"status": "incomplete", "incomplete_details": {"reason": "max_messages"}}
    model = responses(serve, [closing | {"type": "response.incomplete"}])
    result = await Agent(model).run("go")
    assert (result.stop.reason, result.text, result.usage.input_tokens) == ("length", "One.", 7)
    assert "max_messages" in result.stop.detail


async def test_an_image_that_the_provider_drew_is_no_reply_that_is_too_long(serve):
    drawn = {
        "type": "image_generation_call",
        "id": "ig",
        "status": "completed",
        "result": "iVBO" * (LONGEST_REPLY // 4),
    }
    result = await Agent(responses(serve, [whole(drawn, said("Here it is."))])).run("draw")
    assert result.text == "Here it is."
    assert drawn in [getattr(part, "value", None) for part in result.messages[-1].content]
