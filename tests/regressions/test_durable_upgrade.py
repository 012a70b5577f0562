"""Durable runs: what was begun with the code of an earlier commit goes on with the code of this one.

The earlier code is taken from the repository's history and run in processes of its own; where there is no history, the
journals that are kept in `tests/journal/recorded` stand for it.

- runs that wait, that were killed in a write, with runs below them that are still to come, on a budget
  -> test_a_run_of_an_earlier_commit_goes_on
- what is not known of them is asked, and nothing is done twice -> test_a_write_that_was_killed_is_not_made_again
- a run that cannot go on says why, and stays to be seen -> test_a_run_that_cannot_go_on_says_why_and_stays
- the earlier code meets a newer file -> test_an_earlier_commit_refuses_a_newer_file
- a later treadle brings a file up that this one has open, which wrote on -> test_a_file_that_is_brought_up_under_way
"""

import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from treadle import Agent, Budget, BudgetUnavailable, Misuse, SqliteJournal
from treadle.journal import JournalUnavailable, stuck_runs
from treadle.journal.database import VERSION
from treadle.kernel.events import FORMAT, NudgeGiven, RunStarted
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

REPOSITORY = Path(__file__).parents[2]
# Python 3.11.3 and before have no filters.
SAFELY: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
COMMITS = {"before durable runs": "47b9a09", "the one before": "HEAD~1"}

AGENTS = '''
import os, sys
from treadle import Agent, Budget, Limits, Price, SqliteJournal, ask_before, external_tool, tool
from treadle.testing import ScriptedModel

FOLDER, DIES = sys.argv[1], sys.argv[2] == "dies"

def did(what):
    with open(os.path.join(FOLDER, "did.txt"), "a") as file:
        print(what, file=file)

@tool
def pay(n: int) -> str:
    """Pay."""
    did(f"pay {n}")
    if DIES and n == 13:
        os._exit(9)
    return f"paid {n}"

@tool(effect="read")
def look(key: str) -> str:
    """Look."""
    did(f"look {key}")
    if DIES and key == "end":
        os._exit(9)
    return f"saw {key}"

ask = external_tool("ask", "Ask.", {"type": "object", "properties": {}}, wait=True)

def says(*turns):
    """Turns by the step, so that another process goes on where this one was."""
    turn = lambda request: turns[request.step] if request.step < len(turns) else "done"
    return ScriptedModel(turn, price=Price(1, 1))

def below(key):
    return Agent(says([("look", {"key": key})], "looked"), tools=[look], name=f"below_{key}")

def agents():
    journal = SqliteJournal(os.path.join(FOLDER, "j.db"))
    budget = Budget(tokens=1_000_000, per="user", name="all", path=os.path.join(FOLDER, "budget.db"))
    options = dict(journal=journal, budget=budget, on_interrupted="tell")
    both = [("below_end", {"task": "a"}), ("below_later", {"task": "b"})]
    return {
        "waits": Agent(says([("look", {"key": "a"}), ("pay", {"n": 1})]), tools=[look, pay], name="waits",
                       approvals=[ask_before("pay")], **options),
        "asks": Agent(says([("ask", {})]), tools=[ask], name="asks", **options),
        "limited": Agent(says(*[[("look", {"key": str(n)})] for n in range(4)]), tools=[look], name="limited",
                         limits=Limits(steps=2), on_limit="stop", **options),
        "killed": Agent(says([("pay", {"n": 12})], [("look", {"key": "b"}), ("pay", {"n": 13}), ("pay", {"n": 14})]),
                        tools=[look, pay], name="killed", **options),
        "below": Agent(says(both), tools=[below("end").as_tool(), below("later").as_tool()], name="below", **options),
    }
'''
BEGINS = """
agents()[sys.argv[3]].run_sync("go", user="anna")
"""
GOES_ON = """
import asyncio, json
from treadle import BudgetUnavailable
from treadle.journal import JournalUnavailable, stuck_runs
journal = SqliteJournal(os.path.join(FOLDER, "j.db"))

async def main():
    lines = {line.agent: line for line in await journal.list() if line.parent is None}
    stuck = sorted(one.run.agent for one in await stuck_runs(journal))
    told = {}
    for name, agent in agents().items():
        given = {"limits": Limits(steps=9)} if name == "limited" else {}
        if name in ("waits", "asks"):
            (waits,) = (await agent.resume(lines[name].run_id)).pending
            given = {"approve": [waits.key]} if name == "waits" else {"results": {waits.key: "yes"}}
        result = await agent.resume(lines[name].run_id, **given)
        results = [message.text for message in result.messages if message.role == "tool"]
        told[name] = [result.stop.reason, result.usage.total_tokens, results]
    await journal.check()
    spent = Budget(tokens=1_000_000, per="user", name="all", path=os.path.join(FOLDER, "budget.db")).spent("anna")
    print(json.dumps({"stuck": stuck, "told": told, "spent": spent.tokens, "held": spent.held_tokens,
                      "left": [one.run.agent for one in await stuck_runs(journal)]}))
asyncio.run(main())
"""
LISTS = """
import asyncio
from treadle.journal import JournalError
try:
    print(len(asyncio.run(SqliteJournal(os.path.join(FOLDER, "j.db")).list())))
except JournalError as error:
    print(error)
"""


def git(*arguments):
    return subprocess.run(["git", "-C", str(REPOSITORY), *arguments], capture_output=True, check=False)


@pytest.fixture(scope="module", params=COMMITS)
def earlier(request, tmp_path_factory):
    """The source of an earlier commit."""
    found = git("archive", COMMITS[request.param], "src")
    if found.returncode:
        pytest.skip("the repository's history is not here")
    folder = tmp_path_factory.mktemp("earlier")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(folder, **SAFELY)
    return folder / "src"


def program(source, text, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, "-c", AGENTS + text, *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)
    assert ran.returncode in (0, 9), ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def begun(earlier, tmp_path_factory):
    """A folder with what runs of the earlier commit have left behind."""
    folder = tmp_path_factory.mktemp("begun")
    for name in ("waits", "asks", "limited", "killed", "below"):
        program(earlier, BEGINS, folder, "dies", name)
    return folder


@pytest.fixture
def left(begun, tmp_path):
    """A copy of that folder."""
    return Path(shutil.copytree(begun, tmp_path / "left"))


def did(folder):
    return (folder / "did.txt").read_text(encoding="utf-8").splitlines()


THIS = REPOSITORY / "src"


def test_a_run_of_an_earlier_commit_goes_on(left):
    before = did(left)
    found = json.loads(program(THIS, GOES_ON, left, "lives"))
    assert found["stuck"] == ["below", "killed"]
    assert found["left"] == []
    assert {name: told[0] for name, told in found["told"].items()} == dict.fromkeys(found["told"], "answered")
    assert found["told"]["waits"][2] == ["saw a", "paid 1"]
    assert found["told"]["asks"][2] == ["yes"]
    assert found["told"]["below"][2] == ["looked", "looked"]
    assert found["spent"] == sum(told[1] for told in found["told"].values())
    assert found["held"] == 0
    # Whether what was read beside the call that was killed had been written by then is chance; it may be read again.
    after = [one for one in did(left)[len(before) :] if one not in ("look b", "look later")]
    assert sorted(after) == sorted(["look 2", "look 3", "look end", "pay 1", "pay 14"])
    assert {"look b", "look later"} <= set(did(left))


def test_a_write_that_was_killed_is_not_made_again(left):
    told = json.loads(program(THIS, GOES_ON, left, "lives"))["told"]["killed"][2]
    assert (told[0], told[1], told[3]) == ("paid 12", "saw b", "paid 14")
    assert "unknown" in told[2]
    assert did(left).count("pay 13") == 1


async def test_a_run_that_cannot_go_on_says_why_and_stays(left):
    async with SqliteJournal(left / "j.db") as journal:
        lines = {line.agent: line for line in await journal.list() if line.parent is None}
        lax = Agent(ScriptedModel(["done"]), name="waits", journal=journal)
        with pytest.raises(Misuse, match=r"started under stricter rules.*this agent lacks: ask pay"):
            await lax.resume(lines["waits"].run_id, message="go")
        assert sorted(one.run.agent for one in await stuck_runs(journal)) == ["below", "killed"]
        again = {line.agent: line for line in await journal.list() if line.parent is None}
        assert again["waits"].status == "waiting"


def test_an_earlier_commit_refuses_a_newer_file(left, earlier):
    program(THIS, GOES_ON, left, "lives")
    told = program(earlier, LISTS, left, "lives").strip()
    assert told.isdigit() or f"was written by a later treadle (file version {VERSION}" in told
    program(THIS, LISTS, left, "lives")


@pytest.mark.parametrize("kind", ["journal", "budget", "reader"])
async def test_a_file_that_is_brought_up_under_way(tmp_path, kind):
    path = tmp_path / "file.db"
    first = RunStarted(at=1.0, run_id="r", messages=(), format=FORMAT)
    budget = Budget(tokens=100, path=path)
    async with SqliteJournal(path) as journal:
        if kind == "budget":
            budget.spent()
        else:
            await journal.append("r", 0, [first])
            assert await journal.read("r") == [first]
        with closing(sqlite3.connect(path)) as later:
            later.execute("PRAGMA user_version = 99")

        async def used():
            if kind == "budget":
                budget.spent()
            elif kind == "reader":
                await journal.read("r")
            else:
                await journal.append("r", 1, [NudgeGiven(text="on")])

        with pytest.raises((JournalUnavailable, BudgetUnavailable), match=r"later treadle.*Update treadle"):
            await used()
    budget.close()
