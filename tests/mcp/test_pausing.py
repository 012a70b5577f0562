"""`ask="pause"` with servers that hold a call open for the answer: the run waits, the call is made again with it."""

import runpy
import sys
from pathlib import Path

import pytest

from treadle import Agent, MemoryJournal, tool
from treadle.mcp import MCPServer, server_of
from treadle.mcp.secrets import Secrets
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

SCRIPTED = Path(__file__).parent / "scripted_server.py"
of_before = runpy.run_path(str(SCRIPTED.with_name("handshake.py")))["of_before"]


def agent(server, said, journal, **options):
    return Agent(ScriptedModel(said), tools=[server], journal=journal, **options)


def shown(result):
    return result.steps[0].calls[0].result.text


async def test_the_run_waits_for_the_answer_and_the_call_is_made_again_with_it(raw, notes):
    journal = MemoryJournal()
    waiting = await agent(raw(ask="pause"), [[("raw__ask", {})]], journal).run("go")
    (one,) = waiting.pending
    assert one.kind == "result"
    assert "raw asks: Are you sure? (sure: boolean)" in one.question
    assert "nobody has answered yet" in one.question
    assert "cancel" in one.question
    done = await agent(raw(ask="pause"), ["done"], journal).resume(waiting.run_id, results={one.call_id: "yes"})
    assert done.text == "done"
    assert '"accept"' in shown(done)
    assert '"sure": true' in shown(done)
    assert len(notes("calls")) == 2
    assert (await agent(raw(ask="pause"), ["done"], journal).replay(waiting.run_id)).same


async def test_who_declines_has_the_call_stay_as_it_ended(raw, notes):
    journal = MemoryJournal()
    waiting = await agent(raw(ask="pause"), [[("raw__ask", {})]], journal).run("go")
    answer = {waiting.pending[0].call_id: None}
    done = await agent(raw(ask="pause"), ["done"], journal).resume(waiting.run_id, results=answer)
    assert '"cancel"' in shown(done)
    assert len(notes("calls")) == 1


ASKS_TWICE = """
def asks(message):
    params = {"mode": "form", "message": message, "requestedSchema": FORM}
    send(id=message, method="elicitation/create", params=params)
    return json.loads(sys.stdin.readline())["result"]

FORM = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}

def called(params):
    said = []
    for message in QUESTIONS:
        found = asks(message)
        said.append(found.get("content", {}).get("word"))
        if found["action"] != "accept": break
    return {"content": [{"type": "text", "text": f"said {said}"}]}
"""


def asking(*questions, **options):
    script = f"QUESTIONS = {list(questions)}\n{ASKS_TWICE}"
    return MCPServer.stdio(sys.executable, "-S", str(SCRIPTED), script, name="evil", ask="pause", **options)


async def answered(server, *answers, calls=1):
    journal = MemoryJournal()
    result = await agent(server(), [[("evil__t", {})] * calls], journal).run("go")
    for answer in answers:
        (one,) = result.pending
        result = await agent(server(), ["done"], journal).resume(result.run_id, results={one.call_id: answer})
    return result


async def test_each_question_has_its_own_answer():
    assert shown(await answered(lambda: asking("Name?", "Town?"), "Ann", "Ulm")) == "said ['Ann', 'Ulm']"


async def test_the_same_question_again_is_asked_again():
    assert shown(await answered(lambda: asking("Code?", "Code?"), "wrong", "right")) == "said ['wrong', 'right']"


async def test_an_answer_that_does_not_fit_is_asked_for_again():
    """It was told that nothing had been called, and the call had been made."""
    form = "FORM['properties']['other'] = {'type': 'string'}"

    def server():
        script = f"QUESTIONS = ['Who?']\n{ASKS_TWICE}\n{form}"
        return MCPServer.stdio(sys.executable, "-S", str(SCRIPTED), script, name="evil", ask="pause")

    waiting = await answered(server, "Ann")
    assert waiting.pending[0].question.startswith("the answer is to be an object with word, other. evil asks: Who?")
    assert shown(await answered(server, "Ann", {"word": "Ann", "other": "x"})) == "said ['Ann']"


async def test_a_secret_in_a_question_is_in_no_journal():
    server = lambda: asking("Is it very-secret-key?", env={"KEY": "very-secret-key"})  # noqa: E731
    result = await answered(server)
    assert "Is it [KEY]?" in result.pending[0].question
    assert "very-secret" not in repr(result.events)
    assert shown(await answered(server, "yes")) == "said ['yes']"


async def test_what_a_server_of_ours_asks_is_answered_and_done_once():
    """It took the end of the question for a no, and the call under its key had been refused for ever."""
    paid, kept, journal = [], MemoryJournal(), MemoryJournal()

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pays an amount."""
        paid.append(amount)
        return f"paid {amount}"

    def shop():
        transport = lambda _: of_before(server_of([pay], journal=kept))  # noqa: E731
        return MCPServer("shop", transport, Secrets({}), "in memory", {"ask": "pause"})

    waiting = await agent(shop(), [[("shop__pay", {"amount": 5})]], journal).run("go")
    assert "Allow pay" in waiting.pending[0].question
    assert paid == []
    answer = {waiting.pending[0].call_id: "yes"}
    done = await agent(shop(), ["done"], journal).resume(waiting.run_id, results=answer)
    assert shown(done) == "paid 5"
    assert paid == [5]
    assert len(await kept.list()) == 1
