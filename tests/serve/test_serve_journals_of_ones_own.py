"""A server whose journal fails for a moment, as its database words it, or has a run that cannot be read.

A run that was left then was not taken up any more: the failure was taken for one of the run, or for the end of the
server. A damaged run of a conversation had the server ask for ever, before it came to the runs of others.
"""

import pytest
from served import serving, until
from test_serve_users import as_, begin, ended, served

from treadle import Agent, MemoryJournal
from treadle.journal import JournalDamaged
from treadle.journal.errors import Damage
from treadle.kernel.events import Event
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class Lost(ConnectionError):
    """What a driver of a database raises."""


class Kept(MemoryJournal):
    """The read of that number fails, or all do while it is away; of a run that is damaged each does."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = self.fails = 0
        self.damaged = self.unreadable = ""
        self.away = False

    async def read(self, run_id: str, start: int = 0) -> list[Event]:
        if run_id == self.damaged:
            raise JournalDamaged([Damage(run_id, 1, "it was altered")])
        self.reads += 1
        if self.away or self.reads == self.fails or run_id == self.unreadable:
            raise Lost("the server closed the connection")
        return await super().read(run_id, start)

    async def list(self, *given, **more):
        if self.away:
            raise Lost("the server closed the connection")
        return await super().list(*given, **more)


def talker(journal: MemoryJournal) -> Agent:
    return Agent(ScriptedModel(lambda request: request.messages[-1].text), name="talker", journal=journal)


async def left_in_the_middle(*said: tuple[str, str | None]) -> tuple[Kept, list[str]]:
    """A journal whose runs were begun, each in its conversation, and nothing was done for them when the server died."""
    whole, journal, runs = MemoryJournal(), Kept(), []
    async with serving(served([talker(whole)], journal=whole)) as client:
        for text, conversation in said:
            more = {} if conversation is None else {"conversation": conversation}
            runs.append(await begin(client, "ada", "talker", text, **more))
            await ended(client, "ada", runs[-1], "finished")
            await journal.append(runs[-1], 0, (await whole.read(runs[-1]))[:1])
    return journal, runs


async def stands(journal: Kept, run_id: str, status: str) -> bool:
    return any(line.status == status for line in await journal.list() if line.run_id == run_id)


@pytest.mark.parametrize("fails", range(1, 6))
async def test_a_run_that_was_left_goes_on_once_the_journal_can_be_read_again(fails, monkeypatch):
    monkeypatch.setattr("treadle.serve.carrying._AGAIN", 0.01)
    journal, (run_id,) = await left_in_the_middle(("hello", None))
    journal.fails = fails
    async with serving(served([talker(journal)], journal=journal)):
        await until(lambda: stands(journal, run_id, "finished"))


async def test_a_damaged_run_of_a_conversation_has_no_run_of_others_wait(monkeypatch):
    monkeypatch.setattr("treadle.serve.carrying._AGAIN", 0.01)
    journal, (others, damaged, beside) = await left_in_the_middle(("mine", None), ("one", "plans"), ("two", "plans"))
    journal.damaged = damaged
    async with serving(served([talker(journal)], journal=journal)) as client:
        assert (await ended(client, "ada", others, "finished"))["text"] == "mine"
        # Nobody can tell whether it was begun beside the damaged one.
        assert (await client.get(f"/api/runs/{beside}", **as_("ada"))).json()["status"] == "left"


async def test_a_run_of_which_the_journal_fails_each_time_has_no_other_wait(monkeypatch):
    """The server asked for it for ever, said nothing of it, and never came to the others."""
    monkeypatch.setattr("treadle.serve.carrying._AGAIN", 0.01)
    journal, (older, newest) = await left_in_the_middle(("mine", None), ("yours", None))
    journal.unreadable = newest
    async with serving(served([talker(journal)], journal=journal)):
        await until(lambda: stands(journal, older, "finished"))
        journal.unreadable = ""
        await until(lambda: stands(journal, newest, "finished"))


ROUTES = ("/api/runs", "/api/runs/{run}", "/api/runs/{run}/steps/0", "/api/conversations", "/api/conversations/plans")


async def test_a_journal_that_is_away_is_told_as_that_on_every_route(caplog):
    """And why in the log: whoever runs the server read that there had been a 503."""
    journal = Kept()
    async with serving(served([talker(journal)], journal=journal)) as client:
        run_id = await begin(client, "ada", "talker", "hello", conversation="plans")
        await ended(client, "ada", run_id, "finished")
        journal.away = True
        for route in ("/health", *ROUTES):
            caplog.clear()
            answer = await client.get(route.format(run=run_id), **as_("ada"))
            assert (answer.status_code, answer.json()["error"]["kind"]) == (503, "unavailable"), (route, answer.text)
            assert "a request failed: the journal" in caplog.text, route
        journal.away = False


async def test_an_answer_asked_for_anew_while_the_journal_is_away_is_not_said_to_follow_on_no_run():
    """It was refused as a conflict, as if the run before it had not ended, and a browser does not try that again."""
    journal, path, told = Kept(), "/ai-sdk/talker", []
    said = [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]
    async with serving(served([talker(journal)], journal=journal)) as client:
        for number in range(1, 10):
            journal.fails, chat = 0, {"id": f"c{number}", "trigger": "submit-message"}
            first = await client.post(path, json={**chat, "messages": said}, **as_("ada"))
            answer = {**said[0], "id": first.headers["x-treadle-run"], "role": "assistant"}
            asked = {**chat, "messages": [*said, answer, {**said[0], "id": "m2"}]}
            assert (await client.post(path, json=asked, **as_("ada"))).status_code == 200
            journal.reads, journal.fails = 0, number
            anew = {**asked, "trigger": "regenerate-message"}
            told.append((await client.post(path, json=anew, **as_("ada"))).status_code)
        assert (told[-1], {*told}) == (200, {200, 503}), told
