"""The person's side: lines from a terminal or a pipe, and their decisions about tool calls."""

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, Final, NamedTuple

import click

from treadle.agent import Agent
from treadle.cli.terminal import clean, set_off
from treadle.cli.waiting import WaitingCall, question_of, read_arguments
from treadle.conversation import Conversation
from treadle.drivers.answers import Answers
from treadle.drivers.watching import RunEvent
from treadle.result import RunResult
from treadle.tools import Tool, ToolError

MOST_ASKED: Final = 20_000_000
"""Bytes of a question at most, or signs of a line: what has no end, such as a device, would fill the memory."""


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
    line = sys.stdin.readline(MOST_ASKED + 1)
    if not line:
        raise EOFError
    if len(line) > MOST_ASKED:
        raise click.UsageError(f"a line of standard input is longer than {MOST_ASKED:,} characters")
    # On Windows a pipe may begin with a byte order mark.
    return line.removeprefix("\ufeff").rstrip("\r\n")


class Decided(NamedTuple):
    """What a person said of the calls that wait, and whether they left before all was said."""

    answers: Answers
    left: bool


def decide(person: Person, waiting: Iterable[WaitingCall], tools: Mapping[str, Tool]) -> Decided:
    """Asks `person` about each call, until there are no more lines, or a Ctrl-C; what was said until then counts.

    Raises:
        KeyboardInterrupt: Ctrl-C without a terminal; it is said that nothing was decided.
    """
    answers = Answers()
    try:
        for call in waiting:
            asked = _judged if call.to_decide else _answered
            if not asked(person, call, tools, answers):
                return Decided(answers, left=True)
    except KeyboardInterrupt:
        if not person.interactive:
            if answers:
                click.echo("nothing of what was decided has been recorded", err=True)
            raise
        click.echo(err=True)
        return Decided(answers, left=True)
    return Decided(answers, left=False)


async def resumed(
    agent: Agent,
    run: RunResult,
    answers: Answers,
    see: Callable[[RunEvent], None],
    conversation: Conversation | None = None,
) -> RunResult:
    """Goes on with a run that waited for `answers`."""
    return await agent.resume(
        run,
        approve=answers.approve,
        deny=answers.deny,
        results=answers.results,
        conversation=conversation,
        on_event=see,
    )


def _answered(person: Person, call: WaitingCall, tools: Mapping[str, Tool], answers: Answers) -> bool:
    """Takes the result that the person gives; a number stands for one of the choices of a question."""
    asked = question_of(call.pending)
    said = _ask(person, call.lines(tools), "result>" if asked is None and not call.pending.question else "answer>")
    if said is None:
        return False
    picked, choices = said.strip(), [] if asked is None else asked.choices
    chosen = picked.isdecimal() and 0 < int(picked) <= len(choices)
    answers.results[call.pending.key] = choices[int(picked) - 1] if chosen else said
    return True


def _judged(person: Person, call: WaitingCall, tools: Mapping[str, Tool], answers: Answers) -> bool:
    key, shown, cut_off = call.pending.key, call.lines(tools), call.pending.kind == "interrupted"
    while True:
        said = _ask(person, shown, "y(es), n(o) or n REASON>" if cut_off else "y(es), n(o), n REASON or e(dit)>")
        if said is None:
            return False
        word, _, rest = said.strip().partition(" ")
        match word.lower():
            case "y" | "yes" if not rest:
                answers.approve[key] = None
            case "n" | "no":
                answers.deny[key] = rest.strip()
            case "e" | "edit" if cut_off:
                click.echo(
                    "it may have been done as it stands, so it takes no other arguments; y runs it again", err=True
                )
                shown = []
                continue
            case "e" | "edit":
                edited = _edited(person, rest, None if call.pending.run_id else tools.get(call.pending.tool))
                if person.gone:
                    return False
                if edited is None:
                    continue
                answers.approve[key] = edited
            case "y" | "yes":
                # A yes with a condition is no yes to the call as it stands.
                more = "" if cut_off else "; e changes its arguments"
                click.echo(f"y allows the call as it stands and takes no words{more}", err=True)
                shown = []
                continue
            case _:
                click.echo(clean(f"{word!r} is none of {'y and n' if cut_off else 'y, n and e'}"), err=True)
                shown = []
                continue
        return True


def _edited(person: Person, text: str, tool: Tool | None) -> dict[str, Any] | None:
    """The arguments that a person wants, asked for until the tool takes them; None if they rather decide otherwise.

    Whoever has begun to change a call does not mean it as it stands, so nothing said here allows that.
    """
    while True:
        if not text.strip():
            given = _ask(person, ["The arguments, as a JSON object; an empty line goes back:"], "arguments>")
            if given is None or not given.strip():
                return None
            text = given
        try:
            return _checked(text, tool)
        except click.BadParameter as error:
            click.echo(set_off(error.message), err=True)
            text = ""


def _checked(text: str, tool: Tool | None) -> dict[str, Any]:
    """The arguments, if the tool takes them."""
    arguments = read_arguments(text)
    if tool is not None:
        try:
            tool.validate(text)
        except ToolError as error:
            raise click.BadParameter(str(error)) from error
    return arguments


def _ask(person: Person, question: Iterable[str], prompt: str) -> str | None:
    for line in question:
        click.echo(clean(line), err=True)
    return person.line(prompt)
