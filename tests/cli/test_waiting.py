"""What a person who decides is shown, with whose agent a run goes on, and the commands that are printed for it."""

import json
import re
import shlex
import subprocess
import sys
from typing import Any

import pytest
from msgspec.structs import replace

from treadle.cli.terminal import visible
from treadle.journal import SqliteJournal
from treadle.kernel.events import RunStarted

SHOP = '''
from treadle import Agent, AskUser, SqliteJournal, ask_before, tool
from treadle.models import AssistantMessage, ModelReply, ToolCall
from treadle.testing import ScriptedModel

@tool(effect="read")
def search(text: str) -> dict:
    """Searches."""
    return {"found": "probably Bonn\\u202e"}

@tool(effect="read")
def broken() -> str:
    """Fails."""
    raise ValueError("no way")

@tool
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"

def check(call, result):
    return AskUser(f"{call.name} is not sure.\\nWhat is right?") if call.name == "search" else None

def asks(*calls):
    def turn(request):
        told = [message.text for message in request.messages if message.role == "tool"]
        return list(calls) if not told else "done: " + " / ".join(told)
    return ScriptedModel(turn, name="shop")

def odd(request):
    if len(request.messages) > 1:
        return "done"
    calls = (ToolCall("a=b $x", "pay", '{"amount": 1}'), ToolCall("a", "pay", '{"amount": 2}'))
    return ModelReply(AssistantMessage(calls), finish="tool_calls")

rules = [ask_before("pay", when=lambda arguments: arguments["amount"] > 0)]
below = Agent(asks(("search", {"text": "capital"}), ("pay", {"amount": 3})), tools=[search, pay], approvals=rules,
              on_tool_result=check, name="below")
top = Agent(asks(("below", {"task": "x"})), tools=[below.as_tool("below")], name="top")
quirky = Agent(ScriptedModel(odd), tools=[pay], approvals=rules)

if __name__ == "__main__":
    quirky.with_journal(SqliteJournal("my runs.db")).run_sync("go")
'''
ONE = """
from shop import Agent, asks, broken, pay, rules

agent = Agent(asks(("pay", {"amount": 1}), ("broken", {})), tools=[pay, broken], approvals=rules)
"""


@pytest.fixture
def shop(treadle: Any) -> Any:
    """`treadle`, beside modules with agents."""
    (treadle.folder / "shop.py").write_text(SHOP, encoding="utf-8")
    (treadle.folder / "one.py").write_text(ONE, encoding="utf-8")
    return treadle


def hint(said: str, beginning: str) -> list[str]:
    """The words of the command that was printed after `beginning`, without the first."""
    found = re.search(rf"^{beginning}: treadle (.*)$", said, re.MULTILINE)
    assert found, said
    return shlex.split(found[1])


def quirky_run(shop: Any) -> None:
    subprocess.run([sys.executable, "shop.py"], cwd=shop.folder, env=shop.environment, timeout=60, check=True)


def test_what_cannot_be_seen_is_written_as_an_escape() -> None:
    assert visible("a b é 漢 😀 \\n") == "a b é 漢 😀 \\n"
    hidden = "\u202e\u2066\u200b\ufeff\u00ad\u00a0\u2028\x1b\x7f\n\ud800\u3164\ufe0f\u034f\U000e0041"
    shown = visible(hidden)
    assert shown.isascii()
    assert shown.isprintable()
    assert json.loads(f'"{shown}"') == hidden


@pytest.mark.parametrize("target", ["one", "one.py", "one:agent", "one.py:agent"])
def test_ask_and_approve_take_an_agent_of_the_users(shop: Any, target: str) -> None:
    asked = shop("ask", "go", "--agent", target)
    assert asked.code == 4
    assert "one" not in shop("show", "last").out
    done = shop(*hint(asked.err, "allow it"))
    assert (done.code, done.out.partition(" / ")[0]) == (0, "done: paid 1")
    assert 'approving call_0_0: pay({"amount":1}) [write]' in done.err


def test_chat_takes_an_agent_of_the_users(shop: Any) -> None:
    done = shop("chat", "-a", "one", input="go\nn no\n")
    assert done.code == 0
    assert "not approved" in done.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--agent", "one", "--model", "offline"], "leave out --model"),
        (["--agent", "one", "--tools", "one", "--skill", "basics"], "leave out --skill and --tools"),
        (["--agent", "one", "--on-limit", "stop"], "leave out --instructions and --on-limit"),
        (["--agent", "shop"], "there are below, top, quirky: say which, such as shop:below"),
        (["--agent", "shop:pay"], "not a treadle.Agent"),
        (["--agent", "script"], "script has none"),
        (["--agent", "shop.py:quirk"], "did you mean 'quirky'?"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_agent_that_cannot_be_taken_is_refused(shop: Any, options: list[str], said: str) -> None:
    done = shop("ask", "go", *options)
    assert done.code == 2
    assert said in " ".join(done.err.split())


def test_a_run_of_a_script_goes_on_with_the_agent_of_its_file(shop: Any) -> None:
    quirky_run(shop)
    done = shop("approve", "last", "--journal", "my runs.db", "--agent", "shop:quirky")
    assert done.code == 0, done.err


def test_hints_hold_for_any_id_and_any_journal(shop: Any) -> None:
    quirky_run(shop)
    asked = shop("resume", "last", "--journal", "my runs.db", "--agent", "shop.py:quirky")
    assert 'a=b%20$x: pay({"amount":1}) [write] asks for approval.' in asked.err
    one = hint(asked.err, "one of them")
    assert one[2] == "a=b%20$x"
    left = shop(*one)
    assert left.code == 4
    assert left.err.count("a=b") == 1, "as what is approved, and not as what waits"
    given = shop("resume", "last", "--result", "a=5", "--journal", "my runs.db", "--agent", "shop.py:quirky")
    assert given.code == 0, given.err


def test_a_call_is_named_by_its_key_too_and_its_result_may_hold_any_sign(shop: Any) -> None:
    quirky_run(shop)
    words = ("--journal", "my runs.db", "--agent", "shop:quirky")
    pending = json.loads(shop("resume", "last", "--json", *words).out)["pending"]
    assert shop("approve", "last", f"{pending[0]['call_id']}#00000000", *words).code == 2
    assert shop("resume", "last", "--result", "x=1=2", *words).code == 2
    assert shop("deny", "last", pending[1]["key"], *words).code == 4
    done = shop("resume", "last", "--result", f"{pending[0]['call_id']}=c=d", *words)
    assert done.code == 0, done.err
    assert "-> c=d" in shop("show", "last", "--journal", "my runs.db").out


def test_what_a_sub_run_waits_for_is_shown_whole_and_decided_above(shop: Any) -> None:
    asked = shop("ask", "go", "--agent", "shop:top")
    assert asked.code == 4
    for said in (asked.err, shop("show", "last").err):
        assert 'call_0_0/call_0_0: search({"text":"capital"})' in said
        assert '  | {"found":"probably Bonn\\u202e"}\n' in said
        assert "  | search is not sure.\n  | What is right?\n" in said
    given = shop(*[word.replace("VALUE", "Berlin") for word in hint(asked.err, "give its result")])
    assert given.code == 4, given.err
    done = shop(*hint(given.err, "allow it"))
    assert (done.code, done.out) == (0, "done: done: Berlin / paid 3\n")


def test_a_sub_run_is_not_decided_by_itself(shop: Any) -> None:
    kept = ("--journal", "my runs.db")
    shop("ask", "go", "--agent", "shop:top", *kept)
    runs = [run["run_id"] for run in json.loads(shop("runs", "--json", *kept).out)]
    below, above = max(runs, key=len), min(runs, key=len)
    assert f"treadle show {above} --journal 'my runs.db'" in shop("show", below, *kept).err
    for verb in ("approve", "deny", "resume"):
        done = shop(verb, below, "--agent", "shop:below", *kept)
        assert done.code == 2
        assert f"works for run {above}" in done.err
        assert f"(treadle show {above} --journal 'my runs.db' says what it waits for)" in done.err
    refused = shop("ask", "And now?", "--continue", above, "--agent", "shop:top", *kept)
    assert f"see: treadle show {above} --journal 'my runs.db'\n" in refused.err


def test_a_call_that_waits_for_its_result_is_not_decided_on(shop: Any) -> None:
    shop("ask", "go", "--agent", "shop:top")
    refused = shop("approve", "last", "call_0_0/call_0_0", "--agent", "shop:top")
    assert "with treadle resume in place of treadle approve, by --result call_0_0/call_0_0=VALUE\n" in refused.err
    assert shop("deny", "last", "--agent", "shop:top").code == 4
    for verb in ("approve", "deny"):
        words = f"with treadle resume in place of treadle {verb}, by --result call_0_0/call_0_0=VALUE"
        said = f"waits for results, and not for a decision: call_0_0/call_0_0 (search); give it {words}\n"
        assert said in shop(verb, "last", "--agent", "shop:top").err


def test_a_tool_that_raises_leaves_the_terminal_alone(shop: Any) -> None:
    asked = shop("ask", "go", "--agent", "one")
    assert asked.code == 4
    assert "ValueError" not in asked.err


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["agent", "treadle"])
async def test_a_run_of_treadle_0_1_goes_on_without_an_agent_only_if_it_was_the_command_lines(
    shop: Any, name: str
) -> None:
    shop("ask", "pay", "--model", "script:paying", "--tools", "script")
    async with SqliteJournal(shop.journal) as journal:
        [info] = await journal.list(10)
        first, *rest = await journal.read(info.run_id)
        assert isinstance(first, RunStarted)
        old = replace(first, run_id="old", agent=name, rules=None, hooks=None, writes=())
        await journal.append("old", 0, [old, *rest])
    done = shop("approve", "old", "--model", "script:paying", "--tools", "script")
    if name == "treadle":
        assert done.code == 0, done.err
    else:
        assert done.code == 2
        assert "--agent" in done.err
        assert "treadle 0.1" in done.err
        assert not (shop.folder / "paid.txt").exists()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
class TestAtATerminal:
    def test_ask_asks_there_and_then(self, terminal: Any) -> None:
        asked = terminal("ask", "pay", "--model", "script:paying", "--tools", "script")
        asked.until('pay({"amount":40}) [write] asks for approval.')
        asked.until("e(dit)>")
        asked.type('e {"amount": 7}\n')
        asked.until('The tool said: A person put these arguments in place of yours: {"amount":7}')
        asked.until("paid 7")
        assert asked.end() == 0

    def test_whoever_leaves_without_an_answer_is_told_how_to_give_it_later(self, treadle: Any, terminal: Any) -> None:
        asked = terminal("ask", "pay", "--model", "script:paying", "--tools", "script")
        asked.until("e(dit)>")
        asked.type("\x04")
        asked.until("allow it: treadle approve")
        assert asked.end() == 4
        assert not (treadle.folder / "paid.txt").exists()
