"""`treadle fork`, `replay`, `diff`, `watch`, `stats` and `show --waterfall`, each as a person types it."""

import json
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

SCRIPT = '''
import asyncio
from pathlib import Path
from treadle import Agent, Limits, Price, Usage, ask_before, tool
from treadle.testing import ScriptedModel

@tool(effect="read")
def look(what: str) -> str:
    """Looks at something."""
    return f"saw {what}"

@tool
def buy(what: str) -> str:
    """Buys something."""
    with open("bought.txt", "a") as file:
        file.write(f"{what}\\n")
    return f"bought {what}"

def says(request):
    last = request.messages[-1]
    if last.role == "user" and len(request.messages) > 1:
        return f"As you say: {last.text}"
    if request.step == 0:
        return [("look", {"what": "tea"}), ("buy", {"what": "tea"})]
    return f"Then {last.text}."

model = ScriptedModel(says, name="small", usage=Usage(123456, 789), price=Price(3, 15))
other = ScriptedModel(says, name="other")
agent = Agent(model, tools=[look, buy], name="shop")
strict = Agent(model, tools=[look, buy], name="shop", approvals=[ask_before("buy")])
short = Agent(model, tools=[look, buy], name="shop", limits=Limits(steps=1))

async def slowly(request):
    Path("begun.txt").write_text("yes")
    while not Path("go.txt").exists():
        await asyncio.sleep(0.02)
    return "At last."

slow = Agent(ScriptedModel(slowly), name="slow")
'''


@pytest.fixture
def shop(treadle: Any) -> Any:
    (treadle.folder / "shop.py").write_text(SCRIPT, encoding="utf-8")
    assert treadle("ask", "Buy tea.", "--agent", "shop:agent").code == 0
    return treadle


def ids(shop: Any) -> list[str]:
    """The runs, the first begun first."""
    return [one["run_id"] for one in json.loads(shop("runs", "--json").out)][::-1]


def test_a_fork_goes_on_from_a_step_and_does_nothing_twice(shop: Any) -> None:
    (source,) = ids(shop)
    done = shop("fork", source, "--at", "1", "--agent", "shop:agent", "--message", "No tea!")
    assert (done.code, done.out) == (0, "As you say: No tea!\n")
    assert f"is a fork of {source} at step 1" in done.err
    assert (shop.folder / "bought.txt").read_text() == "tea\n"
    fork = ids(shop)[1]
    told = shop("show", fork).out
    assert f"run {fork}, a fork of run {source}" in told
    assert "from here on it is run" in told
    costs = shop("costs", fork).out
    assert "in all 123,456 tokens in, 789 out, $0.382203" in costs
    assert f"before that, paid by run {source} of which it is a fork: 123,456 tokens in" in costs
    assert f"run {source} paid" not in shop("costs", source).out


def test_a_fork_with_another_result_model_and_limit(shop: Any) -> None:
    done = shop(
        "fork", "last", "--at", "1", "--agent", "shop:agent", "--model", "shop:other", "--max-steps", "9",
        "--tool-result", "call_0_1=sold out", "--json",
    )  # fmt: skip
    assert done.code == 0
    found = json.loads(done.out)
    assert found["text"] == "Then sold out."
    assert [step["model"] for step in found["steps"]] == ["small", "other"]


CAREFUL = '''
from treadle import Agent, tool
from treadle.testing import ScriptedModel

@tool(needs_approval=True)
def transfer(amount: int, to: str) -> str:
    """Transfers an amount of money.

    Args:
        amount: how much.
        to: the name of the receiver.
    """
    return f"{amount} sent to {to}"

agent = Agent(ScriptedModel(["Hello."], name="dear"), tools=[transfer])
'''


def test_a_fork_that_waits_goes_on_with_its_own_model(treadle: Any) -> None:
    (treadle.folder / "careful.py").write_text(CAREFUL, encoding="utf-8")
    assert treadle("ask", 'Transfer 40 to "Ada"', "--agent", "careful.py").out == "Hello.\n"
    assert treadle("fork", "last", "--at", "0", "--agent", "careful.py", "--model", "offline").code == 4
    assert treadle("fork", "last", "--at", "0", "--agent", "careful.py").code == 4, "nor does a fork of it change"
    done = treadle("approve", "last", "--agent", "careful.py")
    assert (done.code, "40 sent to Ada" in done.out) == (0, True), done.err
    assert "model: offline (the fork's own)" in done.err


ODD = '''
from treadle import Agent, tool
from treadle.kernel.messages import AssistantMessage, ToolCall, Usage
from treadle.models.port import ModelReply
from treadle.testing import ScriptedModel

@tool(effect="read")
def look(what: str) -> str:
    """Looks at something."""
    return f"saw {what}"

class Odd(ScriptedModel):
    """Names its calls as some servers do."""

    def _reply(self, turn, number):
        if turn is not None:
            return super()._reply(turn, number)
        calls = [ToolCall(name, "look", '{"what": "tea"}') for name in ("functions.look:0", "call_1__thought__QUI=")]
        return ModelReply(AssistantMessage(tuple(calls)), Usage(1, 1), "tool_calls")

def says(request):
    return None if request.step == 0 else f"Then {request.messages[-2].text}, {request.messages[-1].text}."

agent = Agent(Odd(says, name="odd"), tools=[look], name="odd")
'''


@pytest.mark.parametrize("shown", ["functions%2Elook:0", "functions.look:0"])
def test_another_result_names_a_call_as_it_is_shown_and_whatever_is_in_its_name(treadle: Any, shown: str) -> None:
    (treadle.folder / "odd.py").write_text(ODD, encoding="utf-8")
    assert treadle("ask", "Look.", "--agent", "odd:agent").out == "Then saw tea, saw tea.\n"
    done = treadle(
        "fork", "last", "--at", "1", "--agent", "odd:agent",
        "--tool-result", f"{shown}=a=b", "--tool-result", "call_1__thought__QUI==none",
    )  # fmt: skip
    assert (done.code, done.out) == (0, "Then a=b, none.\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["fork", "last", "--at", "7", "--agent", "shop:agent"], "it can be forked at steps 0 to 2"),
        (["fork", "last", "--at", "2", "--agent", "shop:agent"], "nothing is left to do"),
        (["fork", "last", "--agent", "shop:agent"], "Missing option '--at'"),
        (["fork", "last", "--at", "-1", "--agent", "shop:agent"], "Invalid value for '--at'"),
        (["fork", "nobody", "--at", "1", "--agent", "shop:agent"], "there is no run 'nobody'"),
        (["fork", "last", "--at", "1", "--agent", "shop:agent", "--tool-result", "x"], "is not CALL=VALUE"),
        (["fork", "last", "--at", "1", "--agent", "shop:agent", "--tool-result", "x=1"], "it made no such call"),
        (["fork", "last", "--at", "1", "--agent", "shop:nobody"], "has no 'nobody'"),
        (["fork", "last", "--at", "1"], "uses tools that are not here"),
        (["replay", "nobody"], "there is no run 'nobody'"),
        (["replay", "last", "--recorded-limits"], "name it with --agent"),
        (["replay", "last", "--agent", "shop:nobody"], "has no 'nobody'"),
        (["diff", "last", "nobody"], "there is no run 'nobody'"),
        (["diff", "last"], "Missing argument 'OTHER'"),
        (["watch", "nobody"], "there is no run 'nobody'"),
        (["stats", "--since", "yesterday-ish"], "is no time"),
        (["stats", "--since", "1d", "--until", "2d"], "--until is a time after --since"),
        (["show", "last", "--waterfall", "--why"], "leave one out"),
    ],
)
def test_what_cannot_be_done_is_told(shop: Any, words: list[str], told: str) -> None:
    done = shop(*words)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert len(ids(shop)) == 1


@pytest.mark.parametrize("command", [["replay", "last"], ["watch", "last"], ["diff", "a", "b"], ["stats"]])
def test_without_a_journal_there_is_nothing(treadle: Any, command: list[str]) -> None:
    done = treadle(*command)
    assert done.code == (0 if command == ["stats"] else 2)
    assert ("no runs yet in" if command == ["stats"] else "there is no run") in done.err
    assert not treadle.journal.exists()


def test_a_replay_says_whether_it_comes_out_the_same(shop: Any) -> None:
    done = shop("replay", "last", "--agent", "shop:agent")
    assert done.code == 0
    assert re.fullmatch(r"run \S+: as recorded \(\d+ events, \d+ decided anew by agent shop\)\n", done.out)
    alone = shop("replay", "last")
    assert (alone.code, "by its journal alone" in alone.out) == (0, True)
    strict = shop("replay", "last", "--agent", "shop:strict")
    assert strict.code == 6
    assert "recorded: ToolStarted(step=0, call_id='call_0_1', writes=true)" in strict.out
    assert "now:      ApprovalRequested(step=0, call_id='call_0_1')" in strict.out
    assert shop("replay", "last", "--agent", "shop:short").code == 6
    assert shop("replay", "last", "--agent", "shop:short", "--recorded-limits").code == 0
    found = json.loads(shop("replay", "last", "--agent", "shop:strict", "--json").out)
    assert (found["same"], found["difference"]["event"]) == (False, 4)
    assert (shop.folder / "bought.txt").read_text() == "tea\n"


def test_where_two_runs_part(shop: Any) -> None:
    shop("fork", "last", "--at", "1", "--agent", "shop:agent", "--message", "No tea!")
    source, fork = ids(shop)
    done = shop("diff", source, fork, COLUMNS="60")
    assert done.code == 6
    assert "they part in step 1, at what was asked" in done.out
    assert re.search(r"^said +Then bought tea\. +\| As you say: No tea!$", done.out, re.M)
    assert shop("diff", source, source).out.startswith(f"run {source} and run {source} do not differ")
    assert shop("diff", source, source).code == 0
    found = json.loads(shop("diff", source, fork, "--json").out)
    assert found["rows"][found["at"]]["b"] == "No tea!"


@pytest.mark.parametrize("columns", ["60", "200"])
def test_a_waterfall_keeps_every_digit(shop: Any, columns: str) -> None:
    done = shop("show", "last", "--waterfall", COLUMNS=columns)
    assert done.code == 0
    assert done.out.count("124,245") == 2
    assert done.out.count("$0.382203") == 2
    assert "s in all" in done.out
    found = json.loads(shop("show", "last", "--waterfall", "--json").out)
    assert [bar["kind"] for bar in found["bars"]] == ["step", "model", "tool", "tool", "step", "model"]


def test_figures_over_many_runs(shop: Any) -> None:
    shop("ask", "Buy cups.", "--agent", "shop:agent")
    done = shop("stats", COLUMNS="60")
    assert done.code == 0
    assert done.out.startswith("2 runs: 2 answered\n")
    assert re.search(r"^cost +\$0\.764406 +\$0\.764406 +\$0\.764406 +\$1\.528812$", done.out, re.M)
    assert re.search(r"^small +4 +0 +496,980 +\$1\.528812", done.out, re.M)
    assert re.search(r"^buy +2 +0", done.out, re.M)
    by = shop("stats", "--by", "agent").out.splitlines()
    assert [line.split()[:2] for line in by] == [["agent", "runs"], ["shop", "2"]]
    found = json.loads(shop("stats", "--json").out)
    assert (found["runs"], found["cost"]["total"]) == (2, "1.528812")
    nothing = shop("stats", "--agent", "nobody")
    assert (nothing.code, nothing.out) == (0, "")
    assert "no such runs" in nothing.err


def test_a_run_of_another_process_is_followed_until_it_ends(shop: Any) -> None:
    with shop.start("ask", "Slowly!", "--agent", "shop:slow") as running:
        _wait_for(shop.folder / "begun.txt")
        with shop.start("watch", "last") as watching:
            _read_until(watching, "step 0")
            (shop.folder / "go.txt").write_text("yes")
            out, err = watching.communicate(timeout=60)
        running.communicate(timeout=60)
    assert (running.returncode, watching.returncode, err) == (0, 0, "")
    assert "At last." in out
    assert out.rstrip().endswith("stop: answered")
    events = shop("watch", "last", "--json").out.splitlines()
    assert json.loads(events[-1])["event"] == "run_finished"


def test_ctrl_c_ends_the_watching_and_leaves_the_run_alone(shop: Any) -> None:
    with shop.start("ask", "Slowly!", "--agent", "shop:slow") as running:
        _wait_for(shop.folder / "begun.txt")
        with shop.start("watch", "last") as watching:
            _read_until(watching, "step 0")
            watching.send_signal(signal.SIGINT)
            _, err = watching.communicate(timeout=60)
        assert watching.returncode == 130
        assert "Traceback" not in err
        (shop.folder / "go.txt").write_text("yes")
        running.communicate(timeout=60)
    assert running.returncode == 0


def _read_until(process: Any, text: str) -> None:
    """Reads the lines that a command prints up to one with `text` in it, which are shown as they come."""
    for line in process.stdout:
        if text in line:
            return
    raise AssertionError(f"{text!r} was never printed")


def _wait_for(path: Path) -> None:
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_run_that_nobody_carries_out_is_said_to_be_left(shop: Any) -> None:
    with shop.start("ask", "Slowly!", "--agent", "shop:slow") as running:
        _wait_for(shop.folder / "begun.txt")
        running.kill()
        running.communicate(timeout=60)
    with shop.start("watch", "last") as watching:
        _read_until(watching, "step 0")
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=60)
    assert "no process carries this run out now" in err
