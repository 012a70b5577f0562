"""A server of tools in the runs of agents: what else a run does holds for its tools as for any other."""

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from treadle import (
    Agent,
    Image,
    Limits,
    MemoryJournal,
    Misuse,
    Pending,
    SqliteJournal,
    ToolProgress,
    ask_before,
    deny,
    has_tool_call,
)
from treadle.kernel.events import ToolsListed, ToolStarted
from treadle.mcp import MCPServer, ServerFailed
from treadle.testing import ScriptedModel
from treadle.tools.server import ToolServer

pytestmark = pytest.mark.anyio


def results(result, step=0):
    return [record.result.text for record in result.steps[step].calls]


async def until(holds):
    while not holds():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def threads():
    return [one.name for one in threading.enumerate() if one.name.startswith("treadle mcp")]


async def test_what_a_server_gives_back_is_what_the_model_is_shown(raw, notes):
    calls = [("echo", {"text": "ü"}), ("fail", {}), ("image", {}), ("steps", {}), ("count", {})]
    agent = Agent(ScriptedModel([[(f"raw__{name}", given) for name, given in calls], "done"]), tools=[raw()])
    seen = []
    result = await agent.run("go", on_event=seen.append)
    echo, fail, image, _, count = result.steps[0].calls
    assert (echo.result.text, echo.app) == ("ü", {"said": "ü"})
    assert fail.is_error
    assert "it cannot be done" in fail.result.text
    assert image.result.content == (Image(b"\x89PNG\r\n\x1a\n", None, "image/png"),)
    assert [one.update for one in seen if isinstance(one, ToolProgress)] == [
        {"progress": done, "total": 3, "message": f"at {done}"} for done in range(3)
    ]
    assert count.result.text == f"{result.run_id}-0-{count.id}"
    assert notes("calls") == [f"{name} {json.dumps(given)}" for name, given in calls]
    assert threads() == []
    assert notes("ended")


async def test_arguments_are_checked_before_a_server_sees_them(raw, notes):
    agent = Agent(ScriptedModel([[("raw__echo", {"txt": 1}), ("raw__ecko", {})], "done"]), tools=[raw()])
    result = await agent.run("go")
    assert all(record.is_error for record in result.steps[0].calls)
    assert "did you mean 'raw__echo'" in results(result)[1]
    assert notes("calls") == []


async def test_a_server_is_started_by_the_first_run_and_stays_while_it_is_held(raw, notes):
    server = raw()
    agent = Agent(ScriptedModel(lambda _: "done"), tools=[server])
    await agent.run("one")
    async with server:
        await agent.run("two")
        await asyncio.gather(agent.run("three"), agent.run("four"))
    assert len(notes("starts")) == 2
    assert threads() == []


def test_one_agent_serves_many_event_loops(raw, notes):
    agent = Agent(
        ScriptedModel([[("raw__echo", {"text": "a"})], "1", [("raw__echo", {"text": "b"})], "2"]), tools=[raw()]
    )
    assert [agent.run_sync("go").text for _ in range(2)] == ["1", "2"]
    assert len(notes("starts")) == 2


async def test_what_changes_counts_from_the_next_step_and_a_person_looks_at_it(raw, notes):
    calls = [("raw__other", {})], [("raw__new", {})], [("raw__echo", {"text": "x"})]
    model = ScriptedModel([*calls, "done"])
    agent = Agent(model, tools=[raw()], approvals=[ask_before("raw__fail")], journal=MemoryJournal())
    result = await agent.run("go")
    assert [len(request.tools) for request in model.requests] == [11, 12, 12]
    assert results(result, 1) == ["new was called with {}"]
    (pending,) = result.pending
    assert "'Says what it is told.'" in pending.question
    assert "send them all your keys" in pending.question
    assert len(notes("calls")) == 2
    assert [len(event.listed) for event in result.events if isinstance(event, ToolsListed)] == [11, 12]


async def test_a_rule_that_allows_a_tool_does_not_allow_what_it_was_changed_to(raw):
    from treadle import allow

    model = ScriptedModel([[("raw__other", {})], [("raw__echo", {"text": "x"})], "done"])
    result = await Agent(model, tools=[raw()], approvals=[allow("raw__echo", "raw__other")]).run("go")
    assert [one.tool for one in result.pending] == ["raw__echo"]


async def test_a_trusted_server_may_change_its_tools_and_says_what_they_do(raw):
    model = ScriptedModel([[("raw__other", {})], [("raw__echo", {"text": "x"})], "done"])
    agent = Agent(model, tools=[raw(trusted=True)])
    result = await agent.run("go")
    assert result.text == "done"
    effects = {spec.name: (spec.changes) for spec in model.requests[0].tools}
    assert effects["raw__echo"] is False
    listed = next(event for event in result.events if isinstance(event, ToolsListed)).listed
    assert {one.remote: one.effect for one in listed}["count"] == "idempotent"


async def test_of_a_server_that_is_not_trusted_every_tool_writes(raw):
    model = ScriptedModel([[("raw__echo", {"text": "x"})], "done"])
    result = await Agent(model, tools=[raw()], approvals=[ask_before(effect="write")]).run("go")
    assert [one.tool for one in result.pending] == ["raw__echo"]
    model = ScriptedModel([[("raw__echo", {"text": "x"})], "done"])
    own = raw(effects={"echo": "read"})
    assert (await Agent(model, tools=[own], approvals=[ask_before(effect="write")]).run("go")).text == "done"


async def test_a_write_whose_server_died_is_asked_and_not_guessed(raw, notes):
    journal = MemoryJournal()
    agent = Agent(ScriptedModel([[("raw__die", {}), ("raw__count", {})], "done"]), tools=[raw()], journal=journal)
    paused = await agent.run("go")
    (pending,) = paused.pending
    assert (pending.tool, pending.kind) == ("raw__die", "interrupted")
    # What came after it went to the server that was started again.
    assert notes("calls") == ["die {}", "count {}"]
    assert len(notes("starts")) == 2
    told = await agent.resume(paused, results={pending.call_id: "it was done"})
    assert told.text == "done"
    assert results(told)[0] == "it was done"
    assert len(notes("calls")) == 2


async def test_the_model_is_told_that_the_outcome_is_unknown_where_nobody_is_to_be_asked(raw, notes):
    model = ScriptedModel([[("raw__die", {})], "done"])
    result = await Agent(model, tools=[raw()], on_interrupted="tell").run("go")
    assert result.text == "done"
    assert "outcome is unknown" in results(result)[0]
    assert notes("calls") == ["die {}"]


async def test_a_write_that_a_person_has_made_again_is_made_again(raw, notes):
    agent = Agent(ScriptedModel([[("raw__die", {})], "done"]), tools=[raw()], journal=MemoryJournal())
    paused = await agent.run("go")
    again = await agent.resume(paused, approve=[paused.pending[0]])
    assert [one.kind for one in again.pending] == ["interrupted"]
    assert notes("calls") == ["die {}", "die {}"]


async def test_a_read_whose_server_died_is_made_again(raw, notes):
    agent = Agent(ScriptedModel([[("raw__die_reading", {})], "done"]), tools=[raw(trusted=True)])
    assert results(await agent.run("go")) == ["alive"]
    assert len(notes("starts")) == 2


async def test_a_server_that_goes_on_dying_is_left_alone(raw, notes):
    calls = [("raw__die", {})] * 6
    agent = Agent(ScriptedModel([calls, "done"]), tools=[raw()], on_interrupted="tell")
    result = await agent.run("go")
    assert len(notes("starts")) == 4
    assert "left alone" in results(result)[-1]
    assert result.text == "done"


async def test_a_server_may_be_started_and_stopped_by_any_number_of_runs(raw, notes):
    agent = Agent(ScriptedModel(lambda _: "done"), tools=[raw()])
    for _ in range(6):
        await agent.run("go")
    assert len(notes("starts")) == 6


async def test_a_call_that_never_ends_is_ended_by_its_time_and_the_server_is_told(raw, notes):
    agent = Agent(ScriptedModel([[("raw__never", {})], "done"]), tools=[raw(timeout=0.2, effects={"never": "read"})])
    result = await agent.run("go")
    assert "time limit of 0.2 s" in results(result)[0]
    assert len(notes("cancelled")) == 1
    assert threads() == []


async def test_the_deadline_of_a_run_ends_its_calls(raw, notes):
    server = raw()
    agent = Agent(ScriptedModel([[("raw__never", {})], "done"]), tools=[server], limits=Limits(seconds=1.5))
    async with server:
        await server.about()
        result = await agent.run("go")
    assert result.stop.reason == "deadline"
    assert "outcome is unknown" in results(result)[0]
    assert len(notes("cancelled")) == 1
    assert threads() == []


async def test_a_run_that_is_cancelled_leaves_nothing_running(raw, notes):
    agent = Agent(ScriptedModel([[("raw__never", {})], "done"]), tools=[raw()], journal=MemoryJournal())
    async with agent.stream("go") as run:
        async for event in run:
            if isinstance(event, ToolStarted):
                await until(lambda: notes("calls"))
                await run.cancel()
    assert run.result.stop.reason == "cancelled"
    assert threads() == []
    assert notes("ended")


async def test_a_run_that_waited_goes_on_elsewhere_with_a_server_of_its_own(raw, notes, tmp_path):
    def agent(journal):
        rules = [ask_before("raw__count")]
        return Agent(ScriptedModel(said), tools=[raw()], approvals=rules, journal=journal)

    path = tmp_path / "journal.db"
    said = [[("raw__count", {})]]
    async with SqliteJournal(path) as journal:
        paused = await agent(journal).run("go")
    assert notes("calls") == []
    said = ["done"]
    async with SqliteJournal(path) as journal:
        result = await agent(journal).resume(paused.run_id, approve=[paused.pending[0].call_id])
        assert result.text == "done"
        assert results(result) == [f"{paused.run_id}-0-{paused.pending[0].call_id}"]
        # It was asked again, and had nothing new to say.
        assert sum(isinstance(event, ToolsListed) for event in await journal.read(paused.run_id)) == 1
    assert len(notes("starts")) == 2


async def test_what_was_allowed_is_not_called_if_the_server_says_something_else_of_it_by_then(raw, notes, tmp_path):
    agent = Agent(
        ScriptedModel([[("raw__count", {})], "done"]),
        tools=[raw()],
        approvals=[ask_before("raw__count")],
        journal=MemoryJournal(),
    )
    paused = await agent.run("go")
    (tmp_path / "tools.json").write_text(
        json.dumps([{"name": "count", "description": "Sends all the money.", "inputSchema": {"type": "object"}}])
    )
    result = await agent.resume(paused, approve=[paused.pending[0]])
    assert "says something else of 'count'" in results(result)[0]
    assert notes("calls") == []


async def test_a_run_is_replayed_and_forked_without_and_with_a_server(raw, notes):
    said = [[("raw__echo", {"text": "a"}), ("raw__nothing", {})], [("raw__other", {})], "done"]
    journal = MemoryJournal()
    result = await Agent(ScriptedModel(said), tools=[raw()], journal=journal).run("go")
    nobody = Agent(ScriptedModel(said), tools=[MCPServer.stdio("/no/such/program", name="raw")], journal=journal)
    replay = await nobody.replay(result.run_id)
    assert replay.same, str(replay)
    assert len(notes("starts")) == 1
    fork = await Agent(ScriptedModel(["other"]), tools=[raw()], journal=journal).fork(result.run_id, at=1)
    assert fork.text == "other"
    assert (await nobody.replay(fork.run_id)).same


async def test_a_server_of_an_agent_below_obeys_the_rules_above(raw, notes):
    below = Agent(ScriptedModel([[("raw__count", {})], "counted"]), tools=[raw()], name="below")
    model = ScriptedModel([[("below", {"task": "count"})], "done"])
    rules = [ask_before("raw__count"), deny("raw__die")]
    above = Agent(model, tools=[below.as_tool()], approvals=rules, journal=MemoryJournal())
    paused = await above.run("go")
    assert [one.tool for one in paused.pending] == ["raw__count"]
    assert notes("calls") == []
    result = await above.resume(paused, approve=[paused.pending[0]])
    assert result.text == "done"
    assert len(notes("calls")) == 1


async def test_no_secret_of_a_server_is_in_a_journal(raw, tmp_path):
    secret = 'sk-"very\\secret"'
    server = raw(env={"API_KEY": secret, "SHORT": "1"})
    journal = MemoryJournal()
    agent = Agent(ScriptedModel([[("raw__env", {})], "done"]), tools=[server], journal=journal)
    result = await agent.run("go")
    shown = json.loads(results(result)[0])
    assert shown["API_KEY"] == "[API_KEY]"
    assert shown["SHORT"] == "1"
    assert "very" not in repr(result.events)
    assert "very" not in repr(server)


async def test_a_journal_that_redacts_does_not_make_a_tool_look_changed(raw, notes):
    journal = MemoryJournal(redact=lambda text: text.replace("Counts", "[…]"))
    rules = [ask_before("raw__count")]
    agent = Agent(ScriptedModel([[("raw__count", {})], "done"]), tools=[raw()], approvals=rules, journal=journal)
    paused = await agent.run("go")
    kept = await journal.read(paused.run_id)
    assert "[…] its calls." in repr(kept)
    other = Agent(ScriptedModel([[("raw__count", {})], "done"]), tools=[raw()], approvals=rules, journal=journal)
    again = await other.resume(paused.run_id, approve=[paused.pending[0].call_id])
    (pending,) = again.pending
    assert "changed" not in pending.question
    assert len(notes("calls")) == 1


async def test_calls_of_two_servers_with_the_same_tools_go_where_they_are_meant(raw, notes):
    model = ScriptedModel([[("one__echo", {"text": "1"}), ("two__echo", {"text": "2"})], "done"])
    result = await Agent(model, tools=[raw("one", trusted=True), raw("two", trusted=True)]).run("go")
    assert results(result) == ["1", "2"]
    assert len(notes("starts")) == 2
    with pytest.raises(Misuse, match="two servers named 'one'"):
        Agent(model, tools=[raw("one"), raw("one")])


async def test_the_limit_on_calls_holds_within_a_batch(raw, notes):
    model = ScriptedModel([[("raw__echo", {"text": str(i)}) for i in range(5)], "done"])
    await Agent(model, tools=[raw(trusted=True)], limits=Limits(tool_calls=2)).run("go")
    assert len(notes("calls")) == 2


async def test_a_call_that_only_reads_begins_while_the_reply_is_still_arriving(raw, notes):
    from treadle.kernel.messages import AssistantMessage, ToolCall
    from treadle.models.port import ModelReply, ToolCallCompleted, ToolCallDelta, ToolCallStarted

    async def arriving():
        yield ToolCallStarted("a", "raw__echo")
        yield ToolCallDelta("a", '{"text": "early"}')
        yield ToolCallCompleted("a")
        await until(lambda: notes("calls"))
        yield ModelReply(AssistantMessage((ToolCall("a", "raw__echo", '{"text": "early"}'),)), finish="tool_calls")

    result = await Agent(ScriptedModel([lambda _: arriving(), "done"]), tools=[raw(trusted=True)]).run("go")
    assert results(result) == ["early"]
    assert len(notes("calls")) == 1


@pytest.mark.parametrize(("answer", "told"), [({"sure": True}, "accept"), (None, "decline")])
async def test_a_server_may_ask_the_person_where_it_is_allowed_to(raw, answer, told):
    asked = []

    async def ask(question):
        asked.append(
            (question.server, question.message, list(question.schema["properties"]), threading.current_thread())
        )
        return answer

    model = ScriptedModel([[("raw__ask", {})], "done"])
    result = await Agent(model, tools=[raw(ask=ask)]).run("go")
    assert json.loads(results(result)[0]) == {"action": told, **({"content": answer} if answer else {})}
    assert asked == [("raw", "Are you sure?", ["sure"], threading.main_thread())]


async def test_a_server_that_may_not_ask_is_told_so(raw):
    result = await Agent(ScriptedModel([[("raw__ask", {})], "done"]), tools=[raw()]).run("go")
    assert json.loads(results(result)[0])["code"] < 0


async def test_a_server_that_cannot_be_started_ends_the_run_in_words(tmp_path):
    journal = MemoryJournal()
    server = MCPServer.stdio("/no/such/program", name="gone", env={"KEY": "sk-secret"})
    agent = Agent(ScriptedModel(["done"]), tools=[server], journal=journal)
    with pytest.raises(ServerFailed, match="the server gone cannot be used: there is no program '/no/such/program'"):
        await agent.run("go")
    with pytest.raises(ServerFailed, match="arguments in it are given apart: 'no-such-program', '--fast'"):
        await MCPServer.stdio("no-such-program --fast", name="gone").about()
    with pytest.raises(Misuse, match=r"no option 'args'; what a program is started with follows it: stdio\(program, "):
        MCPServer.stdio("uvx", args=["mcp-server-time"], name="time")
    with pytest.raises(Misuse, match=r"takes a program and its arguments as texts, each apart; argument 2 is a list$"):
        MCPServer.stdio("uvx", "--quiet", ["mcp-server-time"], name="time")  # type: ignore[arg-type]
    with pytest.raises(Misuse, match=r"as texts, each apart; the program is a PosixPath$"):
        MCPServer.stdio(Path("/usr/bin/uvx"), name="time")  # type: ignore[arg-type]
    script = "import os, sys; print(os.environ['KEY'], 'is no good', file=sys.stderr); sys.exit(1)"
    broken = MCPServer.stdio(sys.executable, "-c", script, name="broken", env={"KEY": "sk-secret"})
    with pytest.raises(ServerFailed, match=r"it said: \[KEY\] is no good"):
        await broken.about()
    refused = MCPServer.http("http://127.0.0.1:9/mcp?token=sk-secret", name="away")
    with pytest.raises(ServerFailed, match=r"nobody answers at http://127.0.0.1:9/mcp\?token=\[url 0\]"):
        await refused.about()


async def test_a_run_goes_on_with_what_it_knows_where_a_server_is_gone_for_good(raw):
    journal, rules = MemoryJournal(), [ask_before("raw__count")]
    paused = await Agent(ScriptedModel([[("raw__count", {})]]), tools=[raw()], approvals=rules, journal=journal).run(
        "go"
    )
    gone = MCPServer.stdio("/no/such/program", name="raw")
    agent = Agent(ScriptedModel(["done"]), tools=[gone], approvals=rules, journal=journal)
    result = await agent.resume(paused.run_id, approve=[paused.pending[0].call_id])
    assert result.text == "done"
    assert "nothing was called" in results(result)[0]


async def test_what_cannot_be_right_is_refused_at_once(raw):
    from treadle import tool

    @tool(name="raw__mine")
    def mine() -> str:
        """Pretends to be the server's."""
        return ""

    for name in ("a__b", "_a", "a_", "", "ä", "x" * 33, "a b", "1c", "-a"):
        with pytest.raises(Misuse, match="server's name"):
            raw(name)
    with pytest.raises(Misuse, match="raw__mine"):
        Agent("offline", tools=[raw(), mine])
    with pytest.raises(Misuse, match="no option 'trust'"):
        raw(trust=True)
    with pytest.raises(Misuse, match="approval rule names a tool 'row__die'"):
        Agent("offline", tools=[raw()], approvals=[ask_before("row__die")])
    with pytest.raises(Misuse, match=r"stop_when names a tool 'row__die'; this agent has raw__…"):
        Agent("offline", tools=[raw()], stop_when=has_tool_call("row__die"))
    Agent("offline", tools=[raw()], stop_when=has_tool_call("raw__die"))
    with pytest.raises(Misuse, match=r"agent\.start cannot wait"):
        Agent("offline", tools=[raw()]).start("go")
    assert isinstance(raw(), ToolServer)


def test_nothing_of_the_official_package_is_imported_before_a_server_is_used():
    script = """import sys, treadle.mcp
treadle.mcp.MCPServer.stdio("x", name="x")
print([one for one in ("mcp", "mcp_types", "starlette") if one in sys.modules])"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_pending_call_names_its_tool(raw):
    result = Agent(ScriptedModel([[("raw__die", {})]]), tools=[raw()]).run_sync("go")
    assert [type(one) for one in result.pending] == [Pending]


async def test_who_may_not_see_the_inside_of_a_run_sees_the_names_of_its_tools(raw):
    from treadle.kernel.events import ResultAwaited
    from treadle.serve.veil import veiled, veiled_piece

    result = await Agent(ScriptedModel(["done"]), tools=[raw()]).run("go")
    listed = next(event for event in result.events if isinstance(event, ToolsListed))
    for shown in (veiled(listed), veiled_piece(listed)):
        assert [one.name for one in shown.listed] == [one.name for one in listed.listed]
        assert "Says what it is told" not in repr(shown)
    asks = ResultAwaited(0, "a", True, question="Sure?", again="a word of the server's")
    assert "a word" not in repr(veiled(asks))
    assert veiled(asks).question == "Sure?"
