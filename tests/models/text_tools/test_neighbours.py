"""A call is never the answer, and what is no call is never carried out: calls in other forms than the one asked for.

The rule, in both directions: a reply that is nothing but exact calls of tools that there are calls them, in whatever
form; one that says something and ends in such a call is a fault; a call that something follows is spoken of.
"""

import json

import pytest
from depth import deep
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from treadle import Agent, tool
from treadle.kernel.messages import Thinking
from treadle.models import TextTools
from treadle.models.port import ToolCallCompleted
from treadle.testing import ScriptedModel

FORMATS = ("json", "react", "tags")
ARGUMENTS = {"query": "where is it?", "limit": 3}
BODY = json.dumps(ARGUMENTS)
OBJECT = json.dumps({"name": "search", "arguments": ARGUMENTS})
PYTHON = 'search("where is it?", limit=3)'

# Forms in which a call is read where it is all of a reply.
READ = {
    "an object": OBJECT,
    "an object over several lines": json.dumps({"name": "search", "arguments": ARGUMENTS}, indent=2),
    "an object with other words": json.dumps({"tool": "search", "inputs": ARGUMENTS}),
    "the shape of a native call": json.dumps({"tool_calls": [{"function": {"name": "search", "arguments": BODY}}]}),
    "an array": f"[{OBJECT}]",
    "a fence": f"```json\n{OBJECT}\n```",
    "a fence after a space": f" ```json\n{OBJECT}\n ```",
    "a fence in a list": f"- ```json\n  {OBJECT}\n  ```",
    "a fence in a numbered list": f"1. ```json\n   {OBJECT}\n   ```",
    "a fence without a language": f"```\n{OBJECT}\n```",
    "a fence of another language": f"```python\n{OBJECT}\n```",
    "a fence of tool_code": f"```tool_code\n{PYTHON}\n```",
    "a fence of tildes": f"~~~json\n{OBJECT}\n~~~",
    "a fence on one line": f"```json {OBJECT}```",
    "a fence that never closes": f"```json\n{OBJECT}",
    "backticks": f"`{OBJECT}`",
    "tool_call": f"<tool_call>\n{OBJECT}\n</tool_call>",
    "tool-call": f"<tool-call>\n{OBJECT}\n</tool-call>",
    "tool_call with bars": f"<|tool_call|>{OBJECT}</|tool_call|>",
    "tool": f'<tool name="search">{BODY}</tool>',
    "function": f"<function=search>{BODY}</function>",
    "invoke": '<invoke name="search"><parameter name="query">where is it?</parameter>'
    '<parameter name="limit">3</parameter></invoke>',
    "a fenced element": f"```xml\n<function=search>{BODY}</function>\n```",
    "an element in a namespace": '<minimax:tool_call>\n<invoke name="search">\n<parameter name="query">where is it?'
    '</parameter>\n<parameter name="limit">3</parameter>\n</invoke>\n</minimax:tool_call>',
    "an array in tool_calls": f"<tool_calls>[{OBJECT}]</tool_calls>",
    "the shape of Google's native call": json.dumps({"functionCall": {"name": "search", "args": ARGUMENTS}}),
    "a mark and an array": f"[TOOL_CALLS] [{OBJECT}]",
    "a mark and an array by names": f'<|tools_prefix|>[{{"search": {BODY}}}]<|tools_suffix|>',
    "a mark and an object": f"[TOOL_CALLS]{OBJECT}</s>",
    "python_tag": f"<|python_tag|>{OBJECT}<|eom_id|>",
    "an object before a mark of the end": f"{OBJECT}<|im_end|>",
    "a mark and a name": f"[TOOL_CALLS]search[ARGS]{BODY}",
    "a name and an object in parentheses": f"search({BODY})",
    "a name and an object": f"search {BODY}",
    "a Python call": PYTHON,
    "a Python call by name": 'search(query="where is it?", limit=3)',
    "a list of Python calls": f"[{PYTHON}]",
    "Action and Action Input": f"Action: search\nAction Input: {BODY}",
    "Action in a list": f"- Action: search\n- Action Input: {BODY}",
    "Action in bold": f"**Action:** search\n**Action Input:** {BODY}",
    "Action as a Python call": f"Action: {PYTHON}",
    "Action after a thought": f"Thought: I must look.\nAction: search\nAction Input: {BODY}",
}
# Forms that may be a call or be code or text that is shown, wherever they stand.
UNSURE = {
    "a Python call in a fence": f"```python\n{PYTHON}\n```",
    "a name and brackets": "search[where is it?]",
    "places that it has not": 'search(query="where", limit=3, query="is it")',
    "tool_call with other elements": "<tool_call>search\n<arg_key>query</arg_key>\n<arg_value>x</arg_value>\n"
    "</tool_call>",
    "marks that are not read": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>search\n"
    "```json\n{}\n```<｜tool▁call▁end｜>",
    "Kimi's marks that are not read": "<|tool_calls_section_begin|><|tool_call_begin|>functions.search:0"
    f"<|tool_call_argument_begin|>{BODY}<|tool_call_end|><|tool_calls_section_end|>",
    "DeepSeek's marks that are not read": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="search">\n'
    '<｜DSML｜parameter name="query" string="true">x</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
    "Gemma's marks that are not read": "<start_function_call>call:search{query:<escape>x<escape>}<end_function_call>",
    "a text without quotes": "search(query=where is it?)",
}


def calls_of(protocols, text, format, **asked):
    return [(call.name, json.loads(call.arguments)) for call in protocols.reply(text, format, **asked).message.calls]


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "length"])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("form", READ)
def test_a_reply_that_is_a_call_in_any_form_is_that_call(protocols, form, format, finish):
    reply = protocols.reply(READ[form], format, finish=finish)
    assert [(call.name, json.loads(call.arguments)) for call in reply.message.calls] == [("search", ARGUMENTS)]
    assert reply.finish == ("length" if finish == "length" else "tool_calls")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("form", [*READ, *UNSURE])
def test_a_reply_that_ends_in_a_call_is_never_the_answer(protocols, form, format):
    text = f"I will look it up.\n\n{(READ | UNSURE)[form]}"
    ((name, arguments),) = calls_of(protocols, text, format)
    if name == "invalid_call":
        right = arguments["fault"].partition("Right is")[2].partition("\n\n")[2]
        assert calls_of(protocols, right, format)[0][0] == "search"
    else:
        assert (name, arguments) == ("search", ARGUMENTS)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("form", UNSURE)
def test_what_may_be_shown_is_a_fault_and_is_not_carried_out(protocols, form, format):
    ((name, told),) = calls_of(protocols, UNSURE[form], format)
    assert name == "invalid_call"
    assert told["text"]
    right = told["fault"].partition("Right is")[2].partition("\n\n")[2]
    assert calls_of(protocols, right, format)[0][0] == "search"


# What each format itself takes for a call, whatever stands around it.
OWN = {
    "json": ("object", "array", "native", "mark", "tag", "tool_call", "tool-call", "fence"),
    "tags": ("tool_call", "tool-call", "tool", "function", "invoke", "element"),
    "react": ("Action",),
}


# A mark that nobody writes otherwise makes a call wherever it stands, as the format's own form does.
FOREIGN = [
    (format, form)
    for format in FORMATS
    for form in [*READ, *UNSURE]
    if not any(word in form for word in (*OWN[format], "marks that are not read"))
]


@pytest.mark.parametrize(("format", "form"), FOREIGN)
@pytest.mark.parametrize("before", ["", "To look something up, write this:\n\n"])
def test_a_call_that_something_follows_is_spoken_of(protocols, form, format, before):
    text = f"{before}{(READ | UNSURE)[form]}\n\nThen wait for the result."
    reply = protocols.reply(text, format)
    assert (reply.message.text, reply.message.calls, reply.finish) == (text, (), "stop")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("form", [form for form in UNSURE if "marks" in form])
def test_marks_in_code_that_something_follows_are_spoken_of(protocols, form, format):
    text = f"The template:\n\n````\n{UNSURE[form]}\n````\n\nSo it is."
    reply = protocols.reply(text, format)
    assert (reply.message.text, reply.message.calls) == (text, ())


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("text", ["<|python_tag|> import math\nprint(math.pi)", "[TOOL_CALLS] please search x"])
def test_words_after_a_mark_that_may_be_a_call_are_a_fault(protocols, text, format):
    assert [name for name, _ in calls_of(protocols, text, format)] == ["invalid_call"]


ANSWERS = [
    "I used search(query) and add(a, b) to find it.",
    'Use `search("x")` for that.',
    'You may call it like this: `{"name": "search", "arguments": {"query": "x"}}`.',
    '> {"name": "search", "arguments": {"query": "x"}}\n\nis what he wrote.',
    '```python\ndef search(query):\n    return index[query]\n\nsearch("x")\n```',
    "```python\nprint(add(1, 2))\n```",
    "The plan:\n\n- Action: Bob writes the letter.\n- Action: search for a date, then add it.\n",
    "search",
    "search()",
    "add(a, b)",
    "add[a, b]",
    "search engines are useful.",
    "Action items: none.",
    '{"city": "Paris", "search": "x"}',
    '{"name": "search", "description": "Search the web."}',
    '[{"name": "search"}, {"name": "Loki", "animal": "cat"}]',
    "<table><tr><td>search</td></tr></table>",
    "<tool>a hammer</tool>",
    "[search](https://example.org) is a link.",
    "[1] search, [2] add",
    '<config>\n  <tool name="hammer"/>\n</config>',
    "body {\n  color: red;\n}",
    "<xs:tool_calls> is what the schema says.\nSee the page.",
    "<tool_calls>\nnone\n</tool_calls>",
    "A call begins with `<|tool_calls_section_begin|>`, or with <start_function_call>, in their templates.",
    "<start_function_call> is the mark that Gemma writes.\nIt comes first.",
    "In Kimi's template <|tool_calls_section_begin|> stands before calls, and <|tool_call_begin|> before each.",
    "I found that [TOOL_CALLS] is the mark. I used search, and you can add it to your template.",
    "| Model | Mark |\n|---|---|\n| Mistral | [TOOL_CALLS] |\n| Gemma | <start_function_call> |\n\nSo search says.",
    "Kimi: <|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0, with search for NAME.",
    "The mark (<｜tool▁calls▁begin｜>) and ‘[TOOL_CALLS]’ come first. To search for more, ask.",
    "Marks:\n- [TOOL_CALLS] is what Mistral writes\n- <|tool_calls_section_begin|> is what Kimi writes",
    'Others write `<tool_calls>[{"name": "search", "arguments": {"query": "x"}}]</tool_calls>` for it.',
    "Final: 42",
]


@pytest.mark.parametrize(
    ("format", "text"),
    [(format, text) for format in FORMATS for text in ANSWERS if format != "tags" or "<config" not in text],
)
def test_an_answer_that_speaks_of_tools_is_kept_byte_for_byte(protocols, format, text):
    reply = protocols.reply(text, format)
    assert (reply.message.text, reply.message.calls, reply.finish) == (text, (), "stop")


@pytest.mark.parametrize("form", [form for form in READ if "Action" not in form])
def test_a_final_answer_is_the_answer_whatever_it_looks_like(protocols, form):
    reply = protocols.reply(f"Thought: I know.\nFinal Answer: {READ[form]}", "react")
    assert (reply.message.text, reply.message.calls) == (READ[form].strip(), ())


SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}}}
STEPS = {"type": "object", "properties": {"actions": {"type": "array"}}}


@pytest.mark.parametrize("format", FORMATS)
def test_an_answer_of_a_type_that_looks_like_a_call_is_never_carried_out(protocols, format):
    ((name, told),) = calls_of(protocols, OBJECT, format, output_schema=SCHEMA)
    assert name == "invalid_call"
    assert "or the answer" in told["fault"]
    plan = json.dumps({"actions": [{"action": "search", "args": {"query": "x"}}]})
    ((name, told),) = calls_of(protocols, plan, format, output_schema=STEPS)
    assert (name, "or the answer" in told["fault"]) == ("invalid_call", True)
    for text in (json.dumps({"name": "Ada", "arguments": {"for": "x"}}), '{"actions": [{"action": "rest"}]}'):
        assert protocols.parts(text, format, output_schema=SCHEMA if "Ada" in text else STEPS) == [text]


@pytest.mark.parametrize("format", FORMATS)
def test_the_answer_of_a_type_may_be_a_list_or_one_of_several(protocols, format):
    step = {"type": "object", "properties": {"tool": {"type": "string"}, "query": {"type": "string"}}}
    steps = {"type": "array", "items": {"$ref": "#/$defs/Step"}, "$defs": {"Step": step}}
    either = {"anyOf": [{"$ref": "#/$defs/Step"}, {"type": "null"}], "$defs": {"Step": step}}
    one = '{"tool": "search", "query": "x"}'
    for schema, text in ((steps, f"[{one}]"), (either, one)):
        ((name, told),) = calls_of(protocols, text, format, output_schema=schema)
        assert (name, "or the answer" in told["fault"]) == ("invalid_call", True)
    final = json.dumps({"action": "Final Answer", "action_input": {"tool": "search", "query": "x"}})
    assert protocols.parts(final, format, output_schema=either) == [one]
    call = json.dumps({"tool_calls": [{"name": "search", "arguments": {"query": "x"}}]})
    assert calls_of(protocols, call, format, output_schema=either) == [("search", {"query": "x"})]


@pytest.mark.parametrize("format", FORMATS)
def test_an_action_without_its_input_is_never_the_answer(protocols, format):
    ((name, told),) = calls_of(protocols, "Action: search", format)
    assert (name, "has no Action Input" in told["fault"]) == ("invalid_call", True)


@pytest.mark.parametrize("format", FORMATS)
def test_a_method_of_something_else_is_no_tool(protocols, format):
    text = 'client.search("x")'
    assert protocols.parts(text, format) == [text]
    assert calls_of(protocols, 'functions.search("x")', format) == [("search", {"query": "x"})]


@pytest.mark.parametrize("format", ["json", "tags"])
def test_an_observation_made_up_after_an_action_is_left_out(protocols, format):
    text = f"Action: search\nAction Input: {BODY}\nObservation: it is here\nFinal Answer: here"
    assert protocols.parts(text, format) == [("search", BODY)]


QUICK = settings(max_examples=deep(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
WORDS = st.lists(
    st.sampled_from(["I", "found", "that", "search", "add", "it.", "So:", "(see", "[1])", "\n", "\n\n", "- ", "`x`"]),
    min_size=1,
    max_size=12,
).map(" ".join)


@QUICK
@given(
    format=st.sampled_from(FORMATS),
    form=st.sampled_from([*READ]),
    before=st.sampled_from(["", " ", "\n", "\n\n  "]),
    after=st.sampled_from(["", " ", "\n", "\n\n \n"]),
)
def test_white_space_decides_nothing(protocols, format, form, before, after):
    assert calls_of(protocols, f"{before}{READ[form]}{after}", format) == [("search", ARGUMENTS)]


@QUICK
@given(format=st.sampled_from(FORMATS), form=st.sampled_from([*READ, *UNSURE]), before=WORDS)
def test_no_call_at_the_end_of_a_reply_is_its_answer(protocols, format, form, before):
    made = calls_of(protocols, f"{before}\n\n{(READ | UNSURE)[form]}", format)
    assert [name for name, _ in made] in (["search"], ["invalid_call"])
    assert all(arguments == ARGUMENTS for name, arguments in made if name == "search")


@QUICK
@given(format=st.sampled_from(FORMATS), before=WORDS, after=WORDS, shown=st.sampled_from([OBJECT, PYTHON, "search[x]"]))
def test_nothing_quoted_in_words_or_code_is_carried_out(protocols, format, before, after, shown):
    for text in (
        f"{before} `{shown}` is {after}.",
        f"{before}\n\n```python\nx = {shown}\n```\n",
        f"{before}\n\n> {shown}\n\n{after}.",
    ):
        assert calls_of(protocols, text, format) == []


@QUICK
@given(
    format=st.sampled_from(FORMATS),
    forms=st.lists(st.sampled_from([*READ, *UNSURE]), min_size=1, max_size=3),
    data=st.data(),
)
def test_what_a_reply_is_cut_into_does_not_matter(protocols, format, forms, data):
    text = "\n".join((READ | UNSURE)[form] for form in forms)
    text = data.draw(st.sampled_from([text, f"So:\n{text}", f"{text}\nso.", f"Thought: so.\n{text}"]))
    at = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    pieces = [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]
    whole = protocols.events(text, format)[-1]
    assert protocols.events(text, format, pieces)[-1] == whole
    assert protocols.events(text, format, list(text))[-1] == whole


MARKED = [
    form for form, text in (READ | UNSURE).items() if text.startswith(("[TOOL", "<|python", "<|tool_", "<｜", "<start"))
]
MARKED.remove("tool_call with bars")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("before", ["I will look it up. ", "I will look it up:", "Of <a> and [1], `x`, "])
@pytest.mark.parametrize("form", MARKED)
def test_a_mark_of_a_call_in_the_middle_of_a_line_is_no_answer(protocols, form, before, format):
    """The whole line was the answer, marks and all, and the run was over."""
    text = before + (READ | UNSURE)[form]
    reply = protocols.events(text, format, list(text))[-1]
    assert [call.name for call in reply.message.calls] in (["search"], ["invalid_call"])
    # What ends the turn is no part of an object.
    assert reply.message.text.removesuffix("</s>").removesuffix("<|eom_id|>") == before.rstrip()


@pytest.mark.parametrize("format", FORMATS)
def test_what_gpt_oss_thinks_and_says_in_channels_is_no_answer_as_it_stands(protocols, format):
    """All of it was the answer."""
    thinks, says = "<|channel|>analysis<|message|>{}<|end|><|start|>assistant", "<|channel|>final<|message|>It is 4."
    call = f"<|channel|>commentary to=functions.search <|constrain|>json<|message|>{BODY}<|call|>"
    # What is said on the way to a call is no reason to ask whether that is meant, or shown.
    begins = thinks.format("Hm.") + thinks.format("I look.").replace("analysis", "commentary")
    unclosed = "<|channel|>analysis<|message|>Hm."
    for before, thoughts in (
        (thinks.format("Hm."), "Hm."), (thinks.format("Hm.") + thinks.format("Well, <|x|>."), "Hm.Well, <|x|>."),
        ("", ""), (begins, "Hm.I look."), (unclosed, "Hm."),
    ):  # fmt: skip
        # What a server lets it write after a call it has made up.
        made_up = f"{call}<|start|>functions.search to=assistant<|message|>4<|end|><|start|>assistant{says}"
        calls = (call, made_up, f"{call} Done.")
        for last in (says, f"{says}<|return|>", f"{says}<|end|>\n", says.replace("final", "final json"), *calls):
            text = before + last
            for pieces in ([text], list(text)):
                message = protocols.events(text, format, pieces)[-1].message
                thought = [part.text for part in message.content if isinstance(part, Thinking)]
                assert thought == ([thoughts] if thoughts else [])
                assert (message.text, [call.name for call in message.calls]) == (
                    ("", ["search"]) if last in calls else ("It is 4.", [])
                )


@pytest.mark.parametrize("format", FORMATS)
def test_the_channels_of_gpt_oss_are_known_where_a_server_leaves_their_marks_out(protocols, format):
    """All of it was the answer, what it thinks and what it calls."""
    call = f"commentary to=functions.search json{BODY}"
    for text, thought, said, called in (
        ("analysisWe add.assistantfinalIt is 4.", "We add.", "It is 4.", []),
        ("analysisWe add.assistantanalysisHm.assistantfinal**4**", "We add.assistantanalysisHm.", "**4**", []),
        (f"analysisWe look.assistant{call}", "We look.", "", ["search"]),
        (call, "", "", ["search"]),
        (f"analysisWe look.assistant{call} is it.", "We look.", f"{call} is it.", []),
        ("analysisResult = 4", "", "analysisResult = 4", []),
        ("analysis", "", "analysis", []),
        ("commentary to=everybody", "", "commentary to=everybody", []),
    ):
        for pieces in ([text], list(text)):
            message = protocols.events(text, format, pieces)[-1].message
            assert "".join([part.text for part in message.content if isinstance(part, Thinking)]) == thought
            assert (message.text, [call.name for call in message.calls]) == (said, called)


def completed(events):
    """The calls that were said to be complete, as a driver that starts them early sees them."""
    calls = {call.id: call for call in events[-1].message.calls}
    return [calls[event.id] for event in events if isinstance(event, ToolCallCompleted)]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("form", [*READ, *UNSURE])
def test_no_part_of_a_call_is_taken_for_the_call(protocols, form, format):
    text = (READ | UNSURE)[form]
    for length in range(1, len(text)):
        finish, pieces = ("length", list(text[:length])) if length % 5 == 0 else ("stop", None)
        for call in completed(protocols.events(text[:length], format, pieces, finish=finish)):
            try:
                arguments = json.loads(call.arguments) if call.name == "search" else ARGUMENTS
            except ValueError:
                continue  # the check of the arguments fails on it
            assert arguments == ARGUMENTS, text[:length]


@pytest.mark.parametrize("format", FORMATS)
def test_a_call_is_complete_early_only_when_it_is_closed(protocols, format):
    call = {
        "json": READ["an object"],
        "react": READ["Action and Action Input"],
        "tags": READ["tool_call"],
    }[format]
    text = f"{call}\n{call}"
    for length in range(1, len(text)):
        early = completed(protocols.events(text[:length], format, list(text[:length]), finish="length"))
        assert len(early) <= 2
        assert all(json.loads(one.arguments) == ARGUMENTS for one in early), text[:length]


@pytest.mark.parametrize("format", FORMATS)
def test_a_tool_that_writes_runs_for_a_reply_that_is_a_call_and_for_no_other(format):
    paid = []

    @tool
    def pay(to: str, amount: int) -> str:
        """Pays."""
        paid.append((to, amount))
        return "paid"

    call = 'pay("Anna", amount=5)'
    shown = f"Like this:\n\n```python\n{call}\n```"
    final = f"Final Answer: I used `{call}`." if format == "react" else f"I used `{call}`."
    model = ScriptedModel([f"I will pay.\n\n{call}", shown, call, final], chunk=2)
    result = Agent(TextTools(model, format), tools=[pay]).run_sync("Pay Anna 5.")
    assert paid == [("Anna", 5)]
    assert result.text == f"I used `{call}`."
    assert [[call.name for call in step.calls] for step in result.steps] == [
        ["invalid_call"],
        ["invalid_call"],
        ["pay"],
        [],
    ]
