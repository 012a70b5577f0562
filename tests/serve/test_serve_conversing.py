"""A conversation goes on with one run at a time, whoever begins it or takes one up, and nothing said in it is lost."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from depth import deep
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from served import decision, payer, run_when, serving, talker, until, waiter
from two_apps import Paced, asked, lifespan

from treadle import MemoryJournal, PostgresJournal, SqliteJournal
from treadle.kernel.events import MessageAdded, RunPaused, RunResumed
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import UserMessage
from treadle.serve import app
from treadle.serve.live import STOPPED

pytestmark = pytest.mark.anyio


def body(text="go", agent="waiter", conversation="c"):
    return {"agent": agent, "input": text, "conversation": conversation}


async def lines(client, conversation="c"):
    """The runs of a conversation, and how they stand, oldest first."""
    runs = (await client.get("/api/runs", params={"conversation": conversation})).json()["runs"]
    return [(one["id"], one["status"]) for one in reversed(runs)]


async def left(journal, like, name, text, at):
    """A run as a server leaves it that dies when it has written it; `like` is another of its conversation."""
    events = await journal.read(like)
    said = fold_all([one for one in events if one.at <= at]).messages
    last = replace(events[0].messages[-1], content=text)
    await journal.append(name, 0, [replace(events[0], run_id=name, messages=(*said, last), at=at)])


@pytest.mark.parametrize("take_up", [True, False])
async def test_what_was_said_after_a_run_had_ended_is_answered_although_that_one_was_moved_on_since(tmp_path, take_up):
    """As `treadle resume` of the command line moves it on, or a library does, after a crash between two writes."""
    name = "20990101-000000-0000000001"
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        agent = talker()
        async with serving(app([agent], journal=journal)) as client:
            first = (await client.post("/api/runs", json=body("hi", "talker"))).json()["id"]
            ended = (await run_when(client, first, "finished"))["updated"]
        await left(journal, first, name, "and this?", ended + 0.001)
        await asyncio.sleep(0.01)
        moved_on = await agent._with(lambda config: replace_journal(config, journal)).resume(first, message="more")
        assert moved_on.events[-1].at > ended + 0.001
        async with serving(app([agent], journal=journal, take_up=take_up)) as client:
            if not take_up:
                assert (await client.post(f"/api/runs/{name}/resume", json={})).status_code == 200
            assert "and this?" in (await run_when(client, name, "finished"))["text"]
            assert await lines(client) == [(first, "finished"), (name, "finished")]


def replace_journal(config, journal):
    import dataclasses

    return dataclasses.replace(config, journal=journal)


async def test_a_run_that_was_begun_beside_another_is_there_and_says_what_to_do(tmp_path):
    """Its server died before it looked; nobody was told that it had begun."""
    gate, name = asyncio.Event(), "20990101-000000-0000000001"
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        async with serving(app([waiter(gate)], journal=journal, grace=0.1)) as client:
            first = (await client.post("/api/runs", json=body())).json()["id"]
            at = (await run_when(client, first, "running"))["started"]
            await left(journal, first, name, "lost?", at + 0.001)
        gate.set()
        async with serving(app([waiter(gate)], journal=journal)) as client:
            await run_when(client, first, "finished")
            beside = await run_when(client, name, "cancelled")
            assert beside["question"] == "lost?"
            assert "under way" in beside["stop"]["detail"]
            assert "Say it again" in beside["stop"]["advice"]
            told = (await client.get("/api/conversations/c")).json()
            # It goes on from the other, and has both on its page.
            assert (told["run"]["id"], [one["id"] for one in told["runs"]]) == (first, [name, first])
            again = (await client.post("/api/runs", json=body("lost?"))).json()["id"]
            assert "it has come" in str((await run_when(client, again, "finished"))["messages"])


async def test_a_run_that_has_paused_before_its_first_step_is_not_taken_for_one_that_nobody_was_told_of(tmp_path):
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        async with serving(app([talker()], journal=journal)) as client:
            first = (await client.post("/api/runs", json=body("hi", "talker"))).json()["id"]
            await run_when(client, first, "finished")
            events = await journal.read(first)
        name = "20990101-000000-0000000001"
        begun = replace(events[0], run_id=name, at=events[0].at + 1e-5)
        await journal.append(name, 0, [begun, RunPaused(STOPPED, at=begun.at)])
        async with serving(app([talker()], journal=journal)) as client:
            await run_when(client, name, "finished")


async def test_a_decision_on_a_run_that_its_conversation_has_left_behind_is_refused_as_its_resumption_is():
    paid, journal = [], MemoryJournal()
    served = app([payer(paid), talker()], journal=journal)
    async with serving(served) as client:
        first = (await client.post("/api/runs", json=body("pay", "payer"))).json()["id"]
        (pending,) = (await run_when(client, first, "waiting"))["pending"]
        # As a program does that does not ask the server.
        (begun, *_) = await journal.read(first)
        name = "20990101-000000-0000000001"
        await journal.append(name, 0, [replace(begun, run_id=name, at=begun.at + 1e-5, origin="")])
        for path, what in (("decisions", decision(pending)), ("resume", {"message": "go on"})):
            answer = await client.post(f"/api/runs/{first}/{path}", json=what)
            assert answer.status_code == 409
            assert f"has gone on from run {first}: {name}" in answer.json()["error"]["message"]
        assert paid == []
        # To end it is always possible.
        assert (await client.post(f"/api/runs/{first}/cancel")).status_code == 200


@pytest.fixture(params=["sqlite", "postgres"])
async def journals(request, tmp_path):
    """Two journals of two processes over the same runs."""
    async with AsyncExitStack() as stack:
        if request.param == "sqlite":
            made = [SqliteJournal(tmp_path / "runs.db") for _ in range(2)]
        else:
            server = request.getfixturevalue("server")
            made = [PostgresJournal(server.dsn(), schema=tmp_path.name[-30:]) for _ in range(2)]
        yield [await stack.enter_async_context(one) for one in made]


async def test_of_two_servers_that_begin_in_a_conversation_at_one_moment_one_does(journals, gate):
    served = [app([waiter(gate)], journal=journal, take_up=False) for journal in journals]
    async with serving(served[0]) as here, serving(served[1]) as there:
        for number in range(8):
            posts = [client.post("/api/runs", json=body(conversation=f"c{number}")) for client in (here, there)]
            answers = await asyncio.gather(*posts)
            assert sorted(one.status_code for one in answers) == [201, 409]
            (won,) = [one.json()["id"] for one in answers if one.status_code == 201]
            assert await lines(here, f"c{number}") == [(won, "running")]
        gate.set()


async def test_of_two_servers_one_of_which_takes_up_and_one_of_which_begins_one_does(journals):
    served = [app([talker()], journal=journal, take_up=False) for journal in journals]
    async with serving(served[0]) as here, serving(served[1]) as there:
        for number in range(5):
            told = body("hi", "talker", f"c{number}")
            first = (await here.post("/api/runs", json=told)).json()["id"]
            await run_when(there, first, "finished")
            goes_on = here.post(f"/api/runs/{first}/resume", json={"message": "more"})
            answers = await asyncio.gather(goes_on, there.post("/api/runs", json=told))
            codes = [one.status_code for one in answers]

            async def over(name=f"c{number}"):
                found = await lines(here, name)
                return found if all(status == "finished" for _, status in found) else None

            runs = await until(over)
            texts = [(await here.get(f"/api/runs/{run_id}")).json()["text"] for run_id, _ in runs]
            # One after the other is fine; what is said by both stands in the last of them.
            assert codes in ([200, 409], [409, 201], [200, 201])
            assert texts[-1].startswith("3:" if codes == [200, 201] else "2:"), (codes, texts)


paces = st.lists(st.integers(0, 6), min_size=2, max_size=60)


@settings(max_examples=deep(25), deadline=None)
@given(pace=st.tuples(paces, paces), early=st.integers(0, 5), before=st.booleans())
def test_of_two_that_begin_in_a_conversation_one_does_in_whatever_order_they_write_and_look(pace, early, before):
    async def crossed():
        shared, gate = MemoryJournal(), asyncio.Event()
        apps = [app([waiter(gate), talker()], journal=Paced(shared, one), take_up=False) for one in pace]
        async with lifespan(apps[0]), lifespan(apps[1]):
            if before:
                await asked(apps[0], "POST", "/api/runs", body("hi", "talker"))
                while any(one.runs.live.driven for one in apps):  # noqa: ASYNC110 - it has no event for that
                    await asyncio.sleep(0)

            async def later():
                for _ in range(early * 10):
                    await asyncio.sleep(0)
                return await asked(apps[1], "POST", "/api/runs", body())

            answers = await asyncio.gather(asked(apps[0], "POST", "/api/runs", body()), later())
            assert sorted(status for status, _ in answers) == [201, 409], answers
            gate.set()

    asyncio.run(crossed())


class Between(SqliteJournal):
    """Something happens right before it says who has a run."""

    happens = None

    async def holders(self, run_ids):
        if self.happens is not None:
            self.happens, happens = None, self.happens
            await happens()
        return await super().holders(run_ids)


async def test_a_run_that_goes_on_and_ends_while_a_server_looks_at_it_is_in_the_way_of_the_next(tmp_path):
    """Its lease was free again when that was looked at, and what it had said was not looked at any more."""
    async with SqliteJournal(tmp_path / "runs.db") as one, Between(tmp_path / "runs.db") as two:
        served = [app([talker()], journal=journal, take_up=False) for journal in (one, two)]
        async with serving(served[0]) as here, serving(served[1]) as there:
            told = body("hi", "talker")
            first = (await here.post("/api/runs", json=told)).json()["id"]
            await run_when(there, first, "finished")

            async def goes_on():
                """As another process has it that looked before this one had begun, and is done by now."""
                events = await one.read(first)
                at = events[-1].at
                more = [RunResumed(at=at), MessageAdded(UserMessage("more"), at=at), events[-1]]
                await one.append(first, len(events), more)

            two.happens = goes_on
            answer = await there.post("/api/runs", json=told)
            assert (answer.status_code, two.happens) == (409, None)
            assert await lines(here) == [(first, "finished")]


async def test_a_server_whose_clock_is_behind_begins_nothing_that_the_conversation_would_forget():
    journal = MemoryJournal()
    async with serving(app([talker()], journal=journal)) as client:
        first = (await client.post("/api/runs", json=body("hi", "talker"))).json()["id"]
        await run_when(client, first, "finished")
        events = [replace(one, at=one.at + 50) for one in await journal.read(first)]
        await journal.append("ahead", 0, [replace(events[0], run_id="ahead"), *events[1:]])
        answer = await client.post("/api/runs", json=body("and?", "talker"))
        assert (answer.status_code, "clocks" in answer.text) == (503, True)
        assert 40 < int(answer.headers["retry-after"]) <= 50
        assert [run_id for run_id, _ in await lines(client)] == [first, "ahead"]
