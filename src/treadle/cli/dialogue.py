"""The person's side of a chat: lines from a terminal or a pipe, and their decisions about tool calls."""

import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import click
import msgspec

from treadle.cli.commands.decide import read_arguments
from treadle.cli.terminal import clean
from treadle.result import Pending
from treadle.tools import Tool


class Person:
    """Reads what a person says: at a terminal with a prompt, from a pipe without.

    Attributes:
        interactive: whether there is a terminal.
        gone: whether there are no more lines.
    """

    def __init__(self) -> None:
        self.gone = False
        self.interactive = sys.stdin.isatty() and sys.stdout.isatty()
        if self.interactive:
            # Gives `input` editing and a history, where the platform has it.
            with suppress(ImportError):
                import_module("readline")

    def line(self, prompt: str) -> str | None:
        """The next line, without its end; None when there are no more (Ctrl-D, or the end of the input)."""
        try:
            return input(f"{prompt} ") if self.interactive else _piped()
        except EOFError:
            self.gone = True
            if self.interactive:
                click.echo()
            return None


def _piped() -> str:
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\r\n")


@dataclass(slots=True)
class Decisions:
    """What a person decided about the calls that a run waits for, as `Agent.resume` takes it, by call id.

    Attributes:
        approve: the calls to allow, with the arguments to use; None for the model's own.
        deny: the calls to refuse, with the reason.
        results: the results of calls that are answered from outside.
    """

    approve: dict[str, Any] = field(default_factory=dict)
    deny: dict[str, str] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)


def decide(person: Person, pending: Iterable[Pending], tools: dict[str, Tool]) -> Decisions | None:
    """Asks `person` about each call; None if there were no more lines before all was decided."""
    decisions = Decisions()
    for one in pending:
        if one.kind == "result":
            answer = _answered(person, one, tools)
            if answer is None:
                return None
            decisions.results[one.call_id] = answer
        elif not _judged(person, one, tools, decisions):
            return None
    return decisions


def _answered(person: Person, one: Pending, tools: dict[str, Tool]) -> str | None:
    """The result that the person gives; a number stands for one of the choices of a question."""
    arguments = one.arguments if isinstance(one.arguments, dict) else {}
    question, choices = arguments.get("question"), arguments.get("choices", [])
    if one.tool != "ask_user" or not isinstance(question, str):
        return _ask(person, f"{_shown(one, tools)} is answered by you. Its result:", "result>")
    listed = [f"  {number}. {choice}" for number, choice in enumerate(choices, 1)]
    said = _ask(person, "\n".join([question, *listed]), "answer>")
    picked = said.strip() if said is not None else ""
    if picked.isdecimal() and 0 < int(picked) <= len(choices):
        return str(choices[int(picked) - 1])
    return said


def _judged(person: Person, one: Pending, tools: dict[str, Tool], decisions: Decisions) -> bool:
    question = (
        "was interrupted; its outcome is unknown. Run it again?" if one.kind == "interrupted" else "asks for approval."
    )
    while True:
        said = _ask(person, f"{_shown(one, tools)} {question}", "y(es), n(o), n REASON or e(dit)>")
        if said is None:
            return False
        word, _, rest = said.strip().partition(" ")
        match word.lower():
            case "y" | "yes":
                decisions.approve[one.call_id] = None
            case "n" | "no":
                decisions.deny[one.call_id] = rest.strip()
            case "e" | "edit":
                text = rest if rest.strip() else _ask(person, "The arguments, as a JSON object:", "arguments>")
                if text is None:
                    return False
                try:
                    decisions.approve[one.call_id] = _checked(text, tools.get(one.tool))
                except click.BadParameter as error:
                    click.echo(clean(error.message), err=True)
                    continue
            case _:
                click.echo(f"{word!r} is none of y, n and e", err=True)
                continue
        return True


def _checked(text: str, tool: Tool | None) -> dict[str, Any]:
    """The arguments, if the tool takes them."""
    from treadle.tools import ToolError

    arguments = read_arguments(text)
    if tool is not None:
        try:
            tool.validate(text)
        except ToolError as error:
            raise click.BadParameter(str(error)) from error
    return arguments


def _ask(person: Person, question: str, prompt: str) -> str | None:
    click.echo(clean(question), err=True)
    return person.line(prompt)


def _shown(one: Pending, tools: dict[str, Tool]) -> str:
    """The whole call: a person who allows it must have seen all of it."""
    arguments = one.arguments if isinstance(one.arguments, str) else msgspec.json.encode(one.arguments).decode()
    tool = tools.get(one.tool)
    return f"{one.tool}({arguments}){'' if tool is None else f' [{tool.effect}]'}"
