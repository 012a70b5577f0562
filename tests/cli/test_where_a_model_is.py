"""A run that goes on is sent to its own model: a name that does not bring that back leads to somebody else's server."""

import re
import shlex
from typing import Any

import pytest
from msgspec.structs import replace

from treadle import Agent, MemoryJournal, SqliteJournal, tool
from treadle.cli.choose import is_of_library
from treadle.kernel.events import RunStarted
from treadle.models import OpenAIChatModel
from treadle.testing import ScriptedModel

BEHIND = '''
from treadle import Agent, tool
from treadle.testing import ScriptedModel

@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"

def says(request):
    return [("pay", {"amount": 4})] if request.messages[-1].role == "user" else "At the gateway."

model = ScriptedModel(says, name="openai-chat:gpt-5")
agent = Agent(model, tools=[pay], name="clerk")
'''

KEY = {"OPENAI_API_KEY": "of the provider"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def behind(treadle: Any) -> Any:
    (treadle.folder / "behind.py").write_text(BEHIND, encoding="utf-8")
    treadle.journal.parent.mkdir(parents=True, exist_ok=True)
    return treadle


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


def calls() -> ScriptedModel:
    return ScriptedModel([[("pay", {"amount": 4})], "At the gateway."], name="openai-chat:gpt-5")


def verbs(run_id: str) -> list[list[str]]:
    """What goes on with a run, but the conversation of one that has ended."""
    return [["resume", run_id], ["approve", run_id], ["deny", run_id], ["fork", run_id, "--at", "0"]]


@pytest.mark.anyio
async def test_a_run_of_a_program_is_not_sent_where_the_name_of_its_model_alone_leads(behind: Any) -> None:
    """One at a gateway has the name of the provider's own: the conversation went there, with the user's key."""
    async with SqliteJournal(behind.journal) as journal:
        waits = await Agent(calls(), tools=[pay], name="clerk", journal=journal).run("Pay.")
        ended = await Agent(ScriptedModel(["Hello."], name="openai-chat:gpt-5"), journal=journal).run("Hello?")
        before = len(await journal.read(waits.run_id))
        asked = [*verbs(waits.run_id), ["ask", "--continue", ended.run_id, "And now?"]]
        asked += [["fork", ended.run_id, "--at", "0"]]
        for words in asked:
            tools = [] if words[0] == "ask" else ["--tools", "behind.py:pay"]
            done = behind(*words, *tools, **KEY)
            assert done.code == 2, (words, done)
            assert "openai-chat:gpt-5" in done.err, words
            assert "--agent module:name" in done.err, words
            assert "--model NAME" in done.err, words
        assert len(await journal.list(10)) == 2, "a fork was begun"
        assert len(await journal.read(waits.run_id)) == before
        # Nothing is sent anywhere for an answer that stands there.
        assert behind("resume", ended.run_id).out == "Hello.\n"
        done = behind("approve", waits.run_id, "--agent", "behind.py:agent", **KEY)
        assert (done.code, done.out) == (0, "At the gateway.\n"), done.err


@pytest.mark.anyio
async def test_a_run_whose_model_was_given_by_name_goes_on_by_that(behind: Any, monkeypatch: Any) -> None:
    """A call outside is refused in the tests: that it is tried is the point."""
    monkeypatch.setenv("OPENAI_API_KEY", "of the provider")
    named, gateway = "openai-chat:gpt-5", OpenAIChatModel("gpt-5", base_url="https://gateway.invalid/v1")
    async with SqliteJournal(behind.journal) as journal:
        agent = Agent(named, journal=journal)
        for one, sent in ((agent, True), (agent.with_model(gateway), False), (agent.with_model(named), True)):
            run = one.start("Hello?")
            await run.commit()
            assert ("was about to leave" in behind("resume", run.run_id, **KEY).err) is sent


@pytest.mark.anyio
async def test_a_model_that_is_given_later_counts_as_the_first_one_does() -> None:
    for model, named in (("offline", True), (ScriptedModel(["No."], name="offline"), False)):
        journal = MemoryJournal()
        result = await Agent(ScriptedModel([]), journal=journal).with_model(model).run("What is 2 + 2?")
        [started, *_] = await journal.read(result.run_id)
        assert isinstance(started, RunStarted)
        assert started.named is named


@pytest.mark.parametrize(
    ("name", "whose"),
    [("text:openai:gpt-5", True), ("text:tags:ollama:qwen3", True), ("text:own.py:model", False), ("own.py:m", False)],
)
def test_a_name_with_tools_in_text_is_whose_the_name_within_is(name: str, whose: bool) -> None:
    assert is_of_library(name) is whose


def test_a_run_of_the_command_line_with_a_model_of_ones_own_is_given_it_again(behind: Any) -> None:
    """`treadle approve` without `--model` asked the provider that the object's name names."""
    made, tools = "behind.py:model", ["--tools", "behind.py:pay"]
    assert behind("ask", "Pay.", "--model", made, *tools).code == 4
    for words in verbs("last"):
        done = behind(*words, *tools, **KEY)
        assert done.code == 2, (words, done)
        assert "Name that model again with --model" in done.err
    hint = re.search(r"allow it: (treadle approve \S+ --model MODEL)\n", behind("show", "last").err)
    assert hint is not None
    words = shlex.split(hint[1].replace("MODEL", made))[1:]
    assert behind(*words, *tools, **KEY).out == "At the gateway.\n"


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["treadle", "clerk"])
async def test_a_run_of_treadle_0_1_does_not_say_where_its_model_is(behind: Any, name: str) -> None:
    behind("ask", "Pay.", "--model", "behind.py:model", "--tools", "behind.py:pay")
    async with SqliteJournal(behind.journal) as journal:
        [info] = await journal.list(1)
        first, *rest = await journal.read(info.run_id)
        assert isinstance(first, RunStarted)
        for model in ("openai-chat:gpt-5", "offline"):
            old = replace(first, run_id=model[:3], conversation=model, agent=name, model=model, named=False)
            await journal.append(old.run_id, 0, [old, *rest])
    for run_id, code in (("ope", 2), ("off", 0)):
        done = behind("approve", run_id, "--tools", "behind.py:pay", **KEY)
        assert done.code == code, done.err
