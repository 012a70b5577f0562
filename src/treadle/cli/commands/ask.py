"""`treadle ask`: one question, one run, its answer on standard output."""

import asyncio
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, Literal

import click

from treadle.agent import Agent
from treadle.cli import completion, skill_folders
from treadle.cli.agents import agent_to_ask
from treadle.cli.catalogs import for_the_analyst
from treadle.cli.configure import Options, agent_options, require_one_wish
from treadle.cli.dialogue import MOST_ASKED, Person, decide, resumed
from treadle.cli.exits import ExitCode, exit_code
from treadle.cli.failures import in_options
from treadle.cli.next_command import NextCommand
from treadle.cli.output import Output, output_options
from treadle.cli.storage import LAST, find_run, journal_at, no_runs, opened
from treadle.cli.terminal import answering, clean, note, print_json, prose, visible
from treadle.cli.waiting import Waiting
from treadle.cli.watch import Watch
from treadle.conversation import Conversation
from treadle.drivers.estimate import Estimate
from treadle.journal import Journal, JournalError, UnknownRun
from treadle.journal.ones_own import page_of, read_of, standing_of
from treadle.kernel.messages import UserMessage
from treadle.kernel.state import RunState
from treadle.result import RunResult


@click.command(short_help="Ask a question and get the answer.")
@click.argument("prompt", nargs=-1)
@click.option("--file", "-f", type=click.Path(dir_okay=False), help="Read the question from a file.")
@agent_options
@click.option("--instructions", "-i", metavar="TEXT", help="The system prompt, before those of the skills.")
@click.option(
    "--on-limit",
    type=click.Choice(["answer", "stop"]),
    help="At a limit: one last call that writes up what was found, or stop at once. Default: answer.",
)
@click.option(
    "--continue", "earlier", is_flag=False, flag_value=LAST, metavar="[RUN]", shell_complete=completion.runs,
    help="Go on with the conversation of a run: of the last, or of RUN.",
)  # fmt: skip
@click.option("--no-journal", is_flag=True, help="Keep no record of the run.")
@click.option("--dry-run", is_flag=True, help="Ask nothing; say what the first request may take at most.")
@output_options
def ask(
    options: Options,
    prompt: tuple[str, ...],
    file: str | None,
    instructions: str | None,
    on_limit: Literal["answer", "stop"] | None,
    earlier: str | None,
    no_journal: bool,
    dry_run: bool,
    output: Output,
) -> int:
    """Ask PROMPT and get the answer on standard output.

    PROMPT may be left out, or be -, to read it from standard input; with /NAME before it the skill NAME is followed.
    The exit code is 0 if the task was done, 3 if a limit stopped it, 4 if it waits for someone, 5 if the model failed
    and 130 if you pressed Ctrl-C.
    """
    if earlier is not None and len(earlier.split()) > 1:
        # No run has such a name: what stands there is the question.
        earlier, prompt = LAST, (earlier, *prompt)
    require_one_wish(options, no_journal and earlier is None)
    question = _question(prompt, file, earlier)
    try:
        after = None if earlier is None else asyncio.run(_ended(earlier, options.journal))
    except UnknownRun as error:
        how = 'To go on with the last, leave out RUN, and put the question in quotes: treadle ask --continue "…"'
        raise click.UsageError(f"{in_options(error)} {how}") from error
    conversation = Conversation(() if after is None else after.messages)
    journal = None if no_journal or dry_run else journal_at(options.journal)
    agent, choice = agent_to_ask(options, journal, instructions=instructions, on_limit=on_limit, after=after)
    output.say(str(choice))
    said = agent.skills.said(question, conversation.messages)
    asking = question if said is None else said
    if said is None:
        skill_folders.tell_of_unused(question)
    if dry_run:
        limits, user = options.limits(agent.limits), options.user
        asked = agent.estimate(asking, conversation=conversation, limits=limits, user=user)
        estimate = asyncio.run(asked)
        with answering():
            return _dry(estimate, output)
    person, command = None if output.as_object or output.quiet else Person(), NextCommand.again(options, choice)
    with asyncio.Runner() as runner:
        try:
            if journal is not None:
                # One that cannot be used is told as that, and not as one in which a run may have begun.
                runner.run(page_of(journal, 1))
            result, waiting = _answered(runner, agent, asking, conversation, options, output, journal, person, command)
        finally:
            if journal is not None:
                runner.run(journal.close())
    output.end(result, choice.name, waiting, agent.tools, None if journal is None else command)
    ours = options.agent is None and not output.quiet
    if ours and (hint := for_the_analyst(question, result, agent)):
        note(prose(hint, err=True))
    return exit_code(result.stop)


async def _ended(earlier: str, journal: str | None) -> RunState:
    """The run whose conversation is gone on with, as it ended.

    Raises:
        click.UsageError: it has not ended; says how to see what it waits for.
    """
    async with opened(journal) as kept:
        if kept is None:
            raise no_runs(journal, earlier)
        state = standing_of(await read_of(kept, await find_run(kept, earlier)))
    if state.stop is None or state.phase != "finished":
        see = NextCommand.guessed(state.started, journal).line("show", state.run_id)
        raise click.UsageError(f"run {state.run_id} has not ended, and its conversation neither; see: {see}")
    return state


def _dry(estimate: Estimate, output: Output) -> int:
    """Prints what the first request may take; the exit code says whether it would be made."""
    stop = estimate.stop
    if output.as_object:
        names = ("model", "allowed", "request_tokens", "reply_tokens", "tokens", "usd", "held")
        why = None if stop is None else {"reason": stop.reason, "detail": stop.detail}
        print_json({name: getattr(estimate, name) for name in names} | {"stop": why})
    else:
        click.echo(clean("\n".join(_dry_words(estimate))))
    return ExitCode.FINISHED if stop is None else exit_code(stop)


def _dry_words(estimate: Estimate) -> Iterator[str]:
    if estimate.tokens:
        bound = " at most" if estimate.held else ", to which nothing holds it; a limit would"
        request, reply = f"{estimate.request_tokens:,} tokens at most", f"{estimate.reply_tokens:,}{bound}"
        yield f"The first request to {estimate.model} takes {request}, and the reply {reply}."
        most = " at most" if estimate.held else ", with a reply of that length"
        price = "the price is not known" if estimate.usd is None else f"${estimate.usd:f}{most}"
        yield f"What that costs: {price}."
    if estimate.stop is None:
        yield "The limits allow it. Nothing was asked, and no tool was run."
    else:
        detail = f": {estimate.stop.detail}" if estimate.stop.detail else ""
        yield f"It would not be asked: {estimate.stop.reason}{detail}"


def _answered(
    runner: asyncio.Runner,
    agent: Agent,
    question: str | UserMessage,
    conversation: Conversation,
    options: Options,
    output: Output,
    journal: Journal | None,
    person: Person | None,
    command: NextCommand,
) -> tuple[RunResult, Waiting]:
    """What came of the question; a person at a terminal has been asked about what the run waited for."""
    limits, user = options.limits(agent.limits), options.user
    watch = Watch(output.views, quiet=output.quiet)
    # Always with a conversation, for budgets that each conversation has.
    begin = partial(agent.run, question, conversation=conversation, limits=limits, user=user)
    try:
        result = runner.run(watch.carry(lambda see: begin(on_event=see)))
    except Exception:
        if journal is not None and watch.left:
            runner.run(_tell_left(journal, watch.left, command))
        raise
    left = person is None or not person.interactive
    while True:
        waiting = runner.run(Waiting.of(result.events, journal or result.sub_runs))
        if not waiting.calls or person is None or left:
            return result, waiting
        answers, left = decide(person, waiting.calls, agent.tools)
        if answers:
            watch = Watch(output.views, result.events, quiet=output.quiet)
            result = runner.run(watch.carry(partial(resumed, agent, result, answers)))


async def _tell_left(journal: Journal, run: str, command: NextCommand) -> None:
    """Says how to go on with a run that an error left. What is shown is kept a moment later: it may not be there."""
    try:
        await read_of(journal, run)
    except UnknownRun:
        return
    except JournalError:
        begun = f"whether run {run} has begun is not known, as its journal cannot be read; if it has, then"
    else:
        begun = "the run has begun, and was left;"
    note(f"{begun} to go on with it: {command.line('resume', run)}")


def _question(prompt: tuple[str, ...], file: str | None, earlier: str | None) -> str:
    """The question, from the one place that was named; `earlier` is what stands after --continue."""
    if file is not None:
        if prompt:
            raise click.UsageError("the question is given twice: as an argument and with --file")
        try:
            with Path(file).open("rb") as source:
                return _text(source, file)
        except OSError as error:
            raise click.BadParameter(f"{file}: {error.strerror}", param_hint="'--file'") from error
    if prompt and prompt != ("-",):
        return _filled(" ".join(prompt), "PROMPT")
    if not prompt and sys.stdin.isatty():
        if earlier is not None and earlier != LAST:
            # One word, which may be the name of a run.
            raise click.UsageError(
                f"what is the question? {visible(earlier)!r} was taken for the run to go on with; a question of one "
                "word stands before --continue"
            )
        raise click.UsageError('what is the question? For example: treadle ask "What is 25 * 4 + 10?"')
    return _text(sys.stdin.buffer, "standard input")


def _text(source: BinaryIO, where: str) -> str:
    data = source.read(MOST_ASKED + 1)
    if len(data) > MOST_ASKED:
        raise click.UsageError(f"the question in {where} is longer than {MOST_ASKED:,} bytes, which no model reads")
    try:
        return _filled(data.decode("utf-8-sig").strip(), where)
    except UnicodeDecodeError as error:
        raise click.UsageError(f"the question in {where} is not UTF-8 text: {error.reason}") from error


def _filled(question: str, where: str) -> str:
    if not question.strip():
        raise click.UsageError(f"the question is empty ({where})")
    return question
