"""Runs over HTTP: every event under its number, none lost or doubled, whoever comes and goes."""

import asyncio
import json

import msgspec
import pytest
from served import clerk, decision, events_of, parsed, run_when, serving, talker, until, waiter

from treadle import Agent, Limits, MemoryJournal, Misuse, SqliteJournal
from treadle.journal import UnknownRun
from treadle.kernel.events import encode_event
from treadle.serve import Bounds, app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


async def told(journal, run_id):
    """What a stream has to say of the events of a run."""
    found = []
    for number, event in enumerate(await journal.read(run_id), 1):
        data = json.loads(encode_event(event))
        found.append((number, data.pop("event"), data))
    return found


def numbered(events):
    return [
        (number, name, {key: value for key, value in data.items() if key not in ("number", "type")})
        for number, name, data in events
        if number is not None
    ]


async def begin(client, agent, text, **more):
    answer = await client.post("/api/runs", json={"agent": agent, "input": text, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


@pytest.fixture(params=["memory", "sqlite"])
async def journal(request, tmp_path):
    kept = MemoryJournal() if request.param == "memory" else SqliteJournal(tmp_path / "runs.db")
    async with kept:
        yield kept


async def test_a_stream_taken_up_anywhere_is_the_journal_in_its_order(journal):
    async with serving(app([clerk([])], journal=journal)) as client:
        run_id = await begin(client, "clerk", "pay Ann 5")
        waiting = await run_when(client, run_id, "waiting")
        assert (await client.post(f"/api/runs/{run_id}/decisions", json=decision(*waiting["pending"]))).is_success
        await run_when(client, run_id, "finished")
        kept = await told(journal, run_id)
        for cut in range(len(kept) + 1):
            path = f"/api/runs/{run_id}/stream"
            before = await events_of(client, path, most=cut) if cut else []
            after = await events_of(client, path, headers={"last-event-id": str(cut)})
            assert numbered(before)[:cut] + numbered(after) == kept
            assert after[-1][:2] == (None, "end")
        pages, number = [], 0
        while number is not None:
            page = (await client.get(f"/api/runs/{run_id}/events", params={"after": number, "limit": 3})).json()
            pages += [(one["number"], one["type"]) for one in page["events"]]
            number = page["next"]
        assert pages == [(number, name) for number, name, _ in kept]


async def test_pieces_come_between_the_events_that_they_belong_to(journal, gate):
    async with serving(app([waiter(gate)], journal=journal)) as client:
        run_id = await begin(client, "waiter", "go")

        logs = [[], [], []]

        async def started():
            return all("tool_started" in [name for _, name, _ in log] for log in logs)

        async with asyncio.TaskGroup() as group:
            for log in logs:
                group.create_task(events_of(client, f"/api/runs/{run_id}/stream", found=log))
            await until(started)
            gate.set()
        for log in logs:
            names = [name for _, name, _ in log]
            last = len(names) - 1 - names[::-1].index("step_prepared")
            said = [data["text"] for _, name, data in log[last:] if name == "delta"]
            assert "".join(said) == "It is over."
            assert names.index("model_replied", last) > max(at for at, name in enumerate(names) if name == "delta")
            assert numbered(log) == await told(journal, run_id)


async def _is_there(journal, run_id, name):
    try:
        return name in [type(event).__name__ for event in await journal.read(run_id)]
    except UnknownRun:
        return False


async def test_a_client_that_does_not_read_slows_nobody(journal, gate):
    many = [[("look", {"n": number})] for number in range(60)]
    from treadle import tool

    @tool(effect="read")
    def look(n: int) -> str:
        """Looks."""
        return f"{n}: " + "much " * 8_000

    agent = Agent(
        ScriptedModel([*many, "done"]),
        name="big",
        tools=[look],
        limits=Limits(steps=99),
        watch_progress=False,
        context=[],
    )
    async with serving(app([agent], journal=journal)) as client:
        run_id = await begin(client, "big", "go")
        async with client.stream("GET", f"/api/runs/{run_id}/stream") as slow:
            # It has read nothing yet, and far more is there than any buffer on the way holds.
            await run_when(client, run_id, "finished")
            read = [one async for one in parsed(slow)]
        assert numbered(read) == await told(journal, run_id)


async def test_a_client_that_goes_away_cancels_only_where_it_asked_for_that(journal, gate):
    async with serving(app([waiter(gate)], journal=journal)) as client:
        left, cancelled = await begin(client, "waiter", "go"), await begin(client, "waiter", "go")
        await events_of(client, f"/api/runs/{left}/stream", most=4)
        await events_of(client, f"/api/runs/{cancelled}/stream", most=4, on_disconnect="cancel")
        found = await run_when(client, cancelled, "cancelled")
        assert found["stop"]["detail"] == "by local"
        assert (await client.get(f"/api/runs/{left}")).json()["status"] == "running"
        gate.set()
        assert (await run_when(client, left, "finished"))["text"] == "It is over."


async def test_a_run_begun_as_a_stream_is_streamed_at_once(journal):
    async with serving(app([talker()], journal=journal)) as client:
        body = {"agent": "talker", "input": "hello"}
        async with client.stream("POST", "/api/runs", json=body, headers={"accept": "text/event-stream"}) as response:
            run_id = response.headers["x-treadle-run"]
            read = [one async for one in parsed(response)]
        assert numbered(read) == await told(journal, run_id)


async def test_what_waits_holds_no_task_and_what_nobody_follows_none_either(journal):
    served = app([clerk([]), talker()], journal=journal)
    async with serving(served) as client:
        before = len(asyncio.all_tasks())
        runs = [await begin(client, "clerk", "pay Ann 5") for _ in range(20)]
        for run_id in runs:
            await run_when(client, run_id, "waiting")
        await begin(client, "talker", "hello", conversation="c")

        async def quiet():
            return not served.runs.live.driven and len(asyncio.all_tasks()) <= before

        await until(quiet)


async def test_a_run_of_another_process_is_seen_followed_and_not_paused_from_here(tmp_path, gate):
    path = tmp_path / "runs.db"
    async with SqliteJournal(path) as mine, SqliteJournal(path) as theirs:
        other = waiter(gate, journal=theirs)
        async with serving(app([waiter(gate)], journal=mine)) as client, other.stream("go") as run:
            await until(lambda: _is_there(theirs, run.run_id, "ToolStarted"))
            found = (await client.get(f"/api/runs/{run.run_id}")).json()
            assert (found["status"], found["driven"]) == ("running", True)
            assert (await client.post(f"/api/runs/{run.run_id}/pause")).status_code == 409
            asyncio.get_running_loop().call_later(0.05, gate.set)
            assert numbered(await events_of(client, f"/api/runs/{run.run_id}/stream")) == await told(theirs, run.run_id)


async def test_a_run_that_no_server_began_is_left_for_whoever_did(journal):
    """Its process has died: somebody may go on with it, and a server that starts does not."""
    left = talker(journal=journal).start("hello")
    left.feed(left.prepare(left.next()))
    await left.commit()
    before = await journal.read(left.run_id)
    async with serving(app([talker()], journal=journal)) as client:
        begun = await begin(client, "talker", "hello")
        await run_when(client, begun, "finished")
        assert (await client.get(f"/api/runs/{left.run_id}")).json()["driven"] is False
        assert await journal.read(left.run_id) == before
        assert (await client.post(f"/api/runs/{left.run_id}/resume", json={})).is_success
        await run_when(client, left.run_id, "finished")


async def test_a_run_that_a_server_paused_as_it_stopped_goes_on_when_it_is_back_whoever_began_it(journal, gate):
    """A worker's run, say, that goes on here after an approval: nobody else will have it go on."""
    theirs = waiter(gate, journal=journal).start("go")
    theirs.feed(theirs.prepare(theirs.next()))
    await theirs.commit()
    first = app([waiter(gate)], journal=journal)
    async with serving(first) as client:
        assert (await client.post(f"/api/runs/{theirs.run_id}/resume", json={})).is_success
        await until(lambda: _is_there(journal, theirs.run_id, "ToolStarted"))
        first.stop()
        gate.set()
    stop = (await journal.list())[0].stop
    assert (stop.detail, stop.advice[:32]) == ("the server was stopped", "It goes on when the server is ba")
    async with serving(app([waiter(gate)], journal=journal)) as client:
        assert (await run_when(client, theirs.run_id, "finished"))["text"] == "It is over."


async def test_speak_pause_resume_and_cancel(journal, gate):
    async with serving(app([waiter(gate)], journal=journal)) as client:
        run_id = await begin(client, "waiter", "go")
        path = f"/api/runs/{run_id}"
        await until(lambda: _is_there(journal, run_id, "ToolStarted"))
        assert (await client.post(f"{path}/messages", json={"text": "hurry"})).is_success
        assert (await client.post(f"{path}/messages", json={"text": " "})).status_code == 422
        assert (await client.post(f"{path}/pause")).status_code == 202
        gate.set()
        paused = await run_when(client, run_id, "waiting")
        assert paused["stop"]["detail"] == "paused by local"
        assert (await client.post(f"{path}/messages", json={"text": "now?"})).status_code == 409
        assert (await client.post(f"{path}/resume", json={"message": "Go on."})).is_success
        await run_when(client, run_id, "finished")
        assert (await client.post(f"{path}/cancel")).json()["status"] == "finished"
        said = [event for event in await journal.read(run_id) if type(event).__name__ == "MessageAdded"]
        assert [(one.message.text, one.by) for one in said] == [("hurry", "local"), ("Go on.", "local")]


async def test_a_fork_has_other_words_and_stays_its_owners(journal):
    async with serving(app([talker(instructions="Be brief.")], journal=journal)) as client:
        run_id = await begin(client, "talker", "hello")
        await run_when(client, run_id, "finished")
        body = {"at": 0, "instructions": "Be long.", "message": "and more"}
        fork = (await client.post(f"/api/runs/{run_id}/fork", json=body)).json()
        done = await run_when(client, fork["id"], "finished")
        assert done["text"] == "2: and more"
        assert done["forked_from"] == run_id
        own = [
            event for event in await journal.read(fork["id"]) if type(event).__name__ in ("RunForked", "MessageAdded")
        ]
        assert [event.by for event in own] == ["local", "local"]
        step = (await client.get(f"/api/runs/{fork['id']}/steps/0")).json()
        assert [one["content"] for one in step["request"]["messages"]] == ["Be long.", "hello", "and more"]
        found = (await client.get("/api/diff", params={"a": run_id, "b": fork["id"]})).json()
        assert found["rows"][found["at"]]["what"] == "instructions"
        assert (await client.post(f"/api/runs/{fork['id']}/replay")).json()["difference"] is None


async def test_a_step_says_what_was_asked_and_what_changed(journal):
    async with serving(app([clerk([], instructions="Pay well.")], journal=journal)) as client:
        run_id = await begin(client, "clerk", "pay Ann 5")
        waiting = await run_when(client, run_id, "waiting")
        await client.post(f"/api/runs/{run_id}/decisions", json=decision(*waiting["pending"]))
        await run_when(client, run_id, "finished")
        first, second = [(await client.get(f"/api/runs/{run_id}/steps/{n}")).json() for n in (0, 1)]
        assert [one["role"] for one in first["request"]["messages"]] == ["system", "user"]
        assert [tool["name"] for tool in first["request"]["tools"]] == ["pay"]
        assert second["changed"] == {"same": 2, "removed": 0, "added": 2, "tools": [], "settings": False}
        assert second["request"]["messages"][-1]["content"] == "paid 5 to Ann"
        assert first["asked"][1]["by"] == "local"
        assert (await client.get(f"/api/runs/{run_id}/steps/9")).status_code == 404
        steps = (await client.get(f"/api/runs/{run_id}/steps")).json()
        assert [one["number"] for one in steps] == [0, 1]


async def test_limits_only_narrow_for_who_may_not_raise_them():
    from treadle.serve import User

    agent = Agent(ScriptedModel(["hello"]), name="small", limits=Limits(steps=3, usd=None, seconds=10))
    served = app([agent], journal=MemoryJournal(), auth=lambda _: User("ada"))
    async with serving(served) as client:
        asked = {"steps": 100, "seconds": 1, "tool_calls": None}
        run_id = await begin(client, "small", "go", limits=asked)
        found = await run_when(client, run_id, "finished", "stopped")
        assert (found["limits"]["steps"], found["limits"]["seconds"]) == (3, 1)
        refused = await client.post(f"/api/runs/{run_id}/fork", json={"at": 0, "model": "offline"})
        assert refused.status_code == 403


async def test_as_many_runs_as_may_be_are_under_way(gate):
    served = app([waiter(gate)], journal=MemoryJournal(), bounds=Bounds(runs=2))
    async with serving(served) as client:
        first = [await begin(client, "waiter", "go") for _ in range(2)]
        refused = await client.post("/api/runs", json={"agent": "waiter", "input": "go"})
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1
        gate.set()
        for run_id in first:
            await run_when(client, run_id, "finished")
        await begin(client, "waiter", "go")


async def test_a_run_that_cannot_begin_is_said_to_and_nothing_is_kept(journal):
    async with serving(app([talker()], journal=journal)) as client:
        for body, status in (
            ({"agent": "nobody", "input": "x"}, 404),
            ({"agent": "talker", "input": " "}, 422),
            ({"agent": "talker", "input": "x", "limits": {"steps": -1}}, 422),
            ({"agent": "talker", "input": "x", "stream": True}, 422),
            ({"agent": "talker"}, 422),
        ):
            answer = await client.post("/api/runs", json=body)
            assert (answer.status_code, "error" in answer.json()) == (status, True), body
        assert (await client.get("/api/runs")).json() == {"runs": [], "next": None}


async def test_runs_are_listed_in_pages_by_what_they_are(journal):
    async with serving(app([talker(), clerk([])], journal=journal)) as client:
        ids = [await begin(client, "talker", f"hello {n}") for n in range(5)]
        waiting = await begin(client, "clerk", "pay Ann 5")
        await run_when(client, waiting, "waiting")
        seen, before = [], None
        while True:
            query = {"limit": 2, "agent": "talker"} | ({"before": before} if before else {})
            page = (await client.get("/api/runs", params=query)).json()
            seen += [one["id"] for one in page["runs"]]
            before = page["next"]
            if before is None:
                break
        assert seen == ids[::-1]
        for query, expected in (({"status": "waiting"}, [waiting]), ({"search": "HELLO 3"}, [ids[3]])):
            assert [one["id"] for one in (await client.get("/api/runs", params=query)).json()["runs"]] == expected
        assert (await client.get("/api/runs", params={"before": "soon"})).status_code == 422
        assert (await client.delete(f"/api/runs/{ids[0]}")).status_code == 204
        assert (await client.get(f"/api/runs/{ids[0]}")).status_code == 404


async def test_a_run_is_exported_as_a_file_that_runs_nothing(journal, tmp_path):
    from treadle.journal import import_runs

    async with serving(app([talker()], journal=journal)) as client:
        run_id = await begin(client, "talker", "<script>alert(1)</script> ``` <img src=http://x/y>")
        await run_when(client, run_id, "finished")
        lines, markdown, page = [
            await client.get(f"/api/runs/{run_id}/export", params={"format": name})
            for name in ("jsonl", "markdown", "html")
        ]
        for one in (lines, markdown, page):
            assert one.headers["content-disposition"].startswith("attachment; ")
        (tmp_path / "run.jsonl").write_bytes(lines.content)
        with (tmp_path / "run.jsonl").open("rb") as file:
            assert await import_runs(MemoryJournal(), file) == [run_id]
        assert "<script" not in page.text
        assert "<img" not in page.text
        assert "````text\n" in markdown.text


async def test_agents_that_cannot_be_served_are_refused_when_the_app_is_made():
    for agents in ({}, "talker", [1], {"a/b": talker()}, [talker(), talker()]):
        with pytest.raises((Misuse, TypeError)):
            app(agents)
    with pytest.raises(Misuse, match="redact"):
        app([talker(journal=MemoryJournal(redact=str.upper))], journal=MemoryJournal())
    with pytest.raises(Misuse, match="different journals"):
        app({"a": talker(journal=MemoryJournal()), "b": talker(journal=MemoryJournal())})


@pytest.mark.parametrize("mode", ["native", "tool", "prompted"])
async def test_a_step_says_that_a_schema_was_sent_only_where_one_was(journal, mode):
    model = ScriptedModel([[("final_answer", {"result": 7})]] if mode == "tool" else ['{"result": 7}'])
    typed = Agent(model, name="typed", output=int, output_mode=mode)
    async with serving(app([typed], journal=journal)) as client:
        run_id = await begin(client, "typed", "how many?")
        assert (await run_when(client, run_id, "finished"))["output"] == 7
        request = (await client.get(f"/api/runs/{run_id}/steps/0")).json()["request"]
    assert (request["output_schema"] is not None) == (mode == "native")


async def test_the_seconds_of_a_step_are_without_the_week_for_which_it_waited():
    """They are part of those of its run, which are without pauses."""
    earlier, journal = MemoryJournal(), MemoryJournal()
    waiting = await clerk([], journal=earlier).run("pay Ann 5")
    events = [msgspec.structs.replace(event, at=event.at - 7 * 86_400) for event in await earlier.read(waiting.run_id)]
    await journal.append(waiting.run_id, 0, events)
    async with serving(app([clerk([])], journal=journal)) as client:
        run = f"/api/runs/{waiting.run_id}"
        (pending,) = (await client.get(run)).json()["pending"]
        await client.post(f"{run}/decisions", json=decision(pending))
        whole = await run_when(client, waiting.run_id, "finished")
        steps = (await client.get(f"{run}/steps")).json()
        first = (await client.get(f"{run}/steps/0")).json()["step"]
    assert sum(step["seconds"] for step in steps) <= whole["total"]["elapsed"] + 0.01
    assert first["seconds"] == steps[0]["seconds"]
