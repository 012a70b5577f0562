"""A journal's redact function is given every text before it is written, and nothing gets past it when it raises."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import msgspec
import msgspec.inspect as kinds
import pytest
from msgspec import Struct

from treadle import Agent, Budget, MemoryJournal, RunResult, SqliteJournal, tool
from treadle.journal import EventNotStorable, JournalError, PostgresJournal, RedactionFailed
from treadle.journal.redaction import ARGUMENTS, KEPT, redacted
from treadle.kernel.events import (
    ApprovalDecided,
    ApprovalRequested,
    Event,
    ModelReplied,
    NudgeGiven,
    RunFinished,
    RunForked,
    RunResumed,
    RunStarted,
    ToolFinished,
    ToolReacted,
    encode_event,
)
from treadle.kernel.messages import AssistantMessage, File, Opaque, Thinking, ToolCall
from treadle.kernel.stop import Decision, stopped
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

Made = Callable[..., MemoryJournal | SqliteJournal | PostgresJournal]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def made(request: pytest.FixtureRequest, path: Path) -> Made:
    """Makes a journal with some redact function."""
    if request.param == "memory":
        return lambda redact: MemoryJournal(redact=redact)
    if request.param == "sqlite":
        return lambda redact: SqliteJournal(path, redact=redact)
    server, schema = request.getfixturevalue("server"), request.getfixturevalue("schema")
    return lambda redact: PostgresJournal(server.dsn(), schema=schema, redact=redact)


def hide(text: str) -> str:
    return text.replace("secret", "[gone]")


def value(kind: Any, name: str) -> Any:
    """A value of this kind in which each text is `name`, and names its place."""
    match kind:
        case kinds.StructType():
            one_of = {"url"} if kind.cls.__name__ in ("Image", "File") else set()
            fields = [one for one in kind.fields if not (one_of and one.name == "data")]
            return kind.cls(**{one.name: value(one.type, f"{kind.cls.__name__}.{one.name}") for one in fields})
        case kinds.UnionType():
            first = [one for one in kind.types if isinstance(one, kinds.VarTupleType)] or list(kind.types)
            return value(next(one for one in first if not isinstance(one, kinds.NoneType)), name)
        case kinds.VarTupleType():
            item = kind.item_type
            return tuple(value(one, name) for one in (item.types if isinstance(item, kinds.UnionType) else (item,)))
        case kinds.TupleType():
            return tuple(value(one, name) for one in kind.item_types)
        case kinds.StrType():
            return json.dumps({"field": [f"<{name}>"]}) if name.endswith(".arguments") else f"<{name}>"
        case kinds.LiteralType():
            return kind.values[0]
        case kinds.DictType() | kinds.AnyType():
            return {f"<{name}>": [f"<{name}>", 1, None]}
        case kinds.DecimalType():
            return Decimal(1)
        case kinds.BoolType():
            return True
        case kinds.IntType() | kinds.FloatType():
            return 1
    raise AssertionError(f"no value is known of {kind}")


def structs(one: Any) -> Iterator[Struct]:
    if isinstance(one, Struct):
        yield one
        for name in one.__struct_fields__:
            yield from structs(getattr(one, name))
    elif isinstance(one, tuple):
        for each in one:
            yield from structs(each)


@pytest.mark.parametrize("event", get_args(Event), ids=lambda event: event.__name__)
def test_every_text_is_passed_through_it_but_those_that_are_listed(event: type[Struct]) -> None:
    full = value(kinds.type_info(event), event.__name__)
    passed: set[str] = set()

    def redact(text: str) -> str:
        passed.add(text)
        return "[gone]"

    (after,) = redacted("r", 0, [full], redact, "here")
    fields = {(type(one), name) for one in structs(full) for name in one.__struct_fields__}
    kept = {f"<{kind.__name__}.{name}>" for kind, name in fields if name in KEPT.get(kind, ())}
    expected = {text for text in strings(msgspec.to_builtins(full)) if text.startswith("<")}
    assert passed == expected - kept
    left = {text for text in strings(msgspec.to_builtins(after)) if text.startswith("<")}
    spoilt = {"<Thinking.signature>", "<Thinking.data>", "<Thinking.id>", "<Opaque.provider>"}
    assert left == (expected & kept) - spoilt
    assert json.loads(encode_event(after))


def strings(one: Any) -> Iterator[str]:
    """Each text in plain data; of arguments those in their JSON."""
    if isinstance(one, str):
        if one.startswith('{"field"'):
            yield from strings(json.loads(one)["field"])
        else:
            yield one
    elif isinstance(one, dict):
        for name, each in one.items():
            yield from strings(name)
            yield from strings(each)
    elif isinstance(one, (list, tuple)):
        for each in one:
            yield from strings(each)


NAMES = {
    "agent", "call_id", "early", "id", "item_id", "model", "provider", "request_id", "run_id", "taken", "tool_choice",
    "tools",
}  # fmt: skip


def test_ids_names_and_fixed_words_are_listed() -> None:
    todo, seen = [kinds.type_info(event) for event in get_args(Event)], set()
    while todo:
        kind = todo.pop()
        for one in kind.fields if isinstance(kind, kinds.StructType) and kind.cls not in seen else ():
            words = [each for each in parts(one.type) if isinstance(each, kinds.LiteralType)]
            if one.name in NAMES or any(isinstance(word, str) for each in words for word in each.values):
                assert one.name in KEPT.get(kind.cls, ()), (kind.cls, one.name)
            todo += [each for each in parts(one.type) if isinstance(each, kinds.StructType)]
        seen.add(getattr(kind, "cls", None))


SAID = {
    "advice", "answer", "app", "arguments", "bound", "changed", "content", "description", "detail", "edited", "extra",
    "finish_detail", "found", "input_schema", "instructions", "message", "note", "output", "output_schema", "question",
    "raised", "text", "url", "value", "whole",
}  # fmt: skip
"""What somebody said, wherever it stands: a person, a model, a tool, a server, an error."""

SAID_HERE = {
    (ApprovalDecided, "reason"), (ApprovalRequested, "reason"), (ToolReacted, "reason"), (Decision, "why"),
    (File, "name"),
}  # fmt: skip
"""What is said there, and is a name or a fixed word elsewhere."""


def test_nothing_that_somebody_says_is_listed() -> None:
    """The tests above believe the list: a field that was added to it by mistake was kept, and no test failed."""
    listed = {(kind, name) for kind, names in KEPT.items() for name in names}
    assert not listed & SAID_HERE
    assert not {(kind, name) for kind, name in listed if name in SAID}


async def test_the_call_that_a_fork_has_another_result_of_is_known_by_its_id_where_that_looks_like_a_secret() -> None:
    """It was passed, so that the run could be forked no more."""
    journal = MemoryJournal(redact=lambda text: text.replace("call_", "[gone]"))
    below = Agent(ScriptedModel(["found"]), name="below").as_tool()
    model = ScriptedModel(lambda asked: "done" if asked.step else [("below", {"task": "look"})])
    agent = Agent(model, tools=[below], journal=journal)
    first = await agent.run("go")
    (made,) = first.tool_calls_made
    fork = await agent.fork(first.run_id, at=1, tool_results={made.id: "another"})
    (forked,) = [one for one in await journal.read(fork.run_id) if isinstance(one, RunForked)]
    assert (fork.text, list(forked.taken)) == ("done", [made.id])


async def test_the_budgets_that_a_run_is_taken_up_under_are_names_like_its_hooks() -> None:
    """They were passed, as no other hook is: who took it up again knew of none of them that it had been under it."""
    journal = MemoryJournal(redact=lambda text: "[gone]")
    agent, _ = asked(journal, [("pay", {"to": "Ann"})], "done")
    first = await agent.run("Pay.", budget=Budget(tokens=10_000, name="first"))
    more = [Budget(tokens=10_000, name="first"), Budget(tokens=10_000, name="second")]
    await agent.resume(first.run_id, approve=first.pending, budget=more)
    events = await journal.read(first.run_id)
    (begun,) = [one for one in events if isinstance(one, RunStarted)]
    (resumed,) = [one for one in events if isinstance(one, RunResumed)]
    assert [one for one in begun.hooks or () if one.startswith("budget")] == ["budget all first"]
    assert resumed.budgets == ("budget all second",)


def parts(kind: Any) -> Iterator[Any]:
    """The kinds that a kind is made of."""
    yield kind
    for name in ("types", "item_types"):
        for one in getattr(kind, name, None) or ():
            yield from parts(one)
    if (one := getattr(kind, "item_type", None)) is not None:
        yield from parts(one)


def test_what_is_listed_is_there() -> None:
    for kind, names in KEPT.items():
        assert names <= set(kind.__struct_fields__), kind
    assert all("arguments" in kind.__struct_fields__ for kind in ARGUMENTS)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"secret": "the secret", "n": 1.50, "big": 123456789012345678901}', None),
        ('{ "a" :\n"secret"}', '{ "a" :\n"[gone]"}'),
        (r'{"a": "\u0073ecret \"x\""}', '{"a": "[gone] \\"x\\""}'),
        ('{"a": {"secret": ["secret", "secret"]}}', '{"a": {"secret": ["[gone]", "[gone]"]}}'),
        ('{"a": "secret', '{"a": "[gone]'),
        ('"secret"', '"[gone]"'),
        ("", ""),
    ],
)
def test_the_texts_in_arguments_are_passed_and_all_else_stays_as_it_was_written(before: str, after: str | None) -> None:
    said = ToolFinished(step=0, call_id="c", content="")
    call = ToolCall("c", "secret", before)
    reply = ModelReplied(step=0, message=AssistantMessage((call,)))
    found = redacted("r", 0, [reply, said], hide, "here")
    expected = after if after is not None else before.replace("the secret", "the [gone]")
    assert found == [ModelReplied(step=0, message=AssistantMessage((ToolCall("c", "secret", expected),))), said]


@pytest.mark.parametrize("held", [dict, lambda data: Opaque("someone", {"type": "found", "given": data})])
def test_of_data_under_keys_that_become_one_none_is_lost(held: Callable[[Any], Any]) -> None:
    data = {"anna@x.de": 1, "bert@x.de": {"dora@x.de": 2, "emil@x.de": 3}}
    event = ToolFinished(0, "a", "", app=held(data))
    (kept,) = redacted("r", 0, [event], lambda text: re.sub(r"\w+@\S+", "[email]", text), "here")
    assert isinstance(kept, ToolFinished)
    assert kept.app == held({"[email]": 1, "[email]?": {"[email]": 2, "[email]?": 3}})


def test_thinking_that_is_changed_loses_what_its_provider_signed() -> None:
    same = Thinking("nothing", "sig", "data", "id")
    message = AssistantMessage((Thinking("the secret", "sig", "data", "id"), same))
    (after,) = redacted("r", 0, [ModelReplied(step=0, message=message)], hide, "here")
    assert isinstance(after, ModelReplied)
    assert after.message.content == (Thinking("the [gone]"), same)


@tool(effect="read")
def look(what: str) -> str:
    """Looks."""
    return f"a secret about {what}"


@tool(needs_approval=True)
def pay(to: str) -> str:
    """Pays."""
    return f"paid the secret {to}"


def asked(journal: Any, *turns: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(turns)
    return Agent(model, tools=[look, pay], journal=journal, instructions="keep the secret"), model


async def test_no_text_of_a_run_is_written_as_it_was(made: Made) -> None:
    journal = made(hide)
    turns = [("my secret", [("look", {"what": "secret"})]), [("pay", {"to": "secret"})], "the secret is out"]
    agent, model = asked(journal, *turns)
    first: RunResult = await agent.run("what is the secret?")
    # The run under way works with what there is.
    assert "a secret about secret" in str(model.requests[-1].messages)
    events = await journal.read(first.run_id)
    assert "secret" not in b"".join(map(encode_event, events)).decode()
    (line,) = await journal.list()
    assert line.question == "what is the [gone]?"
    result = await agent.resume(first.run_id, approve=[first.pending[0].call_id])
    # Who takes it up has what is in the journal.
    assert "secret" not in str(model.requests[-1].messages[:-1])
    assert "a [gone] about [gone]" in str(model.requests[-1].messages)
    assert result.text == "the secret is out"
    assert "secret" not in b"".join(map(encode_event, await journal.read(first.run_id))).decode()
    await journal.close()


async def test_no_byte_of_what_was_taken_out_is_in_the_file(path: Path) -> None:
    async with SqliteJournal(path, redact=hide) as journal:
        agent, _ = asked(journal, [("look", {"what": "secret"})], "secret " * 3000)
        await agent.run("secret?")
        assert not any(b"secret" in file.read_bytes() for file in path.parent.iterdir())


def raises(text: str) -> str:
    if "secret" in text:
        raise ValueError(f"cannot take {text}")
    return text


def cancels(text: str) -> str:
    if "secret" in text:
        raise asyncio.CancelledError
    return text


def answers(text: str) -> Any:
    return None if "secret" in text else text


@pytest.mark.parametrize("redact", [raises, cancels, answers])
async def test_a_function_that_raises_ends_the_run_aloud_and_nothing_is_written(
    made: Made, started: Callable[..., RunStarted], redact: Any
) -> None:
    journal = made(redact)
    agent = Agent(ScriptedModel([[("look", {"what": "it"})], "never"]), tools=[look], journal=journal)
    with pytest.raises(RedactionFailed, match=r"event \d+ \(ToolFinished\) of run '.*' was not written") as caught:
        await agent.run("what?")
    assert "cannot take" not in str(caught.value)
    assert caught.value.__cause__ is not None
    assert isinstance(caught.value, JournalError)
    (line,) = await journal.list()
    assert line.status == "running"
    assert "secret" not in b"".join(map(encode_event, await journal.read(line.run_id))).decode()
    journal.redact = hide
    result = await agent.resume(line.run_id)
    assert result.finished
    await journal.close()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_what_a_fork_begins_with_is_passed_too(kind: str, path: Path, started: Callable[..., RunStarted]) -> None:
    journal = MemoryJournal(redact=hide) if kind == "memory" else SqliteJournal(path, redact=hide)
    await journal.append("secret-run", 0, [started("secret-run", question="the secret")])
    await journal.fork("secret-run", 1, "secret-fork", [RunForked("secret-fork", at=2.0), NudgeGiven(text="secret")])
    (*_, begun, said) = await journal.read("secret-fork")
    assert (begun, said) == (RunForked("secret-fork", at=2.0), NudgeGiven(text="[gone]"))
    await journal.close()


async def test_what_cannot_be_stored_says_so(path: Path, started: Callable[..., RunStarted]) -> None:
    async with SqliteJournal(path, redact=lambda text: "\udcff") as journal:
        with pytest.raises(EventNotStorable):
            await journal.append("r", 0, [started()])


async def test_nothing_is_changed_where_nothing_is_to_hide(made: Made, started: Callable[..., RunStarted]) -> None:
    journal, events = made(lambda text: text), [started(), NudgeGiven(text="x"), RunFinished(stop=stopped("answered"))]
    await journal.append("r", 0, events)
    assert await journal.read("r") == events
    await journal.close()


CARD = "4111111111111111"
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": f"srvtoolu_{CARD}",
    "content": [{"type": "web_search_result", "title": f"Card {CARD}", "encrypted_content": f"Eq{CARD}", "url": "u"}],
}
CITED = {"type": "text", "text": CARD, "citations": [{"cited_text": CARD, "encrypted_index": f"Eo{CARD}"}]}
SIGNED = {"type": "reasoning.text", "text": "It is none.", "signature": f"s{CARD}", "index": 1}
SEALED = {"message": {"reasoning_details": [{"type": "reasoning.encrypted", "data": f"Eq{CARD}", "id": "r"}]}}
RUNS = {
    "type": "code_interpreter_call",
    "id": "ci",
    "container_id": f"cntr_{CARD}",
    "outputs": [{"file_id": f"f{CARD}"}],
}
RUN = {"type": "code_execution_tool_result", "content": {"type": "x", "encrypted_stdout": f"Eq{CARD}"}}
KEPT_OF_CALL = {"message": {}, "calls": {f"call_{CARD}": {"thought_signature": "s"}}}
LABELLED = {"type": "file_search_call", "results": [{"file_id": "f", "attributes": {"id": CARD, "type": CARD}}]}
DETAILS = [SIGNED | {"text": f"It is {CARD}.", "index": 0}, SIGNED]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (FOUND, FOUND | {"content": [FOUND["content"][0] | {"title": "Card [card]"}]}),
        (CITED, CITED | {"text": "[card]", "citations": [{"cited_text": "[card]", "encrypted_index": f"Eo{CARD}"}]}),
        (
            {"message": {"reasoning_details": DETAILS}},
            {
                "message": {
                    "reasoning_details": [{"type": "reasoning.text", "text": "It is [card].", "index": 0}, DETAILS[1]]
                }
            },
        ),
        (SEALED, SEALED),
        (RUN, RUN),
        (RUNS | {"code": CARD}, RUNS | {"code": "[card]"}),
        (
            {"toolUse": {"toolUseId": CARD, "input": {"id": CARD}}},
            {"toolUse": {"toolUseId": CARD, "input": {"id": "[card]"}}},
        ),
        (KEPT_OF_CALL, KEPT_OF_CALL),
        (LABELLED, LABELLED | {"results": [{"file_id": "f", "attributes": {"id": "[card]", "type": "[card]"}}]}),
    ],
    ids=[
        "found in the web",
        "cited",
        "thinking",
        "sealed thinking",
        "run",
        "runs",
        "used",
        "kept of a call",
        "labels of a file",
    ],
)
def test_what_a_provider_encrypted_or_signed_is_not_spoilt_in_what_only_it_understands(
    value: Any, written: Any
) -> None:
    """Each went back with a piece of its seal replaced, or with a seal that is of other words: it is refused."""
    reply = ModelReplied(step=0, message=AssistantMessage((Opaque("p", value),)))
    (after,) = redacted("r", 0, [reply], lambda text: text.replace(CARD, "[card]"), "here")
    assert after.message.content[0].value == written
