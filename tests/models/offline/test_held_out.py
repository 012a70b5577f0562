"""Orders and questions to small toolboxes that nobody had seen: what is called is what was asked for, or nothing is.

In the tables of `asked` a line with "!" is a tool that changes something, "?" what is said to the tools above it, with
what comes of it: "+" the calls that are made, "~" the same or a refusal, "=" what the answer holds, "-" nothing, "0" no
change. A test goes through a whole table and names the lines that are wrong.
"""

import inspect
import typing
from collections.abc import Callable
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from treadle import Agent, Conversation, tool
from treadle.models.offline.plan.toolbox import Toolbox

from .asked.judge import DECLINED

TABLES = Path(__file__).parent / "asked"
NAMES = {**vars(typing), "date": date, "time": time, "Decimal": Decimal}
Calls = list[tuple[str, dict[str, Any]]]


def made(line: str) -> Callable[..., Any]:
    """The function that a line of a table describes."""
    signature, told, *returned = line[2:].split(" |")
    result = returned[0] if returned else "'ok'"
    told = told.strip().replace("\\n", "\n")
    space = dict(NAMES)
    exec(f"def {signature}: {told!r}; return {result}", space)
    function: Callable[..., Any] = space[signature.split("(")[0]]
    return function


def whole(name: str, arguments: dict[str, Any], functions: dict[str, Callable[..., Any]]) -> tuple[str, str]:
    """A call with what it leaves to the defaults, and numbers as one kind."""
    given = inspect.signature(functions[name]).bind(**arguments)
    given.apply_defaults()
    plain = {key: float(v) if isinstance(v, int | float | Decimal) else v for key, v in given.arguments.items()}
    return name, str(sorted(plain.items()))


def is_right(wanted: str, text: str, calls: Calls, changes: set[str], functions: dict[str, Callable[..., Any]]) -> bool:
    done = sorted(whole(name, arguments, functions) for name, arguments in calls if name in changes)
    declined = DECLINED.search(text) is not None or "What I can do" in text
    if wanted[0] in "+~":
        space: dict[str, Any] = {name: lambda n=name, **given: whole(n, given, functions) for name in functions}
        expected = sorted(eval(part, space) for part in wanted[1:].split(";;"))
        return done == expected or (wanted[0] == "~" and not done)
    if wanted[0] == "=":
        return not done and not declined and all(part in text for part in wanted[1:].split("|"))
    return not done and (wanted == "0" or declined or not calls)


def test_what_is_called_is_what_was_asked_for_or_nothing_is() -> None:
    wrong, asked = [], 0
    functions: dict[str, Callable[..., Any]] = {}
    changes: set[str] = set()
    for line in TABLES.joinpath("held_out.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            functions, changes = {}, set()
        elif line.startswith("? "):
            said, _, wanted = line[2:].rpartition(" => ")
            agent, conversation = Agent("offline", tools=[tool(each) for each in functions.values()]), Conversation()
            for each in said.split(" || "):
                result = agent.run_sync(each, conversation=conversation)
            calls = [(call.name, dict(call.arguments)) for call in result.tool_calls_made]
            asked += 1
            if not is_right(wanted, result.text, calls, changes, functions):
                wrong.append(f"{said!r} should come to {wanted}, and made {calls}: {result.text}")
        elif line:
            function = made(line)
            functions[function.__name__] = function
            changes |= {function.__name__} if line.startswith("!") else set()
    assert not wrong, "\n".join(wrong)
    assert asked > 300


def test_a_tool_is_known_to_change_something_or_to_tell_it_by_what_it_says() -> None:
    wrong = []
    for line in TABLES.joinpath("natures.txt").read_text(encoding="utf-8").splitlines():
        known = Toolbox([tool(made(line)).spec]).tools[0]
        if known.may_change is not line.startswith("!"):
            wrong.append(line)
    assert not wrong, "\n".join(wrong)
