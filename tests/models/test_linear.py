"""Readers of what models and servers write take time linear in it, whatever was written.

Nothing is timed: a matcher of our own takes the steps that Python's `re` takes, and counts them, and a text counts the
characters that are copied or looked through. A hostile text of twice the length may take about twice the steps.
"""

import functools
import re
import sys
from re import _constants as op
from re import _parser as parser
from types import SimpleNamespace

import msgspec
import pytest
from depth import deep
from hypothesis import HealthCheck, given, settings
from hypothesis import example as among
from hypothesis import strategies as st

from treadle.kernel.messages import ToolSpec
from treadle.models import failures, retry_after
from treadle.models.text_tools import (
    attempt,
    fences,
    loose,
    named,
    neighbours,
    pairs,
    peeled,
    python,
    react,
    reader,
    tags,
    wrappings,
)
from treadle.models.text_tools import json as json_format
from treadle.models.text_tools.manual import example
from treadle.models.text_tools.model import _form
from treadle.models.text_tools.pieces import Offer

MODULES = (
    attempt,
    fences,
    json_format,
    loose,
    neighbours,
    python,
    react,
    reader,
    tags,
    named,
    pairs,
    peeled,
    wrappings,
    failures,
    retry_after,
)


SINGLE = frozenset({op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN, op.RANGE, op.CATEGORY})
"""What takes one character."""
FOLD, LINES, DOT_ALL = int(re.IGNORECASE), int(re.MULTILINE), int(re.DOTALL)


@functools.cache
def tree_of(pattern):
    return made_of(parser.parse(pattern.pattern, pattern.flags).data, pattern.flags)


def made_of(data, flags):
    """The nodes of a pattern: what each is, what is in it, and the characters that it takes if it takes one."""
    made = []
    for kind, value in data:
        taken = Taken(kind, value, flags) if kind in SINGLE else None
        match kind:
            case op.BRANCH:
                value = tuple(made_of(branch.data, flags) for branch in value[1])
            case op.SUBPATTERN:
                value = value[0], made_of(value[3].data, flags)
            case op.ATOMIC_GROUP:
                value = made_of(value.data, flags)
            case op.MAX_REPEAT | op.POSSESSIVE_REPEAT | op.MIN_REPEAT:
                value = value[0], value[1], made_of(value[2].data, flags)
            case op.ASSERT | op.ASSERT_NOT:
                value = value[1].getwidth()[0] if value[0] < 0 else 0, made_of(value[1].data, flags)
        made.append((kind, value, taken))
    return tuple(made)


class Taken(dict):
    """Whether a place of a pattern takes a character, found once for each; the end of a text, "", no place takes."""

    def __init__(self, kind, value, flags):
        super().__init__({"": False})
        self.place = kind, value, flags

    def __missing__(self, char):
        kind, value, flags = self.place
        found = self[char] = takes(kind, value, char, flags)
        return found


def takes(kind, value, char, flags):
    if kind is op.ANY:
        return char != "\n" or bool(flags & DOT_ALL)
    if kind is op.IN:
        negate = value[0][0] is op.NEGATE
        return negate != any(is_in(char, *item, flags) for item in value[negate:])
    return is_in(char, op.LITERAL, value, flags) == (kind is op.LITERAL)


def is_in(char, kind, value, flags):
    chars = {char, char.lower(), char.upper()} if flags & FOLD else {char}
    if kind is op.LITERAL:
        return any(ord(one) == value for one in chars if len(one) == 1)
    if kind is op.RANGE:
        return any(value[0] <= ord(one) <= value[1] for one in chars if len(one) == 1)
    name = str(value)
    found = char.isspace() if "SPACE" in name else char.isdigit() if "DIGIT" in name else char.isalnum() or char == "_"
    return found != ("NOT" in name)


class Steps:
    """A count of steps, and the matcher that takes them."""

    def __init__(self):
        self.count, self.known = 0, {}

    def search(self, pattern, text, at, end):
        text = str(text)
        for start in range(at, end + 1):
            self.count += 1
            found = self.tried(pattern, text, start, end)
            if found is not None:
                return start, found
        return None

    def match(self, pattern, text, at, end, to_end=False):
        found = self.tried(pattern, str(text), at, end, to_end)
        return None if found is None else (at, found)

    def tried(self, pattern, text, at, end, to_end=False):
        """Where a match at a place ends, or None; what is asked again takes as many steps, and is not worked out."""
        tree = tree_of(pattern)
        attempt = Matching(self, text, end, pattern.flags)
        if attempt.fails(tree, 0, at):
            return None
        asked = pattern, text, at, end, to_end
        if asked not in self.known:
            before = self.count
            found = attempt.run(tree, 0, at, (lambda to: to if to == end else None) if to_end else lambda to: to)
            self.known[asked] = found, self.count - before
            return found
        found, count = self.known[asked]
        self.count += count
        return found


class Matching:
    """One attempt, backtracking as `re` does."""

    def __init__(self, steps, text, end, flags):
        self.steps, self.text, self.end, self.flags = steps, text, end, flags
        self.groups = {}

    def run(self, nodes, index, at, then):
        steps, text, end = self.steps, self.text, self.end
        while index < len(nodes):
            steps.count += 1
            kind, value, taken = nodes[index]
            if taken is None:
                break
            steps.count += 1
            if not taken[text[at] if at < end else ""]:
                return None
            index, at = index + 1, at + 1
        else:
            return then(at)

        # No partial: through C, Python 3.12 counts a call against a limit that nothing sets.
        def rest(to):
            return self.run(nodes, index + 1, to, then)

        match kind:
            case op.BRANCH:
                for branch in value:
                    if not self.fails(branch, 0, at):
                        found = self.run(branch, 0, at, rest)
                        if found is not None:
                            return found
                return None
            case op.SUBPATTERN:
                return self.group(*value, at, rest)
            case op.ATOMIC_GROUP:
                to = self.run(value, 0, at, lambda to: to)
                return None if to is None else rest(to)
            case op.MAX_REPEAT | op.POSSESSIVE_REPEAT | op.MIN_REPEAT:
                if len(value[2]) == 1 and value[2][0][2] is not None:
                    return self.repeat_one(kind, *value, at, rest, nodes, index + 1)
                return self.repeat(kind, *value, at, rest)
            case op.ASSERT | op.ASSERT_NOT:
                start = at - value[0]
                found = None if start < 0 else self.run(value[1], 0, start, lambda to: to)
                return rest(at) if (found is None) == (kind is op.ASSERT_NOT) else None
            case op.GROUPREF:
                start, to = self.groups.get(value, (0, 0))
                size = to - start
                self.steps.count += size
                return rest(at + size) if self.text[start:to] == self.text[at : at + size] else None
            case op.AT:
                return rest(at) if self.place(value, at) else None
        raise NotImplementedError(kind)

    def fails(self, nodes, index, at):
        """Whether the first of the nodes takes one character, and not the one that is there: the steps are taken."""
        if index == len(nodes) or (taken := nodes[index][2]) is None:
            return False
        if taken[self.text[at] if at < self.end else ""]:
            return False
        self.steps.count += 2
        return True

    def group(self, number, inner, at, rest):
        before = self.groups.get(number)

        def after(to):
            self.groups[number] = (at, to)
            return rest(to)

        found = self.run(inner, 0, at, after)
        if found is None and before is not None:
            self.groups[number] = before
        return found

    def repeat_one(self, kind, least, most, inner, at, rest, nodes, index):
        steps, text, end, taken = self.steps, self.text, self.end, inner[0][2]
        if kind is op.MIN_REPEAT:
            for count in range(min(most, end - at) + 1):
                if count >= least and (found := rest(at + count)) is not None:
                    return found
                steps.count += 1
                if not taken[text[at + count] if at + count < end else ""]:
                    return None
            return None
        count, last = 0, min(most, end - at)
        while count < last and taken[text[at + count]]:
            count += 1
        steps.count += count + (count < most)
        if kind is op.POSSESSIVE_REPEAT:
            return rest(at + count) if count >= least else None
        for tried in range(count, least - 1, -1):
            if not self.fails(nodes, index, at + tried) and (found := rest(at + tried)) is not None:
                return found
        return None

    def repeat(self, kind, least, most, inner, at, rest):
        if kind is op.POSSESSIVE_REPEAT:
            count = 0
            while count < most:
                to = self.run(inner, 0, at, lambda to: to)
                if to is None or to == at:
                    break
                at, count = to, count + 1
            return rest(at) if count >= least else None

        def again(count, at):
            more = None
            if kind is op.MIN_REPEAT and count >= least and (found := rest(at)) is not None:
                return found
            if count < most and not self.fails(inner, 0, at):
                more = self.run(inner, 0, at, lambda to: again(count + 1, to) if to > at else None)
            if more is None and kind is op.MAX_REPEAT and count >= least:
                return rest(at)
            return more

        return again(0, at)

    def place(self, kind, at):
        if kind is op.AT_BEGINNING_STRING:
            return at == 0
        if kind is op.AT_BEGINNING:
            return at == 0 or (bool(self.flags & LINES) and self.text[at - 1] == "\n")
        if kind is op.AT_END_STRING:
            return at == self.end
        if kind is op.AT_END:
            return at == self.end or self.text[at:] == "\n"
        before = at > 0 and (self.text[at - 1].isalnum() or self.text[at - 1] == "_")
        after = at < self.end and (self.text[at].isalnum() or self.text[at] == "_")
        return (before != after) == (kind is op.AT_BOUNDARY)


class Counted:
    """A pattern whose steps are counted; what it finds is what `re` finds, and must be what our matcher finds."""

    def __init__(self, pattern, steps):
        self.real, self.steps, self.pattern = pattern, steps, pattern.pattern

    def search(self, text, at=0, end=sys.maxsize):
        found, counted = self.real.search(text, at, end), self.steps.search(self.real, text, at, min(end, len(text)))
        assert (None if found is None else found.span()) == counted, (self.pattern, str(text), at)
        return found

    def match(self, text, at=0, end=sys.maxsize):
        found, counted = self.real.match(text, at, end), self.steps.match(self.real, text, at, min(end, len(text)))
        assert (None if found is None else found.span()) == counted, (self.pattern, str(text), at)
        return found

    def fullmatch(self, text, at=0, end=sys.maxsize):
        self.steps.match(self.real, text, at, min(end, len(text)), to_end=True)
        return self.real.fullmatch(text, at, end)

    def finditer(self, text, at=0, end=sys.maxsize):
        for found in self.real.finditer(text, at, end):
            self.steps.search(self.real, text, at, min(end, len(text)))
            at = found.end() + (found.end() == found.start())
            yield found
        if at <= len(text):
            self.steps.search(self.real, text, at, min(end, len(text)))

    def sub(self, new, text):
        for _ in self.finditer(text):
            pass
        return self.real.sub(new, text)

    def findall(self, text):
        for _ in self.finditer(text):
            pass
        return self.real.findall(text)

    def split(self, text):
        return self.real.split(text)


class Json:
    """The part of msgspec that reads, which takes no text but Python's own."""

    def decode(self, text, **how):
        return msgspec.json.decode(str(text), **how)

    def __getattr__(self, name):
        return getattr(msgspec.json, name)


class Regex:
    """The module `re`, as the readers see it."""

    def __init__(self, steps):
        self.steps = steps

    def __getattr__(self, name):
        return getattr(re, name)

    def compile(self, pattern, flags=0):
        return Counted(re.compile(pattern, flags), self.steps)

    def search(self, pattern, text, flags=0):
        return self.compile(pattern, flags).search(text)

    def sub(self, pattern, new, text, flags=0):
        return self.compile(pattern, flags).sub(new, text)


def seen_by(steps):
    """A type of text that counts the characters which are copied or looked through."""

    class Seen(str):
        __slots__ = ()

        def __getitem__(self, key):
            found = str.__getitem__(self, key)
            steps.count += len(found)
            return Seen(found)

        def find(self, what, *place):
            found = str.find(self, what, *place)
            steps.count += (len(self) if found < 0 else found + len(what)) - (place[0] if place else 0)
            return found

        def rfind(self, what, *place):
            found = str.rfind(self, what, *place)
            steps.count += (place[1] if len(place) > 1 else len(self)) - max(found, place[0] if place else 0)
            return found

    def through(name):
        def method(self, *given):
            steps.count += len(self)
            made = getattr(str, name)(self, *given)
            return Seen(made) if isinstance(made, str) else made

        return method

    for name in (
        "strip",
        "lstrip",
        "rstrip",
        "lower",
        "casefold",
        "replace",
        "partition",
        "split",
        "encode",
        "isspace",
    ):
        setattr(Seen, name, through(name))
    return Seen


@pytest.fixture
def steps(monkeypatch):
    count = Steps()
    seen = seen_by(count)
    counted = functools.cache(lambda pattern: Counted(pattern, count))
    for module in MODULES:
        monkeypatch.setattr(module, "re", Regex(count), raising=False)
        monkeypatch.setattr(module, "msgspec", SimpleNamespace(json=Json(), Raw=msgspec.Raw), raising=False)
        for holder in (module, *(one for one in vars(module).values() if isinstance(one, type))):
            for name, value in list(vars(holder).items()):
                if isinstance(value, re.Pattern):
                    monkeypatch.setattr(holder, name, counted(value))
                elif isinstance(value, tuple) and value and isinstance(value[0], tuple):
                    made = tuple(tuple(counted(x) if isinstance(x, re.Pattern) else x for x in row) for row in value)
                    monkeypatch.setattr(holder, name, made)
    for holder in (json_format._JsonScanner, tags._TagsScanner, react._ReactScanner, wrappings.Wrappings):
        read = holder.read
        monkeypatch.setattr(
            holder,
            "read",
            lambda self, text, *given, read=read, **asked: read(self, seen(text), *given, **asked),
        )
    # What is tried a few times only is tried less often, and what is held back is read again less often, so that a text
    # need not be as long before it shows that both are bounded.
    monkeypatch.setattr(reader, "_EAGERNESS", 4)
    monkeypatch.setattr(neighbours, "_EAGERNESS", 4)
    for module in (json_format, tags, react):
        monkeypatch.setattr(module, "_MOST_UNCLOSED", 2)
    for module in (wrappings, peeled):
        monkeypatch.setattr(module, "_MOST_FAILURES", 2)
    monkeypatch.setattr(loose, "_DEEPEST", 40)
    tags._next_of.cache_clear()
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    yield count
    sys.setrecursionlimit(limit)
    tags._next_of.cache_clear()


OFFER = Offer(
    {
        "search": ToolSpec("search", "", {"properties": {"query": {"type": "string"}}, "required": ["query"]}),
        "add": ToolSpec("add", "", {"properties": {"a": {"type": "number"}, "b": {"type": "number"}}}),
    }
)


def read(format, pieces):
    form = _form(format)
    one = reader.Reader(form, OFFER, reader.Names("", 0), example(form, OFFER))
    for piece in pieces:
        one.feed(piece)
    one.close(complete=True)


def grows_linearly(steps, work, unit, prefix="", suffix="", length=220):
    """Whether `work` on twice the text takes about twice the steps. What is bounded by a number has been by then."""
    times = max(length // len(unit), 10)
    # An odd number of quotes may be dearer than an even one, and some bounds are reached later.
    for first in (times, 2 * times, 8 * times):
        taken = []
        for count in (first, 2 * first):
            steps.count = 0
            work(prefix + unit * count + suffix)
            taken.append(steps.count)
        if taken[1] <= 2.4 * taken[0] + 3000:
            return
    assert taken[1] <= 2.4 * taken[0] + 3000, taken


UNITS = [
    *("<function=", "<tool name=", '<tool name="a">', "<tool_call>", "<tool_call>{", '<tool_call>{"', "<tool_call>["),
    *("<parameter=a", '\n<invoke name="search"><parameter name=a>', "\n<tool_call>\nx", "<", "<a", "</tool", "\n<tool"),
    *("{", '{"a":', "[{", '{"', "{'", "[", "[ ", "{\n", '{"name":"search","arguments":', '{"args": ', "args ", "args:"),
    *("`", "```", "``` ", "```\n", "```json ", "```json\n{", "~", "~~~\n", "`a", "`a\n", "```python\nsearch("),
    *(" ", "\t", "\n", " \n", "- ", "\n- ", "1. ", "> ", "\n> ", "*", "#", "_", "1", "a", "a ", "ab.", "-"),
    *(
        "Action:",
        "\nAction:",
        "\nAction: a",
        "\nAction: search(",
        "\nAction: search[",
        "\nAction ",
        "\nAction: search('",
    ),
    *("\nAction: search\nAction Input: {", '\nAction: search\nAction Input: {"', "\n- Action: search", "\nThought: "),
    *(
        "\nObservation:",
        "\nFinal Answer",
        "\nsearch(",
        '\nsearch("',
        "\nsearch[",
        "\nsearch{",
        "\nsearch\n",
        "[search(",
    ),
    *("\n[TOOL_CALLS]", "\n[TOOL_CALLS] [", "'", '"', "\\", "/*", "/", "//", "'''", '"""', "r'", "<think>", "</think"),
    *(
        "result of a",
        "\nTool: search\n",
        "\nprint(",
        "\n<search>",
        "\n<search><query>",
        "\ncall ",
        "\nto=search",
        "\nTool: search\nInput: {",
        "\nresult of a",
        "\ntool:\n",
        "\ntool: search\nquery: x\n",
        "\ntool: search\nquery: x\n  more",
        "\nsearch: query: ",
        "\nsearch --limit ",
        "\n**search(",
        "\n@search {",
        '\n"search(',
        "\nuse tool ",
        "\nsearch with arguments ",
        '\n{"name": "search", "arguments": {"query": "x"}}',
        "\nsearch('x')",
        "},",
        ")",
    ),
]
PREFIXES = [
    *(
        "",
        "Action: search(",
        '{"name":"search","arguments":{"query":"',
        "```json\n",
        "<tool_call>",
        "<function=search>",
    ),
    *(
        "Action: search\nAction Input: ",
        "<think>",
        "search(",
        "search[",
        "Action",
        "{",
        "```",
        "result of ",
        "Thought: ",
    ),
    *(
        '{"name":"search","arguments":{"query":"x"}}',
        "- ",
        "`",
        "[TOOL_CALLS]",
        '<tool name="search"><parameter=query>',
    ),
]


@pytest.mark.parametrize("format", ["json", "react", "tags"])
@pytest.mark.parametrize("unit", UNITS)
def test_a_reply_of_any_kind_is_read_in_linear_time(steps, format, unit):
    grows_linearly(steps, lambda text: read(format, [text]), unit)


@settings(
    max_examples=deep(50),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    format=st.sampled_from(["json", "react", "tags"]),
    prefix=st.sampled_from(PREFIXES),
    units=st.lists(st.sampled_from(UNITS), min_size=1, max_size=2).map("".join),
    suffix=st.sampled_from(["", "\nx", "}", ")", "```", "\n"]),
)
@among(format="json", prefix="", units="[search(\nsearch: query: ", suffix="")
@among(format="react", prefix="<tool_call>", units="\ntool: search\nquery: x\n<tool_call>", suffix="")
def test_a_reply_made_of_any_parts_is_read_in_linear_time(steps, format, prefix, units, suffix):
    # Hypothesis sets a limit of its own for each example.
    sys.setrecursionlimit(100_000)
    grows_linearly(steps, lambda text: read(format, [text]), units, prefix, suffix)


@pytest.mark.parametrize("format", ["json", "react", "tags"])
@pytest.mark.parametrize("unit", ["a", "word ", "{", '{"', "<tool_call>{", "\nAction: search[", "\n```json\n{", " "])
def test_a_reply_that_comes_in_pieces_is_read_in_linear_time(steps, format, unit):
    def in_pieces(text):
        read(format, [text[at : at + 20] for at in range(0, len(text), 20)])

    grows_linearly(steps, in_pieces, unit, length=480)


@pytest.mark.parametrize(
    "unit", ["a", "-", "_", "a-", "*", "**", "sk-", "key-", "Bearer ", "key ", "a.", "token: ", " "]
)
def test_an_error_is_redacted_in_linear_time(steps, unit):
    for key in ("", "secret", "a-long-secret"):
        grows_linearly(steps, lambda text, key=key: failures.redact(text, key), unit)


@pytest.mark.parametrize(
    "unit",
    ["<title", "<title>", "<h1>", "<script", "<script>", "<style>", "<", "<a", "< >", " ", "</title", "<script></"],
)
def test_the_title_of_a_page_is_found_in_linear_time(steps, unit):
    grows_linearly(steps, failures.page_title, unit, "<html>")


@pytest.mark.parametrize("unit", ["1", "1.", "1.1", "1h", "1m ", "retry after 1", "try again in 1.1"])
def test_how_long_to_wait_is_found_in_linear_time(steps, unit):
    def asked(text):
        retry_after.retry_after({"retry-after": f"{text}x"}, f"try again in {text}")

    grows_linearly(steps, asked, unit)
