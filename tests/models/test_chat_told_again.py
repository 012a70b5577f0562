"""What servers of Chat Completions tell at the end of a reply: in an old field, once more, or of another completion."""

import json

import pytest

from treadle import Agent, tool
from treadle.models import OpenAIChatModel, ToolCallCompleted, ToolCallDelta

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


def chunk(fields, finish=None, name="c1", field="delta", **more):
    return {"id": name, "choices": [{"index": 0, field: fields, "finish_reason": finish, **more}]}


def replies(*streams):
    def script(peer):
        peer.begin()
        for one in streams[min(peer.number, len(streams) - 1)]:
            peer.chunk(f"data: {json.dumps(one)}\n\n".encode())
        peer.chunk(b"data: [DONE]\n\n")
        peer.end()

    return script


async def asked(serve, *streams):
    """What comes of a run, and what it paid."""
    paid = []

    @tool
    def pay(to: str = "nobody", n: float = 0) -> str:
        """Pays."""
        paid.append(to)
        return "paid"

    model = OpenAIChatModel("m", base_url=serve(replies(*streams)).url, api_key="k")
    return await Agent(model, tools=[pay], retries=0).run("go"), paid


DONE = [chunk({"content": "Done."}, "stop")]
OLD = [
    chunk({"role": "assistant", "content": None, "function_call": {"name": "pay", "arguments": ""}}),
    chunk({"function_call": {"arguments": '{"to": '}}),
    chunk({"function_call": {"arguments": '"A"}'}}),
    chunk({}, "function_call"),
]


async def test_a_call_in_the_field_from_before_tool_calls_is_made(serve):
    """It was dropped, and the model said to have answered nothing."""
    result, paid = await asked(serve, OLD, DONE)
    assert (result.text, paid) == ("Done.", ["A"])


async def test_a_call_that_is_told_in_both_fields_is_made_once(serve):
    function = {"name": "pay", "arguments": '{"to": "A"}'}
    both = {"tool_calls": [{"index": 0, "id": "a", "function": function}], "function_call": function}
    result, paid = await asked(serve, [chunk(both), chunk({"function_call": function}, "tool_calls")], DONE)
    assert (result.text, paid) == ("Done.", ["A"])


@pytest.mark.parametrize(
    "stream",
    [
        [chunk({"content": "Hel"}), chunk({"content": "lo"}), chunk({}, "stop", message={"content": "Hello"})],
        [chunk({"content": "Hel"}), chunk({"content": "lo"}, "stop"), chunk({"content": "Hello"}, field="message")],
        [chunk({"content": "Hello"}, "stop", field="message")] * 2,
        [chunk({"content": "Hel"}), *[chunk({"content": "lo"}, "stop")] * 2],
    ],
    ids=["with the end", "after the end", "whole twice", "the end twice"],
)
async def test_what_is_told_once_more_at_the_end_is_said_once(serve, stream):
    result, _ = await asked(serve, stream)
    assert result.text == "Hello"


async def test_calls_without_ids_that_are_told_once_more_at_the_end_are_made_once(serve):
    calls = {"tool_calls": [{"function": {"name": "pay", "arguments": '{"to": "A"}'}}]}
    result, paid = await asked(serve, [chunk(calls), chunk({}, "tool_calls", message=calls)], DONE)
    assert (result.text, paid) == ("Done.", ["A"])


async def test_calls_that_came_by_turns_are_told_once_more_one_after_the_other(serve):
    """Neither was the text taken for what had come, nor the calls: all of it was said twice."""

    def piece(call_id, arguments, **named):
        return {"tool_calls": [{"id": call_id, "function": {"arguments": arguments, **named}}]}

    turns = [
        piece("b", '{"to":', name="pay_to"),
        piece("a", '{"to":', name="pay_to"),
        piece("a", '"A"}'),
        piece("b", '"B"}'),
    ]
    whole = {"content": "So.", "tool_calls": [entry for which in "AB" for entry in told_whole(which, piece)]}
    end = chunk({}, "tool_calls", message=whole)
    script = replies([chunk({"content": "So."}), *map(chunk, turns), end], DONE)
    model = OpenAIChatModel("m", base_url=serve(script).url, api_key="k")
    result = await Agent(model, tools=[tool(effect="read")(pay_to)], retries=0).run("go")
    assert result.text == "Done."
    assert [message.text for message in result.messages if message.role == "assistant"] == ["So.", "Done."]
    assert sorted(call.arguments["to"] for call in result.tool_calls_made) == ["A", "B"]


def told_whole(which, piece):
    return piece(which.lower(), f'{{"to": "{which}"}}', name="pay_to")["tool_calls"]


def pay_to(to: str) -> str:
    """Pays."""
    return to


@pytest.mark.parametrize("words", [["Ha", "Ha"], ["Ha", "Ha", "Ha"]])
async def test_a_word_that_is_said_again_is_said_again(serve, words):
    result, _ = await asked(serve, [*[chunk({"content": word}) for word in words], chunk({}, "stop")])
    assert result.text == "".join(words)


async def test_words_that_are_alike_are_said_where_each_chunk_says_that_it_is_the_last(serve):
    words = ["", "Ha", "Ha", "Ha"]
    result, _ = await asked(serve, [chunk({"content": word}, "stop") for word in words])
    assert result.text == "HaHaHa"


async def test_a_figure_whose_first_digits_are_alike_is_whole_where_each_chunk_says_that_it_is_the_last(serve):
    """The second 1 was taken for the end, sent anew: of 1100 was made 100."""
    result, _ = await asked(serve, [chunk({"role": "assistant", "content": digit}, "stop") for digit in "1100"])
    assert result.text == "1100"


async def test_what_is_alike_at_first_is_whole_where_each_chunk_says_that_it_is_the_last_and_an_empty_one_is(serve):
    """The second was taken for the end, sent anew: of 11 was made 1."""
    digits = [chunk({"content": "1"}, "stop"), chunk({"content": "1"}, "stop")]
    result, _ = await asked(serve, [*digits, chunk({}, "stop")])
    assert result.text == "11"
    result, _ = await asked(serve, [*digits[:1], chunk({}, "stop"), chunk({}, "stop")])
    assert result.text == "1"


@pytest.mark.parametrize("times", [2, 3])
async def test_an_end_that_is_sent_anew_is_one_though_another_follows_that_says_nothing(serve, times):
    end = [chunk({"content": " 42."}, "stop")] * times
    result, _ = await asked(serve, [chunk({"content": "It is"}), *end, chunk({"content": ""}, "stop")])
    assert result.text == "It is 42."


@pytest.mark.parametrize("finish", ["stop", "tool_calls"])
async def test_a_call_is_complete_with_its_arguments_where_each_chunk_says_that_it_is_the_last(serve, finish):
    """It was told to be complete, without any, as its name came."""

    def call(arguments, **more):
        return chunk({"tool_calls": [{"index": 0, "function": {"arguments": arguments, **more}, "id": "a"}]}, finish)

    told = []
    script = replies([call("", name="pay"), call('{"to": '), call('"A"}'), chunk({}, finish)], DONE)
    model = OpenAIChatModel("m", base_url=serve(script).url, api_key="k")

    @tool
    def pay(to: str = "nobody") -> str:
        """Pays."""
        return to

    await Agent(model, tools=[pay], retries=0).run("go", on_event=told.append)
    pieces = [one for one in told if isinstance(one, ToolCallDelta | ToolCallCompleted)]
    assert pieces == [ToolCallDelta("a", '{"to": '), ToolCallDelta("a", '"A"}'), ToolCallCompleted("a")]


@pytest.mark.parametrize("arguments", ["", "{}", '{"to": "A"}'])
async def test_a_call_that_comes_with_the_end_is_complete_with_or_without_arguments(serve, arguments):
    """Servers that write a call in one piece say in it why the reply ended; without arguments it was not complete."""
    whole = {"index": 0, "id": "a", "function": {"name": "pay", "arguments": arguments}}
    model = OpenAIChatModel(
        "m", base_url=serve(replies([chunk({"tool_calls": [whole]}, "stop")], DONE)).url, api_key="k"
    )

    @tool
    def pay(to: str = "nobody") -> str:
        """Pays."""
        return to

    told = []
    assert (await Agent(model, tools=[pay], retries=0).run("go", on_event=told.append)).text == "Done."
    pieces = [one for one in told if isinstance(one, ToolCallDelta | ToolCallCompleted)]
    assert pieces == [*([ToolCallDelta("a", arguments)] if arguments else []), ToolCallCompleted("a")]


@pytest.mark.parametrize("field", ["delta", "message"])
@pytest.mark.parametrize("again", ['{"to":"Zo\u00eb","n":1.0}', '{ "n": 1, "to": "Zo\\u00eb" }'])
async def test_a_call_that_is_told_once_more_in_other_spaces_and_escapes_is_made_once(serve, field, again):
    """A gateway that reads and writes arguments sets others: the call was made twice under one id."""
    first = {"index": 0, "id": "a", "function": {"name": "pay", "arguments": '{"to": "Zo\u00eb", "n": 1.0}'}}
    second = {**first, "index": 1 - (field == "message"), "function": {"name": "pay", "arguments": again}}
    stream = [chunk({"tool_calls": [first]}), chunk({"tool_calls": [second]}, "tool_calls", field=field)]
    result, paid = await asked(serve, stream, DONE)
    assert (result.text, paid) == ("Done.", ["Zo\u00eb"])


@pytest.mark.parametrize("second", [{"index": 1}, {"index": 1, "id": "b"}, {"index": 0, "id": "b"}])
async def test_calls_that_are_alike_are_made_where_each_chunk_says_that_it_is_the_last(serve, second):
    """The second was taken for the first, told once more, though it has a number or an id of its own."""
    first = {"index": 0} | ({"id": "a"} if "id" in second else {})
    function = {"name": "pay", "arguments": '{"to": "A"}'}
    calls = [chunk({"tool_calls": [{**which, "function": function}]}, "tool_calls") for which in (first, second)]
    result, paid = await asked(serve, calls, DONE)
    assert (result.text, paid) == ("Done.", ["A", "A"])


async def test_a_call_left_before_another_completion_of_one_chunk_is_not_made(serve):
    begun = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "pay", "arguments": ""}}]}
    left = [chunk({"role": "assistant"}), chunk(begun), chunk({"content": "Shall I?"}, "stop", name="c2")]
    result, paid = await asked(serve, left)
    assert (result.finished, paid) == (False, [])


async def test_a_call_without_arguments_of_a_server_that_names_each_chunk_anew_is_made(serve):
    begun = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "pay", "arguments": ""}}]}
    named = [chunk({"role": "assistant"}), chunk(begun, name="c2"), chunk({}, "tool_calls", name="c3")]
    result, paid = await asked(serve, named, DONE)
    assert (result.text, paid) == ("Done.", ["nobody"])


async def test_a_call_whose_arguments_and_end_were_lost_before_the_last_word_is_not_made(serve):
    """A proxy that ends what broke off with its own last word: the call was made without arguments."""
    begun = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "pay", "arguments": ""}}]}
    result, paid = await asked(serve, [chunk({"role": "assistant"}), chunk(begun)], DONE)
    assert (result.stop.reason, paid) == ("model_error", [])


async def test_a_whole_call_without_a_word_for_the_end_is_made(serve):
    whole = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "pay", "arguments": "{}"}}]}
    result, paid = await asked(serve, [chunk({"role": "assistant"}), chunk(whole)], DONE)
    assert (result.text, paid) == ("Done.", ["nobody"])


async def test_a_reply_that_is_told_again_is_one_though_a_call_stood_twice_in_its_pieces(serve):
    call = {"id": "a", "function": {"name": "pay", "arguments": '{"to": "A"}'}}
    pieces = [chunk({"content": "I pay."}), *(chunk({"tool_calls": [{**call, "index": at}]}) for at in range(2))]
    whole = chunk({"content": "I pay.", "tool_calls": [call]}, "tool_calls", field="message")
    result, paid = await asked(serve, [*pieces, chunk({}, "tool_calls"), whole], DONE)
    assert (result.messages[1].text, paid) == ("I pay.", ["A"])
