"""One rule for every form: what remains of the end of a reply, once marks and labels are peeled off, decides.

The name of a tool beside what reads as its arguments is a call, or a fault that shows the right form, and never the
answer in silence. With any other word it is prose, and prose about tools stays the answer, byte for byte.
"""

import gzip
import json
from pathlib import Path

import pytest
from depth import deep
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from treadle.kernel.messages import ToolSpec

FORMATS = ("json", "react", "tags")
ARGUMENTS = {"query": "x", "limit": 3}
BODY = json.dumps(ARGUMENTS)
PYTHON = 'search("x", limit=3)'
READ = {
    "bold": f"**{PYTHON}**",
    "struck": f"~~{PYTHON}~~",
    "underlined": f"__{PYTHON}__",
    "the name in bold": f"***search***\n{BODY}",
    "a heading": f"### {PYTHON}",
    "a full stop": f"{PYTHON}.",
    "a semicolon": f"{PYTHON};",
    "at": f"@search {BODY}",
    "slash": f"/search {BODY}",
    "a colon": f"search: {BODY}",
    "an arrow": f"search -> {BODY}",
    "equals": f"search = {BODY}",
    "a bar": f"search | {BODY}",
    "a picture": f"🔧 search: {BODY}",
    "a label in brackets": f"[TOOL: search {BODY}]",
    "a label of two words": f"USE TOOL: search {BODY}",
    "a label in German": f"Werkzeug: search {BODY}",
    "a label in Chinese": f"工具：search {BODY}",
    "a verb": f"call search {BODY}",
    "an element that nobody knows": f"<use>search {BODY}</use>",
    "two braces": f"{{{{search {BODY}}}}}",
    "one brace": f"{{search: {BODY}}}",
    "brackets": f"[search: {BODY}]",
    "a string that holds an object": json.dumps(json.dumps({"name": "search", "arguments": ARGUMENTS})),
    "a string that holds a Python call": json.dumps(PYTHON),
}
UNSURE = {
    "capitals": f"SEARCH{PYTHON[6:]}",
    "capitals and an object": f"SEARCH: {BODY}",
    "a Python call in braces": f"{{{{{PYTHON}}}}}",
    "a Python call after a label": f"[TOOL: {PYTHON}]",
    "a Python call in other quotes": f"«{PYTHON}»",
    "a Python call after an arrow": f"-> {PYTHON}",
    "three quotes": f'"""\n{PYTHON}\n"""',
    "the name as an argument": f"CALL(search, {BODY})",
    "arguments by a word": f"search with arguments {BODY}",
    "a fence without a language": f"```\nsearch: {BODY}\n```",
    "lines": "tool: search\nquery: x\nlimit: 3",
    "lines with a dash": "- tool: search\n  args:\n    query: x\n    limit: 3",
    "lines in a fence": "```yaml\ntool: search\nquery: x\nlimit: 3\n```",
    "the name last": "query: x\nlimit: 3\ntool: search",
    "lines with equals": "tool_name=search\nquery=x\nlimit=3",
    "a command": "$ search --query x --limit 3",
    "a path": "search?query=x&limit=3",
    "words with equals": "/search query=x limit=3",
}
ALONE = {
    "a name over lines": "search:\n  query: x\n  limit: 3",
    "a quoted text": 'search "x"',
    "a quoted text after a colon": "search: 'x'",
    "Lisp": '(search "x")',
}
"""Faults where they are all of a reply; after other words they are a list of tools, or of what one takes."""


def calls_of(protocols, text, format):
    return [(call.name, json.loads(call.arguments)) for call in protocols.reply(text, format).message.calls]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("form", READ)
def test_a_name_beside_its_arguments_in_any_marks_is_the_call(protocols, form, format):
    assert calls_of(protocols, READ[form], format) == [("search", ARGUMENTS)]
    assert calls_of(protocols, "<get_time/>", format) == [("get_time", {})]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("form", [*UNSURE, *ALONE])
def test_what_is_not_certain_is_a_fault_that_shows_the_right_form(protocols, form, format):
    ((name, told),) = calls_of(protocols, (UNSURE | ALONE)[form], format)
    assert name == "invalid_call"
    right = told["fault"].partition("Right is")[2].partition("\n\n")[2]
    ((name, arguments),) = calls_of(protocols, right, format)
    assert (name, arguments.keys() <= ARGUMENTS.keys(), "query" in arguments) == ("search", True, True)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("form", [*READ, *UNSURE])
def test_at_the_end_of_a_reply_it_is_never_the_answer(protocols, form, format):
    ((name, told),) = calls_of(protocols, f"I will look it up.\n\n{(READ | UNSURE)[form]}", format)
    assert name == "invalid_call"
    right = told["fault"].partition("Right is")[2].partition("\n\n")[2]
    assert calls_of(protocols, right, format)[0][0] == "search"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("form", [*READ, *UNSURE])
def test_what_words_follow_is_spoken_of(protocols, form, format):
    text = f"To look something up:\n\n{(READ | UNSURE)[form]}\n\nThen wait for what it finds."
    reply = protocols.reply(text, format)
    assert (reply.message.text, reply.message.calls) == (text, ())


@pytest.mark.parametrize("format", FORMATS)
def test_nothing_is_made_of_a_form_that_is_cut_anywhere(protocols, format):
    for text in (READ | UNSURE | ALONE).values():
        for length in range(1, len(text)):
            for name, arguments in [
                (call.name, call.arguments) for call in protocols.reply(text[:length], format).message.calls
            ]:
                if name == "search" and arguments != BODY:
                    try:
                        assert json.loads(arguments) == ARGUMENTS, text[:length]
                    except ValueError:
                        continue  # the check of the arguments fails on it


HONEST = r"""
I used search to look for it, and it found nothing.
The tools are:⏎⏎- search: looks for pages on the web⏎- add: adds two numbers⏎- get_time: tells the time
You have these tools:⏎⏎- **search**(query, limit): Search the web.⏎- **add**(a, b): Add two numbers.
- `search(query: str, limit: int = 5)`⏎- `add(a: float, b: float)`
Available:⏎⏎search(query: str, limit: int = 5)
Available:⏎⏎add(a: number, b: number)
def search(query: str) -> str
```python⏎def search(query: str, limit: int = 5) -> str:⏎    ...⏎```
search⏎======⏎⏎Looks for pages.
| tool | what it does |⏎|---|---|⏎| search | looks for pages |⏎| add | adds |
Search: nothing was found.
search: query is the text to look for, limit is how many.
The arguments of search:⏎⏎- query: what to look for⏎- limit: how many
search:⏎- query: what to look for⏎- limit: how many results
I looked, and:⏎⏎search:⏎  query: what to look for⏎  limit: how many
These are the tools:⏎⏎search:⏎  query: what to look for
add: 1, 2 and 3 make 6.
Add (1, 2) and (3, 4).
Tool: search engines such as this one
The result of search("cats") was empty, and add(1, 2) is 3.
I called search("cats") and it failed.
First I call search("cats"), then add(1, 2). Both worked.
Call search when you need the web.
Use add for sums.
search? No.
search!
@search is my handle.
#search #add
/search
**search**
- search⏎- add⏎- get_time
1. search⏎2. add
[search](https://example.org/search)
[search]("https://example.org")
![search](x.png)
"search" is a verb.
“search” means to look for.
{"search": true, "add": false}
{"tools": ["search", "add"]}
search = True
query = "x"
limit: 5
query: cats
query: cats⏎limit: 5
Name: search⏎Age: 3
name: Ada⏎query: cats
title: search⏎query: cats
```yaml⏎name: search⏎on: push⏎jobs:⏎  build:⏎    steps: []⏎```
```yaml⏎search:⏎  image: elastic⏎  ports: [9200]⏎```
```json⏎{"search": {"host": "localhost"}}⏎```
```sql⏎SELECT search(query) FROM pages;⏎```
```bash⏎search --help⏎```
```bash⏎search --query⏎```
```toml⏎[search]⏎host = "x"⏎```
[search]⏎host = "x"
```js⏎const found = await client.search({"query": "x"});⏎console.log(found);⏎```
```python⏎from web import search⏎⏎for hit in search("cats"):⏎    print(hit)⏎```⏎prints them.
It is called like this:⏎⏎```python⏎found = search("cats", limit=3)⏎print(found)⏎```
Run `search` first, then `add`.
The call `search("cats")` gave 3 hits.
If it fails, `search("dogs")` may help you.
You may write `{"name": "search", "arguments": {"query": "x"}}` for it.
Ich habe mit search nach Katzen gesucht: nichts.
Werkzeuge: search (sucht im Netz), add (addiert).
Werkzeug: search sucht im Netz.
Der Aufruf search("Katzen") ergab drei Treffer.
Aufruf von search: erfolgreich.
Die Argumente von search sind:⏎⏎- query: der Suchtext⏎- limit: die Zahl der Treffer
Mit „search“ wird gesucht, mit „add“ addiert.
J'ai utilisé l'outil search pour chercher « chats ».
Outils : search (cherche), add (additionne).
L'appel search("chats") n'a rien donné.
He usado la herramienta search: nada.
La función search(query, limit) busca en la red.
Herramientas:⏎- search: busca en la red⏎- add: suma dos números
Ho usato lo strumento search con query = gatti e limit = 3.
Я использовал инструмент search, чтобы найти котов.
Инструменты: search, add.
工具 search 用来搜索网页，add 用来相加。
我用 search("猫") 找到了三个结果。
工具：search、add。
search ツールで「猫」を検索しました。
도구 search는 웹을 검색합니다.
استخدمت search للبحث عن القطط.
Usei a ferramenta search: encontrei três páginas.
Thanks! (search)
Sum: add them up.
The function add(a, b) returns a + b
add(a, b) = a + b
f(x) = add(x, 1)
y = add(1, x)
add(1, 2) = 3
add(1, 2) is 3.
So add(1, 2) → 3
search("cats") → 3 hits
search → add → get_time
search -> add
search | add
search && add
> search("cats")⏎⏎is what he typed.
He typed:⏎⏎> search("cats")
He typed:⏎⏎> search: {"query": "cats"}
Q: what is search?⏎A: a tool.
tool
tool: none
Tool calls: 3 (search twice, add once).
action: none needed
Action required: sign here.
Function: to search. Input: words.
function search() { return 1 }
search {color: red}
search { color: red; }
search {}
search: {}
search: []
search: null
search: {"hits": 3}
search: {"query": "cats", "hits": 3}
search("cats"): 3 hits
- search("cats"): 3 hits⏎- search("dogs"): none
- search("cats") — 3 hits⏎- add(1, 2) — 3
Steps:⏎1. search("cats") to find them⏎2. add(1, 2) to count them
get_time
get_time tells the time.
<time/>
<br/>
The <get_time/> element is empty.
"The search", he said, "is over."
'search'
“search("cats")” was the call that I made.
(see search)
(search, add)
[search, add]
{search}
{{search}}
${search}
$search
--search
search=cats
search: cats
https://example.org/search?query=cats&limit=3
GET /search?query=cats HTTP/1.1
curl https://example.org/search?query=cats
See example.org/search?query=cats.
`search`
`search`: looks for pages⏎`add`: adds
It is:⏎⏎```json⏎{"name": "search", "parameters": {"type": "object", "properties": {"query": {"type": "text"}}}}⏎```
The schema of search:⏎⏎{"type": "object", "properties": {"query": {"type": "string"}}}
name: search⏎description: Searches the web.⏎parameters:⏎  query: text
tool: search⏎description: Searches the web.
tool: hammer⏎query: x
=SEARCH("x")
"""


def honest():
    return [one.replace("⏎", "\n") for one in HONEST.splitlines()[1:]]


def test_a_configuration_that_is_shown_after_words_is_no_call(protocols):
    schema = {"type": "object", "properties": {"replicas": {"type": "integer"}}, "required": ["replicas"]}
    tools = (ToolSpec("scale", "", schema),)
    for shown in ("scale:\n  replicas: 3", "```yaml\nscale:\n  replicas: 3\n```"):
        text = f"Use this:\n\n{shown}"
        message = protocols.reply(text, "json", tools=tools).message
        assert (message.text, message.calls) == (text, ())
        (call,) = protocols.reply(shown, "json", tools=tools).message.calls
        assert (call.name, "write words after it" in call.arguments) == ("invalid_call", True)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("before", ["", "I looked at it.\n\n"])
def test_prose_about_tools_is_kept_byte_for_byte(protocols, before, format):
    for text in honest():
        if format == "react" and text.startswith("action:"):
            continue  # the format's own label
        for pieces in (None, list(before + text)):
            message = protocols.events(before + text, format, pieces)[-1].message
            assert (message.text, message.calls) == (before + text, ())


RECORDED = Path(__file__).resolve().parents[4] / "shared" / "recordings"


def rows(name):
    with gzip.open(RECORDED / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if isinstance(row.get("request"), dict) and isinstance(row.get("response"), dict):
                yield row["request"], row["response"]


def said_beside_tools():
    """What real models said in plain words to requests that offered them tools, with the tools."""
    for asked, said in rows("openai_chat"):
        tools = [one["function"] for one in asked.get("tools") or () if "function" in one]
        for choice in said.get("choices") or ():
            yield (choice.get("message") or {}).get("content"), tools, "parameters"
    for asked, said in rows("anthropic_messages"):
        for part in said.get("content") or ():
            yield part.get("text"), asked.get("tools") or (), "input_schema"
    for asked, said in rows("openai_responses"):
        tools = [one for one in asked.get("tools") or () if one.get("type") == "function"]
        for item in said.get("output") or ():
            for part in item.get("content") or () if item.get("type") == "message" else ():
                yield part.get("text"), tools, "parameters"
    for asked, said in rows("google_generate"):
        kits = [asked["tools"]] if isinstance(asked.get("tools"), dict) else asked.get("tools") or ()
        tools = [one for kit in kits for one in kit.get("functionDeclarations") or ()]
        for candidate in said.get("candidates") or ():
            for part in (candidate.get("content") or {}).get("parts") or ():
                yield part.get("text"), tools, "parameters"


@pytest.mark.skipif(not RECORDED.is_dir(), reason=f"the recordings are kept outside the repository, at {RECORDED}")
@pytest.mark.parametrize("format", FORMATS)
def test_what_recorded_models_said_beside_tools_is_no_call(protocols, format):
    read = 0
    for text, tools, schema in said_beside_tools():
        if isinstance(text, str) and text.strip() and tools:
            specs = tuple(ToolSpec(one["name"], "", one.get(schema) or {}) for one in tools if "name" in one)
            message = protocols.reply(text, format, tools=specs).message
            assert (message.text.strip(), message.calls) == (text.strip(), ()), text
            read += 1
    assert read > 100


@pytest.mark.skipif(not RECORDED.is_dir(), reason=f"the recordings are kept outside the repository, at {RECORDED}")
def test_what_recorded_tools_answered_is_no_call(protocols):
    """Pages, tables, code and messages that tools of recorded runs gave, said by a model that has these tools."""
    read = 0
    with gzip.open(RECORDED / "runs.jsonl.gz", "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            calls = json.loads(line)["calls"][:: 1 + number % 7]
            names = sorted({call["name"] for call in calls if call["name"].isidentifier()})
            schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
            tools = tuple(ToolSpec(name, "", schema) for name in names)
            for call in calls if number % 5 == 0 and tools else ():
                # A page that has a list of what may be called in it is no answer of a model.
                text = call["result"].strip()
                if text and "Observation" not in text:
                    read += 1
                    message = protocols.reply(text, ("json", "tags")[read % 2], tools=tools).message
                    assert message.calls == (), text
    assert read > 500


OWN = {
    "json": json.dumps({"name": "search", "arguments": ARGUMENTS}),
    "tags": f'<tool_call>{{"name": "search", "arguments": {BODY}}}</tool_call>',
}


@pytest.mark.parametrize("format", OWN)
def test_all_that_follows_a_final_answer_is_the_answer_in_every_format(protocols, format):
    for text in (
        f"Final Answer: {OWN[format]}",
        f"I looked.\n\n**Final Answer:**\n{OWN[format]}",
        f"Thought: so.\nFinal Answer: write\n\n{PYTHON}",
        f"It is done.\nFinal answer: write\n\n{PYTHON}",
    ):
        for pieces in (None, list(text)):
            message = protocols.events(text, format, pieces)[-1].message
            assert message.calls == ()
            assert message.text.endswith(text.partition("nswer:")[2].strip("* \n"))


@pytest.mark.parametrize("format", OWN)
def test_a_call_in_a_sentence_is_never_carried_out(protocols, format):
    for text in (
        f"To look it up I write {OWN[format]} and wait.",
        f"To look it up I write {OWN[format]}, and wait.",
        f"To look it up I write {OWN[format]}\n\nThen I wait.",
        f"{OWN[format]} is what I write.",
        f"Man schreibt {OWN[format]}; danach wartet man.",
        f"The call is {OWN[format]}.",
    ):
        for pieces in (None, list(text)):
            (call,) = protocols.events(text, format, pieces)[-1].message.calls
            assert (call.name, "in a sentence" in call.arguments) == ("invalid_call", True), text


@pytest.mark.parametrize("format", OWN)
def test_a_call_in_the_form_that_was_asked_for_is_made_on_a_line_of_its_own(protocols, format):
    made = [("search", ARGUMENTS)]
    for text, calls in (
        (f"I look.\n{OWN[format]}\nThen I wait.", made),
        (f"I look: {OWN[format]}", made),
        (f"I look: {OWN[format]}\n", made),
        (f"First {OWN[format]}\n{OWN[format]}", made * 2),
        (f"1. {OWN[format]}\n2. {OWN[format]}\nThat is all.", made * 2),
    ):
        for pieces in (None, list(text)):
            found = protocols.events(text, format, pieces)[-1].message.calls
            assert [(call.name, json.loads(call.arguments)) for call in found] == calls, text


MARKS = st.text(st.sampled_from("*_~`#>-+:;.|@!/$ \"'«»()[]{}<>=\n"), max_size=6)


@settings(max_examples=deep(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    format=st.sampled_from(FORMATS),
    before=MARKS,
    after=MARKS,
    core=st.sampled_from(
        [f"search {BODY}", PYTHON, "tool: search\nquery: x", "search", "search query=x", *READ.values()]
    ),
    words=st.sampled_from(["", "I look.\n", "So "]),
    data=st.data(),
)
def test_what_it_is_cut_into_decides_nothing(protocols, format, before, after, core, words, data):
    text = f"{words}{before}{core}{after}"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    whole = protocols.events(text, format)[-1]
    assert protocols.events(text, format, data.draw(st.sampled_from([pieces, list(text)])))[-1] == whole
