"""`treadle resume`, `approve` and `deny` of a run whose conversation has gone on without it."""

import asyncio
from typing import Any

from treadle import Agent, Conversation, SqliteJournal, tool
from treadle.testing import ScriptedModel

SHOP = '''
from treadle import Agent, tool
from treadle.testing import ScriptedModel

@tool(effect="write", needs_approval=True)
def pay() -> str:
    """Pays."""
    with open("paid.txt", "a") as file:
        file.write("paid")
    return "paid"

def turn(request):
    return "it is paid" if request.messages[-1].role == "tool" else [("pay", {})]

clerk = Agent(ScriptedModel(turn), name="clerk", tools=[pay])
'''


@tool(effect="write", needs_approval=True)
def pay() -> str:
    """Pays."""
    raise AssertionError


def test_the_command_line_has_no_run_go_on_that_its_conversation_has_left_behind(treadle: Any) -> None:
    (treadle.folder / "shop.py").write_text(SHOP, encoding="utf-8")
    ids = asyncio.run(_left_behind(treadle))
    for command in ("approve", "deny", "resume"):
        refused = treadle(command, ids[0], "--agent", "shop:clerk")
        assert (refused.code, refused.out) == (2, "")
        told = " ".join(refused.err.split())
        assert f"conversation 'c' has gone on from run {ids[0]}: {ids[1]}." in told
        assert "--beside" in told
    assert not (treadle.folder / "paid.txt").exists()
    insisted = treadle("approve", ids[0], "--agent", "shop:clerk", "--beside")
    assert (insisted.code, insisted.out.strip()) == (0, "it is paid")
    assert (treadle.folder / "paid.txt").read_text() == "paid"


def test_what_is_printed_of_a_run_beside_its_conversation_works_as_it_is_pasted(treadle: Any) -> None:
    twice = SHOP.replace('return "it is paid" if request.messages[-1].role == "tool" else', "return")
    (treadle.folder / "shop.py").write_text(twice, encoding="utf-8")
    ids = asyncio.run(_left_behind(treadle))
    waits = treadle("approve", ids[0], "--agent", "shop:clerk", "--beside")
    assert waits.code == 4
    (printed,) = [line for line in waits.err.splitlines() if line.startswith("refuse it: ")]
    refused = treadle(*printed.removeprefix("refuse it: treadle ").split())
    assert refused.code == 4, refused.err


async def _left_behind(treadle: Any) -> list[str]:
    """Two runs of one conversation, the first of which waits."""
    treadle.journal.parent.mkdir(parents=True)
    async with SqliteJournal(treadle.journal) as journal:
        clerk = Agent(ScriptedModel([[("pay", {})]]), name="clerk", tools=[pay], journal=journal)
        talker = Agent(ScriptedModel(["hello"]), name="clerk", journal=journal)
        first = await clerk.run("pay", conversation=Conversation(name="c"), user="ann")
        second = await talker.run("hi", conversation=Conversation(name="c"), user="ann")
        return [first.run_id, second.run_id]
