"""`treadle chat`: a conversation, a run for each thing said."""

import asyncio
import os
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from treadle.agent import Agent
from treadle.cli.agents import agent_to_ask
from treadle.cli.answer import AnswerView
from treadle.cli.catalogs import for_the_analyst
from treadle.cli.commands.show import print_why
from treadle.cli.configure import Options, agent_options, require_one_wish
from treadle.cli.dialogue import Person, decide, resumed
from treadle.cli.exits import ExitCode, exit_code
from treadle.cli.failures import in_options
from treadle.cli.lines import trace
from treadle.cli.next_command import COMMAND_LINE, NextCommand
from treadle.cli.report import closing
from treadle.cli.storage import journal_at
from treadle.cli.terminal import answering, apart, clean, note, prose, set_off, shorten
from treadle.cli.waiting import Waiting
from treadle.cli.watch import Start, View, Watch
from treadle.conversation import Conversation
from treadle.journal import Journal
from treadle.kernel.errors import Misuse, PassesThrough
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import UserMessage
from treadle.kernel.stop import Limits
from treadle.result import RunResult

HELP = """\
/help        this list
/tools       the tools
/why         why the last answer went on and stopped
/save FILE   save the conversation
/NAME        have a skill of that name followed, with what you write after it
/exit        leave (also exit, quit, Ctrl-D); Ctrl-C stops the answer under way and keeps the conversation"""

COMMANDS = ("/help", "/tools", "/why", "/save", "/exit", "/quit")
"""What a line may begin with that is said to the command itself, whatever skills there are."""

LEAVING = ("exit", "quit")
"""What is said to the command itself where it is the whole line: nobody asks a model that."""


@click.command(short_help="Have a conversation.")
@agent_options
@click.option("--instructions", "-i", metavar="TEXT", help="The system prompt, before those of the skills.")
@click.option("--load", metavar="FILE", type=click.Path(), help="Continue a saved conversation.")
@click.option("--save", metavar="FILE", type=click.Path(), help="Save the conversation after every answer.")
@click.option("--no-journal", is_flag=True, help="Keep no record of the runs.")
@click.option("--trace", "tracing", is_flag=True, help="Show perceive, think and act on standard error.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing but the answers, and why there is none.")
def chat(
    options: Options,
    instructions: str | None,
    load: str | None,
    save: str | None,
    no_journal: bool,
    tracing: bool,
    quiet: bool,
) -> int:
    """Have a conversation.

    Each line is a question; /help lists what else can be said. Tools that need approval are asked about. Ctrl-C stops
    the answer under way and keeps the conversation, Ctrl-D leaves. Without a terminal the lines are read from standard
    input, and the exit code is that of the last answer.
    """
    require_one_wish(options, no_journal)
    conversation = Conversation() if load is None else _loaded(load)
    if save is not None:
        _require_place(save)
    journal = None if no_journal else journal_at(options.journal)
    agent, choice = agent_to_ask(options, journal, instructions=instructions)
    command = None if journal is None else NextCommand.again(options, choice)
    person = Person()
    if not quiet:
        note(prose(set_off(str(choice)), err=True, indent="  | "))
    if person.interactive:
        note("/help lists what you can say; Ctrl-D leaves.")
    # Where a program reads it, what tools print is none of the answers.
    with nullcontext() if sys.stdout.isatty() else apart(), asyncio.Runner() as runner:
        limits = options.limits(agent.limits)
        talk = Chat(agent, limits, options.user, journal, command, conversation, person, runner, save, tracing, quiet)
        try:
            return talk.go_on()
        finally:
            if journal is not None:
                runner.run(journal.close())


def _loaded(path: str) -> Conversation:
    try:
        return Conversation.load(path)
    except OSError as error:
        raise click.BadParameter(f"{path}: {error.strerror}", param_hint="'--load'") from error


def _require_place(path: str) -> None:
    """Refuses a file that could not be saved to: that must not be found out when there is something to save."""
    if not path.strip():
        raise click.BadParameter("it is empty; name a file", param_hint="'--save'")
    if fault := _no_place(Path(path).expanduser()):
        raise click.BadParameter(f"{path} {fault}", param_hint="'--save'")


def _no_place(target: Path) -> str:
    """Why a conversation cannot, or is not to, be saved there; empty if it may."""
    if target.is_dir():
        return "is a folder"
    if target.exists() and not target.is_file():
        return "is no regular file"
    if not Path(os.path.realpath(target)).parent.is_dir():
        return f"{'leads into' if target.is_symlink() else 'is in'} a folder that does not exist"
    try:
        if target.is_file() and target.stat().st_size:
            Conversation.load(target)
    except OSError as error:
        return f"is there, and cannot be looked into: {error.strerror}"
    except Misuse:
        return "is there, and holds no saved conversation: it would be lost; name another file"
    return ""


@dataclass(slots=True)
class Chat:
    """A conversation under way."""

    agent: Agent
    limits: Limits
    user: str | None
    journal: Journal | None
    then: NextCommand | None
    conversation: Conversation
    person: Person
    runner: asyncio.Runner
    save: str | None
    tracing: bool
    quiet: bool
    last: RunResult | None = None
    is_kept: bool = True

    def go_on(self) -> int:
        """Reads and answers until the person leaves; returns the exit code."""
        left = False
        while not left:
            try:
                line = self.person.line("you>")
            except KeyboardInterrupt:
                if not self.person.interactive:
                    raise
                click.echo("\n(Ctrl-D leaves)", err=True)
                continue
            if line is None:
                break
            if line.strip().lower() in LEAVING:
                break
            skilled = self.agent.skills.said(line.strip(), self.conversation.messages)
            if line.partition(" ")[0].strip() in COMMANDS or (line.startswith("/") and skilled is None):
                with answering():
                    left = self._command(line)
            elif skilled is not None:
                left = not self._answer(skilled)
            elif line.strip():
                left = not self._answer(line)
        code = ExitCode.FINISHED
        if not self.person.interactive and self.last is not None:
            code = exit_code(self.last.stop)
        return code if code or self.is_kept else ExitCode.USAGE

    def _command(self, line: str) -> bool:
        """Carries out a line that begins with a slash; whether it was the last."""
        word, _, rest = line.strip().partition(" ")
        match word:
            case "/exit" | "/quit":
                return True
            case "/help":
                click.echo(HELP)
            case "/tools":
                for tool in self.agent.tools.values():
                    click.echo(clean(f"{tool.name} [{tool.effect}]: {shorten(tool.description, 100)}"))
            case "/why":
                self._why()
            case "/save":
                target = rest.strip() or self.save
                if target is None:
                    note("name a file: /save FILE")
                elif fault := _no_place(Path(target).expanduser()):
                    note(f"the conversation cannot be saved to {target}, which {fault}")
                elif self._saved(target):
                    click.echo(f"saved to {target}")
            case _:
                note(f"there is no {word}; /help lists what there is")
        return False

    def _why(self) -> None:
        if self.last is None:
            note("nothing has been answered yet")
        else:
            print_why(fold_all(self.last.events))

    def _saved(self, target: str) -> bool:
        self.is_kept = False
        try:
            self.conversation.save(Path(target).expanduser())
        except OSError as error:
            note(f"the conversation cannot be saved to {target}: {error.strerror}")
        else:
            self.is_kept = True
        return self.is_kept

    def _answer(self, question: str | UserMessage) -> bool:
        """Answers one question; whether the conversation goes on."""
        said, limits, user = self.conversation, self.limits, self.user
        begin = partial(self.agent.run, question, conversation=said, limits=limits, user=user)
        result = self._carried(lambda see: begin(on_event=see))
        left = False
        while result is not None and result.pending:
            waiting = self._waiting(result)
            if left:
                closing(result, waiting, self.agent.tools, self.then)
                break
            answers, left = decide(self.person, waiting.calls, self.agent.tools)
            if answers:
                going_on = partial(resumed, self.agent, result, answers, conversation=self.conversation)
                result = self._carried(going_on, result)
        ours = result is not None and not self.quiet and self.agent.name == COMMAND_LINE
        asked = question if isinstance(question, str) else question.text
        if result is not None and ours and (hint := for_the_analyst(asked, result, self.agent)):
            note(prose(hint, err=True))
        if result is not None and self.save is not None:
            self._saved(self.save)
        return not self.person.gone

    def _waiting(self, result: RunResult) -> Waiting:
        return self.runner.run(Waiting.of(result.events, self.journal or result.sub_runs))

    def _carried(self, start: Start, earlier: RunResult | None = None) -> RunResult | None:
        """Carries a run and shows it; None if it could not be."""
        answer = AnswerView()
        views: list[View] = [answer, *([trace(texts=False)] if self.tracing else [])]
        watch = Watch(views, () if earlier is None else earlier.events, quiet=self.quiet)
        try:
            result = self.runner.run(watch.carry(start))
        except KeyboardInterrupt:
            note("stopped before it began")
            return None
        except (Misuse, PassesThrough) as error:
            if not self.person.interactive:
                raise
            note(set_off(f"Error: {in_options(error)}"))
            return None
        self.last = result
        answer.end(result)
        if not ((self.quiet and result.finished) or result.pending):
            closing(result, self._waiting(result), self.agent.tools, self.then)
        return result
