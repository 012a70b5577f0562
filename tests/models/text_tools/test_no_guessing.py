"""No value of a call is guessed: what cannot be read exactly is a fault, and nothing is carried out."""

import contextlib
import json
import warnings

import pytest
from depth import deep
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from treadle import Agent, tool
from treadle.kernel.messages import ToolSpec
from treadle.models import TextTools
from treadle.testing import ScriptedModel


def spec(name, **properties):
    required = [key for key, schema in properties.items() if "default" not in schema]
    return ToolSpec(name, "", {"type": "object", "properties": properties, "required": required})


TEXT, NUMBER, LIST, OBJECT = ({"type": kind} for kind in ("string", "number", "array", "object"))
TOOLS = (
    spec("post", content=TEXT, tags={**LIST, "default": []}),
    spec("search", query=TEXT),
    spec("add", a=NUMBER, b=NUMBER),
    spec("sum", numbers=LIST),
    spec("find", filter=OBJECT, limit={**NUMBER, "default": 1}),
    spec("note", input=TEXT),
    spec("run", input=TEXT, mode={**TEXT, "default": "x"}),
    spec("now"),
)

READ = {
    "post('Hi', tags=['#x'])": {"content": "Hi", "tags": ["#x"]},
    'post("Hi", ["#x", "y"])': {"content": "Hi", "tags": ["#x", "y"]},
    "post(content='a, b) c', tags=[])": {"content": "a, b) c", "tags": []},
    r"post('it\'s \d\n')": {"content": "it's \\d\n"},
    r"post(r'\d\n')": {"content": "\\d\\n"},
    "post('''two\nlines''')": {"content": "two\nlines"},
    'post("a" "b")': {"content": "ab"},
    "add(1, 2.50)": {"a": 1, "b": 2.50},
    "add(-1, b=1_000)": {"a": -1, "b": 1000},
    "add(a=1e3, b=.5)": {"a": 1000.0, "b": 0.5},
    'post({"content": "x", "tags": null})': {"content": "x", "tags": None},
    "post({'content': 'x', 'tags': (True, None)})": {"content": "x", "tags": [True, None]},
    "sum([1, 2])": {"numbers": [1, 2]},
    'find({"a": 1})': {"filter": {"a": 1}},
    'find({"a": 1}, 3)': {"filter": {"a": 1}, "limit": 3},
    "now()": {},
    "search[what is it?]": {"query": "what is it?"},
    "search['what is it?']": {"query": "what is it?"},
    'search["a" or "b"]': {"query": '"a" or "b"'},
    "search['tis so]": {"query": "'tis so"},
    "search[a [1] b]": {"query": "a [1] b"},
    'search["a ] b"]': {"query": "a ] b"},
    'search[query="x"]': {"query": "x"},
    "add[1, 2]": {"a": 1, "b": 2},
}
FAULTS = {
    "search('a', 'b')": "takes 1 argument",
    "search(query=foo bar)": "not Python",
    "search(query=foo)": "foo stands there without quotes",
    "search(foo bar)": "not Python",
    "search('a'), search('b')": "nothing else on its line",
    "search[a], search[b]": "nothing else on its line",
    "search[a] and search[b]": "nothing else on its line",
    "search('a' + 'b')": "no literal",
    "search(f'{x}')": "no literal",
    "search(b'x')": "no literal",
    "search(open('x').read())": "no literal",
    "search(*['a'])": "no literal",
    "search(**{'query': 'a'})": "** is no argument",
    "search('a', query='b')": "given twice",
    "search(query='a', query='b')": "given twice",
    "search('a')('b')": "nothing else on its line",
    "add(1j, 2)": "no literal",
    "search(1if 1 else 2)": "do not match",
    "find({'filter': {'a': 1}})": "all the arguments or the first",
    "post({1: 2}, [])": "keys of an object are texts",
    "post({'a': 1, 'a': 2}, [])": "each once",
    r"search('\ud800')": "cannot be written",
    "add[one, two]": "one JSON object",
    "search[query=foo bar]": "not Python",
}


def written(protocols, text, format="react"):
    return [(call.name, call.arguments) for call in protocols.reply(text, format, tools=TOOLS).message.calls]


@pytest.mark.parametrize("call", READ)
def test_an_action_is_read_as_it_was_written(protocols, call):
    ((name, arguments),) = written(protocols, f"Thought: so.\nAction: {call}\n")
    assert (name, json.loads(arguments)) == (call.partition("(")[0].partition("[")[0], READ[call])


@pytest.mark.parametrize("call", FAULTS)
def test_an_action_that_cannot_be_read_is_a_fault_that_shows_the_right_form(protocols, call):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ((name, told),) = written(protocols, f"Thought: so.\nAction: {call}\n")
    assert name == "invalid_call"
    assert FAULTS[call] in json.loads(told)["fault"]
    right = json.loads(told)["fault"].partition("for example:\n\n")[2]
    assert right.startswith(f"Action: {call.partition('(')[0].partition('[')[0]}")


def test_numbers_in_a_python_call_keep_their_digits(protocols):
    ((_, arguments),) = written(protocols, "Action: add(12345678901234567890.12, 1_0.50)")
    assert arguments == '{"a":12345678901234567890.12,"b":10.50}'


HOLDERS = ["arguments", "args", "kwargs", "input", "inputs", "params", "parameters", "tool_input", "action_input"]


@pytest.mark.parametrize("named", ["name", "tool", "tool_name", "function", "action"])
@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("format", ["json", "react", "tags"])
def test_the_words_of_peoples_prompts_are_understood(protocols, named, holder, format):
    text = json.dumps({named: "search", holder: {"query": "x"}})
    ((name, arguments),) = written(protocols, text, format)
    assert (name, json.loads(arguments)) == ("search", {"query": "x"})


OBJECTS = {
    '{"tool": "note", "input": "x"}': {"input": "x"},
    '{"tool": "note", "input": {"input": "x"}}': {"input": "x"},
    '{"tool": "run", "input": "x", "mode": "y"}': {"input": "x", "mode": "y"},
    '{"tool": "run", "input": "x"}': {"input": "x"},
    '{"tool": "post", "content": "hi"}': {"content": "hi"},
    '{"tool": "search", "args": ["x"], "kwargs": {}}': {"query": "x"},
    '{"tool": "add", "args": [1], "kwargs": {"b": 2}}': {"a": 1, "b": 2},
    '{"tool": "search", "args": {"query": "x"}, "kwargs": {}}': {"query": "x"},
    '{"name": "step 1", "tool": "search", "args": {"query": "x"}}': {"query": "x"},
    '{"name": "search", "arguments": {"query": "x"}, "confidence": 0.9}': {"query": "x"},
}
OBJECT_FAULTS = {
    '{"tool": "search", "args": {"query": "x"}, "input": {"query": "y"}}': "arguments in two places",
    '{"tool": "search", "args": ["x", "y"]}': "takes 1 argument",
    '{"tool": "add", "args": [1], "kwargs": {"a": 2}}': "given twice",
    '{"tool": "sum", "args": [1]}': "one argument or all of them",
    '{"tool": "post", "args": {"content": "x"}, "tags": ["y"]}': "beside the arguments",
    '{"tool": "search", "function": "now", "args": {"query": "x"}}': "names two tools",
}


@pytest.mark.parametrize("text", OBJECTS)
def test_an_object_is_read_as_it_was_written(protocols, text):
    ((name, arguments),) = written(protocols, text, "json")
    assert name in text
    assert json.loads(arguments) == OBJECTS[text]


@pytest.mark.parametrize("text", OBJECT_FAULTS)
def test_an_object_with_two_meanings_is_a_fault(protocols, text):
    ((name, told),) = written(protocols, text, "json")
    assert (name, OBJECT_FAULTS[text] in told) == ("invalid_call", True)


@pytest.mark.parametrize(
    ("format", "text"),
    [
        # A key within a text is no key, and the arguments within it are not the call's.
        ("json", '{"tool": "post", "memo": "args: {}", "content": "hel'),
        ("json", '{"tool": "run", "note": "input: {\\"mode\\": \\"y\\"}", "input": "hel'),
        ("json", '{"name": "post", "arguments": {"content": "x"}, "tags": ["y"'),
        ("tags", '<tool name="post"><parameter name=content>a</parameter><parameter name=content>b</parameter></tool>'),
        ("tags", '<tool name="post">hello <parameter name=content>a</parameter></tool>'),
        ("tags", '<tool name="search">query=foo bar</tool>'),
        ("react", "Action: search\nAction Input: query=foo bar"),
        ("react", "Action: search\nAction Input: query: foo bar"),
    ],
)
def test_what_has_no_certain_value_is_not_carried_out(format, text):
    ran = []

    @tool
    def post(content: str = "", tags: list[str] | None = None) -> str:
        """Posts."""
        ran.append(content)
        return "posted"

    @tool
    def run(input: str = "", mode: str = "x") -> str:
        """Runs."""
        ran.append(input)
        return "ran"

    @tool
    def search(query: str) -> str:
        """Searches."""
        ran.append(query)
        return "found"

    model = ScriptedModel([text, "Final Answer: done." if format == "react" else "done."])
    result = Agent(TextTools(model, format), tools=[post, run, search]).run_sync("go")
    assert (ran, result.text) == ([], "done.")
    assert result.steps[0].calls[0].is_error


def test_words_after_an_object_on_its_line_make_it_a_mention(protocols):
    call = '{"tool": "search", "args": {"query": "x"}}'
    for text in (f"{call} is how to search.", f"You write {call} to search."):
        ((name, told),) = written(protocols, text, "json")
        assert (name, "spoken of" in told) == ("invalid_call", True)
    for text in (f"{call}.", f"({call})", f"{call}\nI wait.", f"{call}, {call}"):
        assert {name for name, _ in written(protocols, text, "json")} == {"search"}


LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
QUICK = settings(max_examples=deep(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@QUICK
@given(content=LITERALS, tags=LITERALS, by_name=st.booleans(), format=st.sampled_from(["json", "react", "tags"]))
def test_a_call_as_python_writes_it_gives_the_values_that_python_has(protocols, content, tags, by_name, format):
    call = f"post(content={content!r}, tags={tags!r})" if by_name else f"post({content!r}, {tags!r})"
    ((name, arguments),) = written(protocols, f"Action: {call}" if format == "react" else call, format)
    assert (name, json.loads(arguments)) == ("post", {"content": content, "tags": tags})


@QUICK
@given(inside=st.text(alphabet="ab'\"()[]{},=:1.\\#*\n _-+", max_size=25))
def test_any_text_in_parentheses_is_what_python_reads_or_a_fault(protocols, inside):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = written(protocols, f"Action: post({inside})")
    for name, arguments in made:
        if name == "post" and arguments.startswith("{"):
            try:
                given_ = json.loads(arguments)
            except ValueError:
                continue

            def post(*places, **names):
                return places, names

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # A call that is closed on an earlier line is read, and the lines after it are text.
                for end in range(1, f"{inside})".count("\n") + 2):
                    lines = f"post({inside})".split("\n")[:end]
                    with contextlib.suppress(SyntaxError):
                        places, names = eval("\n".join(lines), {"post": post})
                        break
                else:
                    places, names = eval(f"post({inside}\n)", {"post": post})
            if len(places) == 1 and isinstance(places[0], dict):
                assert given_ == json.loads(json.dumps(places[0]))
            else:
                expected = dict(zip(("content", "tags"), places, strict=False)) | names
                assert given_ == json.loads(json.dumps(expected))
