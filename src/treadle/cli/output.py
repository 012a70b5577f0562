"""Output: how `ask`, `resume`, `approve` and `deny` show a result, and what is said beside it."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import click

from treadle.cli.answer import AnswerView
from treadle.cli.lines import trace
from treadle.cli.next_command import NextCommand
from treadle.cli.report import as_json, closing
from treadle.cli.terminal import answering, apart, clean, note, print_json, prose, set_off
from treadle.cli.waiting import Waiting
from treadle.cli.watch import View
from treadle.result import RunResult, answer_shown
from treadle.tools import Tool


@dataclass(frozen=True, slots=True)
class Output:
    """What the options say about it.

    Attributes:
        as_object: whether the result is printed as a JSON object instead of its text.
        tracing: whether the story is told on standard error.
        quiet: whether nothing but the answer is printed, and that when it is whole.
        answer: shows the answer as it arrives, if it is to be shown so.
    """

    as_object: bool
    tracing: bool
    quiet: bool
    answer: AnswerView | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "answer", None if self.as_object or self.quiet else AnswerView())

    @property
    def views(self) -> list[View]:
        """What shows the run while it is under way."""
        story = trace(texts=self.answer is None) if self.tracing else None
        return [view for view in (self.answer, story) if view is not None]

    def say(self, text: str) -> None:
        """Prints a line beside the answer, unless only the answer is wanted."""
        if not self.quiet:
            note(prose(set_off(text), err=True, indent="  | "))

    def end(
        self, result: RunResult, model: str, waiting: Waiting, tools: Mapping[str, Tool], command: NextCommand | None
    ) -> None:
        """Prints the result as far as it has not been shown, and why the run did not finish.

        Args:
            result: the result.
            model: the name of the model that the run was started with.
            waiting: what the run waits for.
            tools: those of its agent.
            command: the commands that go on with it; None if it is kept in no journal.
        """
        with answering():
            if self.as_object:
                print_json(as_json(result, model))
            elif self.answer is None:
                click.echo(clean(answer_shown(result)))
            else:
                self.answer.end(result)
        if not (self.quiet and result.finished):
            closing(result, waiting, tools, command)


_OPTIONS = (
    click.option("--json", "as_object", is_flag=True, help="Print one JSON object instead of the text."),
    click.option("--trace", "tracing", is_flag=True, help="Show perceive, think and act on standard error."),
    click.option("--quiet", "-q", is_flag=True, help="Print the answer when it is whole, and no lines about it."),
)


def output_options(command: Callable[..., int]) -> Callable[..., int]:
    """Gives a command the options of its output, as one argument `output`."""

    @wraps(command)
    def packed(*, as_object: bool, tracing: bool, quiet: bool, **given: Any) -> int:
        output = Output(as_object, tracing, quiet)
        with nullcontext() if output.answer is not None else apart():
            return command(output=output, **given)

    decorated: Callable[..., int] = packed
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
