"""`treadle ask`: one question, one run, its answer on standard output."""

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Literal

import click

from treadle.agent import Agent
from treadle.cli.answer import Answer
from treadle.cli.choose import choose
from treadle.cli.configure import Options, agent_options, make_agent
from treadle.cli.exits import exit_code
from treadle.cli.lines import trace
from treadle.cli.report import as_json, closing
from treadle.cli.storage import journal_path
from treadle.cli.terminal import note, print_json
from treadle.cli.watch import View, Watch
from treadle.journal import SqliteJournal
from treadle.result import RunResult


@click.command(short_help="Ask a question and get the answer.")
@click.argument("prompt", nargs=-1)
@click.option("--file", "-f", type=click.Path(dir_okay=False), help="Read the question from a file.")
@agent_options
@click.option("--instructions", "-i", metavar="TEXT", help="The system prompt, before those of the skills.")
@click.option(
    "--on-limit",
    type=click.Choice(["answer", "stop"]),
    default="answer",
    show_default=True,
    help="At a limit: one last call that writes up what was found, or stop at once.",
)
@click.option("--no-journal", is_flag=True, help="Keep no record of the run.")
@click.option("--json", "as_object", is_flag=True, help="Print one JSON object instead of the text.")
@click.option("--trace", "tracing", is_flag=True, help="Show perceive, think and act on standard error.")
@click.option("--quiet", "-q", is_flag=True, help="Print the answer when it is whole, and nothing else.")
def ask(
    options: Options,
    prompt: tuple[str, ...],
    file: str | None,
    instructions: str | None,
    on_limit: Literal["answer", "stop"],
    no_journal: bool,
    as_object: bool,
    tracing: bool,
    quiet: bool,
) -> int:
    """Ask PROMPT and get the answer on standard output.

    PROMPT may be left out, or be -, to read it from standard input. The exit code is 0 if the task was done, 3 if a
    limit stopped it, 4 if it waits for someone, 5 if the model failed and 130 if you pressed Ctrl-C.
    """
    question = _question(prompt, file)
    choice = choose(options.model)
    journal = None if no_journal else SqliteJournal(journal_path(options.journal))
    agent = make_agent(options, choice, journal, instructions=instructions, on_limit=on_limit)
    if not quiet:
        note(str(choice))
    answer = None if as_object or quiet else Answer()
    views: list[View] = [
        view for view in (answer, trace(texts=answer is None) if tracing else None) if view is not None
    ]
    result = asyncio.run(_run(agent, question, Watch(views), journal))
    if as_object:
        print_json(as_json(result, choice.name))
    elif answer is None:
        click.echo(result.text)
    else:
        answer.complete(result.text)
    if not (quiet and result.finished):
        closing(result, journaled=journal is not None)
    return exit_code(result.stop)


async def _run(agent: Agent, question: str, watch: Watch, journal: SqliteJournal | None) -> RunResult:
    async with AsyncExitStack() as stack:
        if journal is not None:
            await stack.enter_async_context(journal)
        return await watch.carry(lambda see: agent.run(question, on_event=see))


def _question(prompt: tuple[str, ...], file: str | None) -> str:
    """The question, from the one place that was named."""
    if file is not None:
        if prompt:
            raise click.UsageError("the question is given twice: as an argument and with --file")
        try:
            data = Path(file).read_bytes()
        except OSError as error:
            raise click.BadParameter(f"{file}: {error.strerror}", param_hint="'--file'") from error
        return _text(data, file)
    if prompt and prompt != ("-",):
        return _filled(" ".join(prompt), "PROMPT")
    if not prompt and sys.stdin.isatty():
        raise click.UsageError('what is the question? For example: treadle ask "What is 25 * 4 + 10?"')
    return _text(sys.stdin.buffer.read(), "standard input")


def _text(data: bytes, where: str) -> str:
    try:
        return _filled(data.decode("utf-8-sig").strip(), where)
    except UnicodeDecodeError as error:
        raise click.UsageError(f"the question in {where} is not UTF-8 text: {error.reason}") from error


def _filled(question: str, where: str) -> str:
    if not question.strip():
        raise click.UsageError(f"the question is empty ({where})")
    return question
