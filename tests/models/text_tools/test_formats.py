"""What models write, and what it is read as: a table a format."""

import json

import pytest

from treadle.models.errors import UnfinishedReply

X = ("search", '{"query":"x"}')
NOW = ("get_time", "{}")
ADD = ("add", '{"a":1,"b":2}')

JSON = {
    "bare": ('{"name":"search","arguments":{"query":"x"}}', [X]),
    "after prose": ('I will look.\n{"name":"search","arguments":{"query":"x"}}', ["I will look.", X]),
    "fenced": ('```json\n{"name":"search","arguments":{"query":"x"}}\n```', [X]),
    "fenced after prose, prose after": (
        'So:\n\n```json\n{"name":"search","arguments":{"query":"x"}}\n```\nThanks.',
        ["So:", X, "Thanks."],
    ),
    "fenced without a language": ('```\n{"name":"search","arguments":{"query":"x"}}\n```', [X]),
    "fenced within a line": ('So: ```json {"name":"search","arguments":{"query":"x"}}```', ["So:", X]),
    "a fence that never closes": ('```json\n{"name":"search","arguments":{"query":"x"}}', [X]),
    "a brace that never closes": ('{"name":"search","arguments":{"query":"x"}', [X]),
    "single quotes": ("{'name': 'search', 'arguments': {'query': 'x'}}", [X]),
    "an escaped single quote": (
        r"{'name': 'search', 'arguments': {'query': 'it\'s'}}",
        [("search", '{"query":"it\'s"}')],
    ),
    "double quotes in single ones": (
        """{'name': 'search', 'arguments': {'query': 'say "x"'}}""",
        [("search", r'{"query":"say \"x\""}')],
    ),
    "Python literals": (
        "{'name': 'search', 'arguments': {'query': 'x', 'a': True, 'b': False, 'c': None}}",
        [("search", '{"query":"x","a":true,"b":false,"c":null}')],
    ),
    "trailing commas": ('{"name":"search","arguments":{"query":"x",},}', [X]),
    "comments": (
        '{"name":"search", // why\n"arguments": /* so */ {"query":"x"} # done\n}',
        [("search", '{"query":"x"}')],
    ),
    "bare keys": ('{name: "search", arguments: {query: "x"}}', [X]),
    "a raw newline in a string": (
        '{"name":"search","arguments":{"query":"a\nb"}}',
        [("search", '{"query":"a\\u000ab"}')],
    ),
    "several objects": (
        '{"name":"search","arguments":{"query":"x"}}\n{"name":"get_time","arguments":{}}',
        [X, NOW],
    ),
    "an array": ('[{"name":"search","arguments":{"query":"x"}}, {"name":"get_time"}]', [X, NOW]),
    "several in one fence": (
        '```json\n{"name":"search","arguments":{"query":"x"}}\n{"name":"get_time","arguments":{}}\n```',
        [X, NOW],
    ),
    "arguments as a string": ('{"name":"search","arguments":"{\\"query\\":\\"x\\"}"}', [X]),
    "the shape of a native call": (
        '{"tool_calls":[{"id":"1","type":"function","function":{"name":"search","arguments":"{\\"query\\":\\"x\\"}"}}]}',
        [X],
    ),
    "tool and args": ('{"tool":"search","args":{"query":"x"}}', [X]),
    "tool and input": ('{"tool":"search","input":{"query":"x"}}', [X]),
    "name and parameters": ('{"name":"search","parameters":{"query":"x"}}', [X]),
    "action and action_input": ('{"action":"search","action_input":{"query":"x"}}', [X]),
    "action_input as a text": ('{"action":"search","action_input":"x"}', [X]),
    "a thought beside the call": ('{"thought":"hm","action":"search","action_input":{"query":"x"}}', [X]),
    "arguments beside the name": ('{"tool":"search","query":"x"}', [X]),
    "no arguments": ('{"name":"get_time"}', [NOW]),
    "arguments that are null": ('{"name":"get_time","arguments":null}', [NOW]),
    "a namespace": ('{"name":"functions.search","arguments":{"query":"x"}}', [X]),
    "an unknown tool": ('{"name":"find","arguments":{"query":"x"}}', [("find", '{"query":"x"}')]),
    "numbers keep their digits": (
        "{'name': 'add', 'arguments': {'a': 12345678901234567890.12, 'b': 1.10}}",
        [("add", '{"a":12345678901234567890.12,"b":1.10}')],
    ),
    "arguments cut off": ('{"name":"search","arguments":{"query":"x', [("search", '{"query":"x')]),
    "arguments with a stray quote": (
        '{"name":"search","arguments":{"query":"say "x" now"}}',
        [("search", '{"query":"say "x" now"}')],
    ),
    "a result made up by the model": (
        '{"name":"get_time"}\nResult of get_time:\n12\n{"name":"search","arguments":{"query":"12"}}',
        [NOW],
    ),
    "a final answer as an action": ('{"action":"Final Answer","action_input":"42"}', ["42"]),
    "a call only thought of": (
        '<think>{"name":"search","arguments":{"query":"x"}}</think>\nHello',
        ['{"name":"search","arguments":{"query":"x"}}', "Hello"],
    ),
}

REACT = {
    "the whole form": ('Thought: hm\nAction: search\nAction Input: {"query":"x"}', ["hm", X]),
    "an observation made up": (
        'Thought: hm\nAction: search\nAction Input: {"query":"x"}\nObservation: y\nThought: z\nFinal Answer: y',
        ["hm", X],
    ),
    "an answer that waits for nothing": ('Action: search\nAction Input: {"query":"x"}\nFinal Answer: y', [X]),
    "brackets": ("Action: search[x]", [X]),
    "brackets with quotes": ('Action: search["x"]', [X]),
    "brackets in brackets": ("Action: search[x [1] y]", [("search", '{"query":"x [1] y"}')]),
    "brackets with numbered labels": ("Thought 1: hm\nAction 1: search[x]\nObservation 1: y", ["hm", X]),
    "parentheses": ('Action: search(query="x")', [X]),
    "parentheses, by place": ("Action: add(1, 2)", [ADD]),
    "parentheses, empty": ("Action: get_time()", [NOW]),
    "an object in parentheses": ('Action: search({"query":"x"})', [X]),
    "an action that is an object": ('Action: {"name":"search","arguments":{"query":"x"}}', [X]),
    "an action that is a fenced object": (
        'Action:\n```json\n{"action":"search","action_input":{"query":"x"}}\n```',
        [X],
    ),
    "a fenced input": ('Action: search\nAction Input:\n```json\n{"query":"x"}\n```', [X]),
    "a text as input": ("Action: search\nAction Input: x", [X]),
    "an input over several lines": (
        'Action: search\nAction Input: {\n"query":\n"x"}',
        [("search", '{\n"query":\n"x"}')],
    ),
    "a label in the input": (
        'Action: search\nAction Input: {"query":"a\\nAction: b"}',
        [("search", '{"query":"a\\nAction: b"}')],
    ),
    "Python literals": ("Action: search\nAction Input: {'query': 'x',}", [X]),
    "no input": ("Action: get_time", [NOW]),
    "bold labels": ('**Thought:** hm\n**Action:** `search`\n**Action Input:** {"query":"x"}', ["hm", X]),
    "other capitals": ('THOUGHT: hm\naction: search\naction input: {"query":"x"}', ["hm", X]),
    "several actions": (
        'Action: search\nAction Input: {"query":"x"}\nAction: add\nAction Input: {"a":1,"b":2}',
        [X, ADD],
    ),
    "an unknown tool": ("Action: find[x]", [("find", "x")]),
    "an unclosed bracket": ("Action: search[x", [("search", "Action: search[x")]),
    "an input cut off": ('Action: search\nAction Input: {"query": "x', [("search", '{"query": "x')]),
    "an answer": ("Thought: I know.\nFinal Answer: 42", ["I know.", "42"]),
    "an answer on the next lines": ("Final Answer:\n42\n43", ["42\n43"]),
    "an answer with labels in it": ("Final Answer: do this\nAction: search[x]", ["do this\nAction: search[x]"]),
    "an answer without a label": ("Just hello.", ["Just hello."]),
    "Finish": ("Action: Finish[42]", ["42"]),
    "an action that is none": ("Action: None\nFinal Answer: 42", ["42"]),
}

TAGS = {
    "tool_call": ('<tool_call>\n{"name":"search","arguments":{"query":"x"}}\n</tool_call>', [X]),
    "after prose": ('Look:\n<tool_call>{"name":"search","arguments":{"query":"x"}}</tool_call>', ["Look:", X]),
    "the closing tag in a string": (
        '<tool_call>{"name":"search","arguments":{"query":"</tool_call>"}}</tool_call>',
        [("search", '{"query":"</tool_call>"}')],
    ),
    "several": (
        '<tool_call>{"name":"search","arguments":{"query":"x"}}</tool_call>\n<tool_call>{"name":"get_time"}</tool_call>',
        [X, NOW],
    ),
    "several in one": (
        '<tool_call>\n{"name":"search","arguments":{"query":"x"}}\n{"name":"get_time"}\n</tool_call>',
        [X, NOW],
    ),
    "unclosed": ('<tool_call>{"name":"search","arguments":{"query":"x"}}', [X]),
    "unclosed, brace and all": ('<tool_call>{"name":"search","arguments":{"query":"x"}', [X]),
    "unclosed, then another": (
        '<tool_call>{"name":"search","arguments":{"query":"x"}}\n<tool_call>{"name":"get_time"}</tool_call>',
        [X, NOW],
    ),
    "Python literals": ("<tool_call>{'name': 'search', 'arguments': {'query': 'x'}}</tool_call>", [X]),
    "tool with a name": ('<tool name="search">{"query":"x"}</tool>', [X]),
    "function=": ('<function=search>{"query":"x"}</function>', [X]),
    "function= unclosed": ('<function=search>{"query":"x"}', [X]),
    "function= in tool_call, with parameters": (
        "<tool_call>\n<function=search>\n<parameter=query>\nx\n</parameter>\n</function>\n</tool_call>",
        [("search", '{"query": "x"}')],
    ),
    "invoke with parameters": (
        '<function_calls><invoke name="search"><parameter name="query">5</parameter>'
        '<parameter name="limit">5</parameter></invoke></function_calls>',
        [("search", '{"query": "5", "limit": 5}')],
    ),
    "an unclosed last parameter": (
        '<invoke name="search"><parameter name="query">x</invoke>',
        [("search", '{"query": "x"}')],
    ),
    "an empty element": ('<tool name="get_time"/>', [NOW]),
    "fenced": ('```xml\n<tool_call>{"name":"search","arguments":{"query":"x"}}</tool_call>\n```', [X]),
    "an unknown tool": (
        '<tool_call>{"name":"find","arguments":{"query":"x"}}</tool_call>',
        [("find", '{"query":"x"}')],
    ),
    "a result made up by the model": (
        '<tool_call>{"name":"get_time"}</tool_call><tool_response>12</tool_response>It is 12.',
        [NOW],
    ),
    "arguments cut off": ('<tool_call>{"name":"search","arguments":{"query":"x', [("search", '{"query":"x')]),
}

TABLE = [
    pytest.param(format, text, parts, id=f"{format}: {name}")
    for format, rows in (("json", JSON), ("react", REACT), ("tags", TAGS))
    for name, (text, parts) in rows.items()
]


@pytest.mark.parametrize(("format", "text", "parts"), TABLE)
def test_what_is_written_is_read(protocols, format, text, parts):
    assert protocols.parts(text, format) == parts


ANSWERS = [
    ("json", '{"city": "Paris", "country": "France"}'),
    ("json", '{"name":"Loki","animal":"cat","age":3}'),
    ("json", 'The settings are:\n\n```json\n{"name": "demo", "input": "a.csv"}\n```\nThat is all.'),
    ("json", '```python\ncall({"name": "search", "arguments": {"query": "x"}})\n```'),
    ("json", "In TeX: \\frac{a}{b}, a set {1, 2}, a [link](url), an [x] {unclosed"),
    ("json", "[1, 2, 3] and [{}] and {}"),
    ("json", '{"result": {"name": "search", "arguments": {"query": "x"}}}'),
    ("json", '{"name": "search", "description": "looks things up"}'),
    ("json", '{"input": "x"}'),
    ("json", '  <tool_call>{"a": 1}</tool_call>\n'),
    ("react", "Actions: none.\nThe thought: was mine."),
    ("react", "Observation: it rains."),
    ("tags", "Write `<tool_call>` before the JSON, as in a < b > c."),
    ("tags", '```python\nx = \'<tool_call>{"name": "search"}</tool_call>\'\n```'),
    ("tags", "<b>bold</b> <table><tr></tr></table>"),
]


@pytest.mark.parametrize(("format", "text"), ANSWERS)
def test_an_answer_that_merely_holds_json_or_code_is_kept_byte_for_byte(protocols, format, text):
    reply = protocols.reply(text, format)
    assert (reply.message.text, reply.message.calls, reply.finish) == (text, (), "stop")


def test_a_structured_answer_with_the_keys_of_a_call_is_the_answer(protocols):
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}}}
    text = '{"name": "Ada", "arguments": {"for": "x"}}'
    assert protocols.parts(text, "json") == [("Ada", '{"for": "x"}')]
    assert protocols.parts(text, "json", output_schema=schema) == [text]


FAULTS = [
    ("json", '{"arguments": {"query": "x"}}', "does not name a tool"),
    ("json", '{"arguments": {"query": "x', "does not name a tool"),
    ("json", '{"tool_calls": ["search"]}', "does not hold tool calls"),
    ("react", "Action: I will look it up\n", "the name of one tool"),
    ("react", 'Action Input: {"query": "x"}', "without an Action"),
    ("react", 'Action: {"query": "x"}', "does not call a tool"),
    ("react", "Thought: the answer may be 42", "neither an Action nor a Final Answer"),
    ("tags", "<tool_call>search for x</tool_call>", "no JSON object"),
    ("tags", '<tool_call>{"query": "x"}</tool_call>', "does not name a tool"),
    ("tags", '<tool_call>{"query": "x', "has no end"),
    ("tags", "<tool_call>", "no JSON object"),
]


@pytest.mark.parametrize(("format", "text", "says"), FAULTS)
def test_an_attempt_without_a_name_says_what_is_wrong_and_shows_what_is_right(protocols, format, text, says):
    *_, (name, arguments) = protocols.parts(text, format)
    assert name == "invalid_call"
    told = json.loads(arguments)
    assert says in told["fault"]
    example = told["fault"].partition("for example:\n\n")[2]
    assert protocols.parts(example, format) == [("search", '{"query": "..."}')]


def test_one_call_only_where_parallel_calls_are_off(protocols):
    from treadle.kernel.messages import ModelSettings

    text = '{"name":"search","arguments":{"query":"x"}}\n{"name":"get_time"}'
    assert protocols.parts(text, "json", settings=ModelSettings(parallel_tool_calls=False)) == [X]


@pytest.mark.parametrize("finish", ["length", "content_filter", "refusal", "pause"])
def test_a_reply_that_the_model_did_not_end_keeps_its_finish(protocols, finish):
    reply = protocols.reply('{"name":"search","arguments":{"query":"x', "json", finish=finish)
    assert reply.finish == finish


@pytest.mark.parametrize(
    ("finish", "text", "expected"),
    [
        ("stop", JSON["bare"][0], "tool_calls"),
        ("tool_calls", "Hello", "stop"),
    ],
)
def test_the_finish_says_whether_there_are_calls(protocols, finish, text, expected):
    assert protocols.reply(text, "json", finish=finish).finish == expected


@pytest.mark.parametrize("text", ["Hello", JSON["bare"][0]])
def test_of_a_reply_that_is_not_known_to_be_whole_nothing_is_read(protocols, text):
    with pytest.raises(UnfinishedReply):
        protocols.reply(text, "json", finish="unknown")


@pytest.mark.parametrize("format", ["json", "react", "tags"])
def test_a_choice_is_kept_to(protocols, format):
    call = {"json": JSON, "react": REACT, "tags": TAGS}[format][
        "after prose" if format != "react" else "the whole form"
    ]
    *_, (name, told) = protocols.parts(call[0], format, tool_choice="none")
    assert (name, "tools are off" in told) == ("invalid_call", True)
    *_, (name, told) = protocols.parts(call[0], format, tool_choice="get_time")
    assert (name, "only the tool 'get_time'" in told) == ("invalid_call", True)
    *_, (name, told) = protocols.parts("Hello", format, tool_choice="required")
    assert (name, "must be called" in told) == ("invalid_call", True)
    assert protocols.parts(call[0], format, tool_choice="required")[-1] == X
    assert protocols.parts(call[0], format, tool_choice="search")[-1] == X
