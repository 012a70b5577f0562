"""Calls in which nothing but the tool's name says that they are calls: read where they are certain, else a fault.

Never the answer in silence; and what is an answer is none of them.
"""

import json

import pytest
from depth import deep
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FORMATS = ("json", "react", "tags")
BODY = '{"query": "x", "limit": 3}'
READ = {
    "an element with an object": f"<search>{BODY}</search>",
    "an element with elements": "<search>\n<query>x</query>\n<limit>3</limit>\n</search>",
    "a key": f'{{"search": {BODY}}}',
    "a key in a fence": f'```json\n{{"search": {BODY}}}\n```',
    "keys in an array": f'[{{"search": {BODY}}}]',
    "Tool and Input": f"Tool: search\nInput: {BODY}",
    "Tool and Input in bold": f"**Tool:** search\n**Tool Input:** {BODY}",
    "Tool and Input in a list": f"- Tool: `search`\n- Arguments: {BODY}",
    "Tool and Input in a fence": f"Tool: search\nInput:\n```json\n{BODY}\n```",
    "Function and Arguments": f"function: search\narguments: {BODY}",
    "name and arguments": f"name: search\narguments: {BODY}",
    "a marked request": f'[TOOL_REQUEST]\n{{"name": "search", "arguments": {BODY}}}\n[END_TOOL_REQUEST]',
    "a recipient": f'{{"recipient_name": "functions.search", "parameters": {BODY}}}',
    "harmony": f"<|channel|>commentary to=functions.search <|constrain|>json<|message|>{BODY}<|call|>",
    "a bracket too many": f'{{"name": "search", "arguments": {BODY}}}}}',
}
UNSURE = {
    "an element with a text": "<search>x</search>",
    "an element with attributes": '<search query="x"/>',
    "an element without its argument": "<search><limit>3</limit></search>",
    "an element that is not closed": f"<search>{BODY}",
    "a key without the argument": '{"search": {"limit": 3}}',
    "a key of nothing": '{"get_time": {}}',
    "print": 'print(search("x"))',
    "print by name": 'print(search(query="x", limit=3))',
    "await": 'await search("x")',
    "an assignment": 'result = search("x")',
    "return": 'return await search("x")',
    "print as tool_code": '```tool_code\nprint(search("x"))\n```',
    "Tool and a text": "Tool: search\nInput: x",
    "Tool without an Input": "Tool: search",
    "Tool and less than an Input": 'Tool: search\nInput: {"limit": 3}',
    "Tool and half an Input": 'Tool: search\nInput: {"query": "x',
    "name and lines": "name: search\narguments:\n  query: x",
    "Calling": 'Calling search("x")',
    "tool call": 'tool call: search("x")',
    "a name over a fence": f"search\n```json\n{BODY}\n```",
    "an element of another kind": f"<tool_use><name>search</name><arguments>{BODY}</arguments></tool_use>",
    "two elements": f"<tool>search</tool><input>{BODY}</input>",
    "a fence without arguments": '```json\n{"name": "search", "arguments": {}}\n```',
    "an object without arguments": '{"name": "search", "arguments": {}}',
    "a name alone": '{"tool": "search"}',
}
ANSWERS = [
    "<search>",
    "<b>search</b>",
    "<section><search>site</search></section>",
    '{"search": "x"}',
    '{"search": null}',
    '{"search": {"query": "x", "hits": 3}}',
    '{"search": {"results": []}}',
    '{"search": {"query": "x"}, "hits": 3}',
    '{"name": "search", "description": "Searches.", "parameters": {"type": "object", "properties": {}}}',
    "Tool: hammer\nInput: nail",
    "Tool: search engine",
    "Tool: search\nIt searches the web.",
    "Name: search\nAge: 3",
    "Name: search",
    "Function: sine\nInput: x",
    "print(1)",
    "result = 5",
    "return search",
    "Call me at noon.",
    "Calling the office is best.",
    "to=day",
    "The search: found.",
    f"The element is:\n\n<search>{BODY}</search>\n\nand so on.",
    f"Tool: search\nInput: {BODY}\n\nThat is how it is called.".replace("Tool", "> Tool").replace(
        "\nInput", "\n> Input"
    ),
    '```python\nprint(search("x"))\n```',
    '```python\nresult = search("x")\nprint(result)\n```',
    "Final Answer:\nTool: search",
    'Use `print(search("x"))`.',
]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("form", READ)
def test_a_call_that_the_name_of_its_tool_makes_certain_is_read(protocols, form, format):
    (call,) = protocols.reply(READ[form], format).message.calls
    assert (call.name, json.loads(call.arguments)) == ("search", {"query": "x", "limit": 3})


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("form", UNSURE)
def test_a_call_that_is_not_certain_is_not_made_and_never_the_answer(protocols, form, format):
    (call,) = protocols.reply(UNSURE[form], format).message.calls
    if call.name == "invalid_call":
        assert json.loads(call.arguments)["text"]
    else:  # the format's own, and its arguments are refused by their check
        assert (call.name, json.loads(call.arguments)) == ("search", {})


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("form", [*READ, *UNSURE])
def test_after_other_words_it_is_never_the_answer_either(protocols, form, format):
    reply = protocols.reply(f"I look it up.\n\n{(READ | UNSURE)[form]}", format)
    assert reply.message.calls


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_with_the_name_of_a_tool_in_it_is_the_answer(protocols, answer, format):
    reply = protocols.reply(answer, format)
    assert reply.message.calls == ()
    assert reply.message.text == (answer.removeprefix("Final Answer:\n") if format == "react" else answer)


def test_an_object_that_is_asked_for_as_the_answer_is_no_call_by_its_key(protocols):
    schema = {"type": "object", "properties": {"search": {"type": "object"}}, "required": ["search"]}
    reply = protocols.reply(f'{{"search": {BODY}}}', "tags", output_schema=schema)
    assert (reply.message.calls, reply.message.text) == ((), f'{{"search": {BODY}}}')


@settings(max_examples=deep(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.sampled_from([*READ.values(), *UNSURE.values(), *ANSWERS]),
    before=st.sampled_from(["", "I look.\n", "- "]),
    format=st.sampled_from(FORMATS),
    data=st.data(),
)
def test_how_it_comes_changes_nothing(protocols, text, before, format, data):
    text = before + text
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    if data.draw(st.booleans()):
        cuts = list(range(len(text)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    whole, came = protocols.reply(text, format), protocols.events(text, format, pieces)
    assert came[-1].message == whole.message
    shown = "".join(event.text for event in came if type(event).__name__ == "TextDelta")
    assert shown == whole.message.text
