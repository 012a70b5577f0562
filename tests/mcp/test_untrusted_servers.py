"""What a server, or bad luck with one, must not do to a run."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import mcp_types
import pytest

from treadle import Agent, MemoryJournal, Misuse, ask_before
from treadle.mcp import MCPServer, ServerFailed, servers_in
from treadle.mcp.naming import tool_names
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

SCRIPTED = Path(__file__).parent / "scripted_server.py"


def server(script, name="evil", **options):
    return MCPServer.stdio(sys.executable, "-S", str(SCRIPTED), script, name=name, **options)


def calling(evil, times=1, **options):
    return Agent(ScriptedModel([[("evil__t", {})]] * times + ["done"]), tools=[evil], **options)


def shown(result):
    return result.steps[0].calls[0].result.text


ANSWERS_LATE = "def called(params):\n    time.sleep(1)\n    return {'content': []}"


async def test_a_write_that_is_not_answered_in_time_is_in_doubt():
    """It was told to be stopped, and the model would have paid again."""
    result = await calling(server(ANSWERS_LATE, timeout=0.2)).run("go")
    assert [(one.tool, one.kind) for one in result.pending] == [("evil__t", "interrupted")]
    told = await calling(server(ANSWERS_LATE, timeout=0.2), on_interrupted="tell").run("go")
    assert "outcome is unknown" in shown(told)


async def test_a_read_that_is_not_answered_in_time_is_told_to_the_model():
    result = await calling(server(ANSWERS_LATE, timeout=0.2, effects={"t": "read"})).run("go")
    assert "did not answer within the time limit of 0.2 s" in shown(result)


async def test_a_server_that_does_not_list_in_time_was_asked_nothing(tmp_path):
    script = f"""
def listed(params):
    kept = {str(tmp_path / "listed")!r}
    if os.path.exists(kept): time.sleep(1.2)
    open(kept, "w").close()
    return {{"tools": [tool()]}}
"""
    evil = server(script, timeout=0.3)
    journal = MemoryJournal()
    waiting = await calling(evil, approvals=[ask_before(effect="write")], journal=journal).run("go")
    agent = Agent(ScriptedModel(["done"]), tools=[evil], approvals=[ask_before(effect="write")], journal=journal)
    result = await agent.resume(waiting.run_id, approve=waiting.pending)
    assert "nothing was called" in shown(result)


@pytest.mark.parametrize("words", ["Session terminated", "Connection closed", "Server returned an error response"])
async def test_an_error_in_the_words_of_a_transport_is_an_answer_of_a_program(words, tmp_path):
    """It was taken for a call that never arrived, made again, and told to be none at all."""
    script = f"""
def called(params):
    open({str(tmp_path / "paid")!r}, "a").write("x")
    send(id=message["id"], error={{"code": -32600, "message": {words!r}}})
"""
    result = await calling(server(script)).run("go")
    assert (tmp_path / "paid").read_text() == "x"
    assert f"evil answers: it says: {words}" in shown(result)


async def test_a_pattern_in_an_output_schema_does_not_hold_the_process_up():
    script = """
def listed(params):
    x = {"type": "string", "pattern": "^(a+)+$"}
    return {"tools": [tool(outputSchema={"type": "object", "properties": {"x": x}})]}
def called(params): return {"content": [], "structuredContent": {"x": "a" * 27 + "b"}}
"""
    result = await calling(server(script, timeout=2)).run("go")
    assert "did the call, and what it gave back cannot be used" in shown(result)


@pytest.mark.parametrize("given", ["'structuredContent': {'x': 'no'}", "'content': [{'type': 'text', 'text': 'paid'}]"])
async def test_a_result_that_disagrees_with_its_schema_is_a_call_that_was_made(given):
    script = f"""
def listed(params):
    x = {{"type": "integer"}}
    return {{"tools": [tool(outputSchema={{"type": "object", "properties": {{"x": x}}, "required": ["x"]}})]}}
def called(params): return {{"content": [], {given}}}
"""
    result = await calling(server(script)).run("go")
    assert "evil did the call, and what it gave back cannot be used" in shown(result)


async def test_of_a_result_without_words_the_model_is_shown_the_data():
    """It was told that the call was made, and not what came of it, or nothing at all."""
    script = """
DATA = {"structuredContent": {"paid": 5}}
BLANK = [{"type": "text", "text": " "}]
GIVEN = [DATA, DATA | {"content": None}, DATA | {"content": []}, DATA | {"content": BLANK},
         {"structuredContent": {}}, {"content": None}, DATA | {"content": [{"type": "text", "text": "five"}]}]
def called(params): return GIVEN.pop(0)
"""
    result = await calling(server(script), 7, watch_progress=False).run("go")
    calls = [step.calls[0] for step in result.steps[:7]]
    paid = '{"paid":5}'
    assert [one.result.text for one in calls] == [paid, paid, paid, paid, "{}", "", "five"]
    assert [one.app for one in calls] == [{"paid": 5}] * 4 + [{}, None, {"paid": 5}]


async def test_an_answer_that_comes_twice_counts_once():
    script = """
def called(params):
    send(id=message["id"], result={"content": [{"type": "text", "text": "one"}]})
    return {"content": [{"type": "text", "text": "two"}]}
"""
    result = await calling(server(script), 2).run("go")
    assert [step.calls[0].result.text for step in result.steps[:2]] == ["one", "one"]


async def test_a_secret_in_the_name_of_a_tool_is_in_no_journal(caplog):
    journal = MemoryJournal()
    evil = server(
        "def listed(params): return {'tools': [tool(os.environ['KEY']), tool()]}", env={"KEY": "sk-very-secret"}
    )
    result = await calling(evil, journal=journal).run("go")
    assert result.text == "done"
    assert "very" not in repr(await journal.read(result.run_id)) + caplog.text


@pytest.mark.parametrize("after", [440, 480, 490])
async def test_of_a_secret_that_a_server_says_as_it_ends_no_part_is_shown(after):
    script = f"sys.stderr.write('x' * 600 + os.environ['KEY'] + 'y' * {after}); sys.exit(1)"
    with pytest.raises(ServerFailed) as caught:
        await server(script, env={"KEY": "secret-0123456789-tail"}).listed()
    assert not [part for part in ("secret", "0123", "6789", "tail") if part in str(caught.value)]
    assert "[KEY]yyy" in str(caught.value)


@pytest.mark.parametrize("key", ["-----BEGIN\nabcdefgh\nijklmnop\n-----END", "sk-very-secret\n"])
async def test_a_secret_of_several_lines_or_with_a_blank_at_its_end_is_hidden(key):
    with pytest.raises(ServerFailed) as caught:
        await server("sys.stderr.write(os.environ['KEY'].strip()); sys.exit(1)", env={"KEY": key}).listed()
    assert "(it said: [KEY])" in str(caught.value)


async def test_a_key_in_the_place_of_a_user_in_an_address_is_hidden():
    shop = MCPServer.http("http://user-secret:pass%2Dsecret@127.0.0.1:9/mcp?key=query-secret", name="shop")
    with pytest.raises(ServerFailed) as caught:
        await shop.listed()
    assert "secret" not in repr(shop) + str(caught.value)
    assert "secret" not in shop._secrets.hidden("pass-secret user-secret")


async def test_what_a_resumed_run_finds_changed_is_marked_after_the_refused_call(tmp_path):
    """In another process, where the server was first seen as it is now."""
    journal = MemoryJournal()
    agent = calling(
        server("def listed(params): return {'tools': [tool('t', 'Good.'), tool('u', 'Good.')]}"),
        approvals=[ask_before("evil__t", when=lambda _: not (tmp_path / "allowed").exists())],
        journal=journal,
    )
    waiting = await agent.run("go")
    (tmp_path / "allowed").touch()
    changed = server("def listed(params): return {'tools': [tool('t', 'Bad.'), tool('u', 'Bad.')]}")
    model = ScriptedModel([[("evil__t", {}), ("evil__u", {})], "done"])
    later = Agent(model, tools=[changed], approvals=agent._config.approvals, journal=journal)
    result = await later.resume(waiting.run_id, approve=waiting.pending)
    assert "says something else" in shown(result)
    assert [one.tool for one in result.pending] == ["evil__t", "evil__u"]
    assert all("now as 'Bad.'" in one.question for one in result.pending)


def test_a_tool_keeps_its_name_and_so_its_rules_whatever_else_is_listed():
    alone = tool_names("shop", ["pay"])
    assert tool_names("shop", ["PAY", "pay", "Pay"])["pay"] == alone["pay"] == "shop__pay"
    digested = tool_names("shop", ["p.y", "p_y"])
    assert digested["p_y"] == "shop__p_y"
    taken = digested["p.y"].removeprefix("shop__")
    again = tool_names("shop", ["p.y", "p_y", taken])
    assert len(set(again.values())) == 3


ASKS = """
def asks(number):
    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    params = {"mode": "form", "message": "Sure?", "requestedSchema": schema}
    send(id=f"q{number}", method="elicitation/create", params=params)
    return sys.stdin.readline()
"""


async def test_a_server_asks_only_while_a_call_is_under_way(tmp_path):
    script = f"""{ASKS}
def called(params):
    send(id=message["id"], result={{"content": []}})
    answers = [asks(number) for number in range(3)]
    open({str(tmp_path / "answers")!r}, "w").write("".join(answers))
    open({str(tmp_path / "done")!r}, "w").close()
"""
    asked = []
    evil = server(script, ask=lambda question: asked.append(question) or {"x": "y"})
    async with evil:
        # The first question may still come while the call is being ended.
        await calling(evil).run("go")
        while not (tmp_path / "done").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert (tmp_path / "answers").read_text().count('"cancel"') >= 2
    assert len(asked) <= 1


async def test_a_server_that_asks_without_end_is_answered_no_more(monkeypatch):
    monkeypatch.setattr("treadle.mcp.asking.MOST_QUESTIONS", 5)
    script = f"""{ASKS}
def called(params):
    number = 0
    while "cancel" not in asks(number): number += 1
    return {{"content": [{{"type": "text", "text": str(number)}}]}}
"""
    asked = []
    result = await calling(server(script, ask=lambda question: asked.append(1) or {"x": "y"})).run("go")
    assert (shown(result), len(asked)) == ("5", 5)


async def test_a_question_ends_with_the_call_that_it_is_of():
    ended = asyncio.Event()

    async def ask(question):
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    evil = server(f"{ASKS}\ndef called(params): asks(0)", ask=ask, timeout=0.3)
    async with evil:
        await calling(evil, on_interrupted="tell").run("go")
        assert await asyncio.wait_for(ended.wait(), 30)


@pytest.mark.parametrize("ask", [lambda _: "no form", lambda _: 1 / 0])
async def test_what_is_wrong_in_the_application_is_not_for_a_server_to_read(ask, caplog):
    script = f"{ASKS}\ndef called(params): return {{'content': [{{'type': 'text', 'text': asks(0)}}]}}"
    result = await calling(server(script, ask=ask)).run("go")
    assert '"action":"cancel"' in shown(result)
    assert "ask= of the server evil failed" in caplog.text


async def test_what_is_wrong_in_the_application_is_logged_as_the_journal_would_have_it(caplog):
    """It was logged with its traceback as it was."""

    def ask(question):
        raise ValueError(f"nobody of swordfish answers {question.message}")

    script = f"{ASKS}\ndef called(params): return {{'content': [{{'type': 'text', 'text': asks(0)}}]}}"
    journal = MemoryJournal(redact=lambda text: text.replace("swordfish", "[KEY]"))
    await calling(server(script, ask=ask), journal=journal).run("go")
    assert "ValueError: nobody of [KEY] answers" in caplog.text
    assert "swordfish" not in caplog.text


SAMPLES = """
def samples(number):
    params = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 9}
    send(id=f"s{number}", method="sampling/createMessage", params=params)
    return sys.stdin.readline()
"""


async def answered_by_a_model(context, params):
    words = mcp_types.TextContent(type="text", text=params.messages[0].content.text + ", too")
    return mcp_types.CreateMessageResult(role="assistant", content=words, model="m")


async def test_a_server_has_a_model_asked_only_while_a_call_is_under_way(tmp_path):
    """A server could have any number of calls of a model made, and paid, at any time."""
    script = f"""{SAMPLES}
def listed(params):
    with open({str(tmp_path / "before")!r}, "w") as file:
        for number in range(5): file.write(samples(number))
    return {{"tools": [tool()]}}
def called(params): return {{"content": [{{"type": "text", "text": samples(9)}}]}}
"""
    loops = []

    async def sampling(context, params):
        loops.append(asyncio.get_running_loop())
        return await answered_by_a_model(context, params)

    evil = server(script, sampling=sampling)
    async with evil:
        await evil.listed()
        assert (tmp_path / "before").read_text().count("no model answers") == 5
        assert "Hi, too" in shown(await calling(evil).run("go"))
    assert loops == [asyncio.get_running_loop()]


async def test_a_server_has_a_model_asked_a_bounded_number_of_times(monkeypatch):
    monkeypatch.setattr("treadle.mcp.asking.MOST_QUESTIONS", 5)
    script = f"""{SAMPLES}
def called(params):
    number = 0
    while number < 20 and "Hi, too" in samples(number): number += 1
    return {{"content": [{{"type": "text", "text": str(number)}}]}}
"""
    assert shown(await calling(server(script, sampling=answered_by_a_model)).run("go")) == "5"


async def test_what_is_wrong_as_a_model_is_asked_is_not_for_a_server_to_read(caplog):
    """The words of the exception were its answer, and in the log as they were."""

    async def sampling(context, params):
        raise ValueError("the key sk-swordfish is not good")

    script = f"{SAMPLES}\ndef called(params): return {{'content': [{{'type': 'text', 'text': samples(0)}}]}}"
    journal = MemoryJournal(redact=lambda text: text.replace("sk-swordfish", "[KEY]"))
    result = await calling(server(script, sampling=sampling), journal=journal).run("go")
    assert "no model answers" in shown(result)
    assert "ValueError: the key [KEY] is not good" in caplog.text
    assert "swordfish" not in shown(result) + caplog.text


def test_a_question_reaches_the_event_loop_of_a_call_that_is_under_way():
    """Of two threads with a loop each that share a server, the one whose loop is not over."""
    script = f"{ASKS}\ndef called(params): return {{'content': [{{'type': 'text', 'text': asks(0)}}]}}"
    threads = []
    evil = server(script, ask=lambda _: threads.append(threading.current_thread().name) or {"x": "y"})
    held = asyncio.new_event_loop()
    try:
        held.run_until_complete(evil.__aenter__())
        # A loop that stands still, and is not closed.
        held.run_until_complete(evil.about())
        found = []
        other = threading.Thread(target=lambda: found.append(calling(evil).run_sync("go")), name="other")
        other.start()
        other.join(30)
        assert '"action":"accept"' in shown(found[0])
        assert threads == ["other"]
    finally:
        held.run_until_complete(evil.__aexit__())
        held.run_until_complete(held.shutdown_default_executor())
        held.close()


async def test_a_key_in_an_address_is_in_no_log(caplog):
    """The HTTP client logs the address of each request."""

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    caplog.set_level("DEBUG")
    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        with pytest.raises(ServerFailed):
            await MCPServer.http(f"http://127.0.0.1:{port}/mcp?key=query-secret", name="shop").listed()
    assert "/mcp?key=[url 0]" in caplog.text
    assert "query-secret" not in caplog.text


async def test_more_images_than_any_model_takes_are_not_shown_to_it():
    image = "{'type': 'image', 'data': 'AAAA', 'mimeType': 'image/png'}"
    evil = server(f"def called(params): return {{'content': [{{'type': 'text', 'text': 'Here.'}}] + [{image}] * 1000}}")
    result = await calling(evil).run("go")
    assert shown(result) == "Here.\n[1,000 images and files were given, of which at most 100 are shown: none is]"


FORKS = f"""
import asyncio, os, sys, warnings
from treadle import Agent
from treadle.mcp import MCPServer
from treadle.testing import ScriptedModel

warnings.simplefilter("ignore")
evil = MCPServer.stdio(sys.executable, "-S", {str(SCRIPTED)!r}, "", name="evil", timeout=5)

def run():
    agent = Agent(ScriptedModel([[("evil__t", {{}})], "done"]), tools=[evil], on_interrupted="tell")
    return agent.run_sync("go").steps[0].calls[0].result.text

async def main():
    async with evil:
        await evil.about()
        child = os.fork()
        if not child:
            asyncio._set_running_loop(None)
            print("child", run(), flush=True)
            os._exit(0)
        await asyncio.to_thread(os.waitpid, child, 0)
        print("parent", await asyncio.to_thread(run), flush=True)

asyncio.run(main())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_process_that_is_forked_starts_a_server_of_its_own():
    """It waited for the answer of a thread that it did not have."""
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == ["child ok", "parent ok"], done.stderr


@pytest.mark.parametrize(
    "option",
    [
        {"trusted": "false"}, {"trusted": 1}, {"needs_approval": "no"}, {"effects": ["t"]}, {"effects": None},
        {"only": "t"}, {"only": [1]}, {"roots": 5}, {"roots": "/"}, {"ask": "pauze"}, {"sampling": 5},
    ],
)  # fmt: skip
def test_a_word_is_no_yes_and_what_an_option_cannot_be_is_refused(option, tmp_path):
    """A file that said "trusted": "false" had its server trusted."""
    (name,) = option
    with pytest.raises(Misuse, match=f"takes {name}= as"):
        MCPServer.stdio("x", name="x", **option)
    if name in ("trusted", "needs_approval", "effects", "only"):
        file = tmp_path / "mcp.json"
        file.write_text(json.dumps({"mcpServers": {"x": {"command": "x", "treadle": option}}}))
        with pytest.raises(Misuse, match="server 'x': MCPServer takes"):
            servers_in(file)
