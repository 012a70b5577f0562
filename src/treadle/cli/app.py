"""The application: which commands there are, how one is run, and how everything that goes wrong ends.

Imports click and nothing of the library, and a command's module only when the command is used.
"""

import codecs
import io
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import click

from treadle.cli.exits import ExitCode

if TYPE_CHECKING:
    from typing_extensions import Buffer

COMMANDS = {
    "ask": ("ask", "Ask a question and get the answer."),
    "chat": ("chat", "Have a conversation."),
    "runs": ("runs", "List the runs in the journal, newest first."),
    "show": ("show", "Tell the story of a run; with --why, why it went on and stopped."),
    "costs": ("costs", "Tell what a run has spent, by model, tool, agent or step."),
    "watch": ("watch", "Follow a run that another process carries out."),
    "diff": ("diff", "Show two runs side by side, from where they part."),
    "stats": ("stats", "Add up many runs: how they ended, steps, tokens, time and cost."),
    "resume": ("decide", "Go on with a run that is paused, or whose process died."),
    "approve": ("decide", "Allow a tool call that a run waits for, and go on."),
    "resolve": ("decide", "Say what came of a tool call that a crash cut off, and go on."),
    "deny": ("decide", "Refuse a tool call that a run waits for, and go on."),
    "replay": ("replay", "Carry a run out again from the journal, and say where it differs."),
    "fork": ("fork", "Go on from any step of a run as a run of its own."),
    "submit": ("submit", "Have a worker answer a question, or go on with a run."),
    "worker": ("worker", "Drive the runs that were submitted, until stopped."),
    "serve": ("serve", "Serve agents over HTTP, with a page to watch and steer them."),
    "tools": ("tools", "List the tools and their schemas."),
    "skills": ("skills", "List, show, check and begin skills that stand in folders."),
    "models": ("models", "List the providers of models, and which can be used here."),
    "sources": ("sources", "List the data analyst's sources, or describe one."),
    "query": ("query", "Ask one source for figures, without a model."),
    "compare": ("compare", "Compare two sources, without a model."),
    "rows": ("rows", "Compare two sources row by row, by a key, column by column."),
    "drill": ("drill", "Show the rows behind one key of a comparison, on both sides."),
    "check": ("check", "Run a file of checks, and say what has changed since."),
    "memory": ("memory", "Show and edit the notes that agents keep."),
    "config": ("config", "Show and change what is set where no option says it."),
    "keys": ("keys", "Keep keys of providers in the system's keyring."),
    "mcp": ("mcp", "Serve an agent, or tools, to MCP clients."),
    "doctor": ("doctor", "Check that everything treadle needs is well."),
    "help": ("help", "Tell what there is, or what a command does."),
}
"""Name of the command: the module in `treadle.cli.commands` that has it, and its line in the help."""


def command_named(name: str) -> click.Command:
    """The command of that name, loaded."""
    module = import_module(f"treadle.cli.commands.{COMMANDS[name][0]}")
    command: click.Command = getattr(module, name)
    return command


class Application(click.Group):
    """The group of all commands. It knows their names and help lines; the commands themselves are loaded when used."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = {name: click.Command(name, short_help=line) for name, (_, line) in COMMANDS.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order in which they are best read."""
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant, loaded."""
        if " " in args[0].strip():
            raise click.UsageError('no command has such a name. To ask a question: treadle ask "…"', ctx)
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and command is not None:
            command = command_named(name)
        return name, command, rest

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        if Path(".env").exists():
            from treadle.cli.environment import read_keys

            read_keys()
        with told_once():
            return super().invoke(ctx)


@contextmanager
def told_once() -> Iterator[None]:
    """Commands say themselves why a run failed; where nobody has set logging up, its line would say it again."""
    from logging import lastResort

    if lastResort is None:
        yield
        return
    lastResort.addFilter(_of_no_run)
    try:
        yield
    finally:
        lastResort.removeFilter(_of_no_run)


def _of_no_run(record: Any) -> bool:
    return bool(record.name != "treadle.runs")


def _debugging(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        os.environ["TREADLE_DEBUG"] = "1"


@click.group(cls=Application, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--debug", is_flag=True, expose_value=False, callback=_debugging,
    help="Show the traceback of an internal error (TREADLE_DEBUG=1).",
)  # fmt: skip
@click.version_option(package_name="treadle", message="%(prog)s %(version)s")
def application() -> None:
    """The agent loop you can read, stop, resume, replay and trust.

    Start with: treadle ask "What is 25 * 4 + 10?"  No key is needed for that.
    """


def run(arguments: Sequence[str]) -> int:
    """Runs the command line on `arguments` and returns the exit code; see `ExitCode` for what each one means."""
    # Who started it may have closed any of them; then there is nobody to read from, or to be told.
    sys.stdin = sys.stdin or io.TextIOWrapper(io.FileIO(os.devnull), encoding="utf-8")
    nowhere = _Nowhere(os.devnull, "w") if sys.stdout is None else None
    sys.stdout = sys.stdout if nowhere is None else io.TextIOWrapper(nowhere, encoding="utf-8")
    sys.stderr = sys.stderr or io.TextIOWrapper(io.FileIO(os.devnull, "w"), encoding="utf-8")
    if nowhere is not None:
        click.echo("standard output is closed: what is printed there is lost", err=True)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a letter gets a substitute for it instead of an error in the middle of an answer.
        if isinstance(stream, io.TextIOWrapper):
            # Click writes beside one that takes ASCII alone: what waited in this one would come after that.
            at_once = codecs.lookup(stream.encoding).name == "ascii"
            stream.reconfigure(errors="replace", line_buffering=at_once or None)
    try:
        code = _came_to(list(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        # Nobody reads the output any more, which other tools end at without a word, too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.PIPE_CLOSED
    except click.ClickException as error:
        from treadle.cli.failures import refuse

        return refuse(error)
    except (click.Abort, KeyboardInterrupt) as left:
        from treadle.cli.terminal import heard

        with heard():
            # A terminal shows ^C where it is pressed; a prompt that is left has ended its line.
            click.echo("interrupted" if isinstance(left, click.Abort) else "\ninterrupted", err=True)
        return ExitCode.INTERRUPTED
    except Exception as error:
        from treadle.cli.failures import report

        return report(error)
    if nowhere is not None and nowhere.lost and not code:
        return ExitCode.USAGE
    return code if isinstance(code, int) else ExitCode.FINISHED


def _came_to(arguments: list[str]) -> Any:
    """What the command comes to. Click's own `main` has codes of its own, such as 1 where nobody reads the help."""
    if instruction := os.environ.get("_TREADLE_COMPLETE"):
        from click.shell_completion import add_completion_class, shell_complete

        from treadle.cli.completion import Bash

        add_completion_class(Bash)
        return shell_complete(application, {}, "treadle", "_TREADLE_COMPLETE", instruction)
    _require_readable(arguments)
    try:
        with application.make_context("treadle", arguments) as context:
            return application.invoke(context)
    except click.exceptions.Exit as told:
        return told.exit_code


def _require_readable(arguments: list[str]) -> None:
    """Refuses what Python could not read in a locale of ASCII: it would be asked with a ? for each letter of others."""
    if sys.getfilesystemencoding() != "ascii":
        return
    # A file that is there is found by those bytes all the same.
    if any(not one.isascii() and not os.path.exists(one) for one in arguments):
        raise click.UsageError("in this locale Python reads ASCII alone: say PYTHONUTF8=1 before the command")


def write_whole() -> None:
    """Has the streams of this process written whole or with an error.

    With PYTHONUNBUFFERED Python's own drop in silence what the system did not take at once, as on a disk that has
    become full.
    """
    sys.stdout, sys.stderr = _buffered(sys.stdout), _buffered(sys.stderr)


def _buffered(stream: TextIO) -> TextIO:
    raw = stream.buffer if isinstance(stream, io.TextIOWrapper) else None
    if not isinstance(raw, io.FileIO):
        return stream
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=stream.encoding, line_buffering=True)


class _Nowhere(io.FileIO):
    """The null device in the place of a closed stream, whose number nothing else gets so; knows whether it was used."""

    lost = False

    def write(self, data: "Buffer", /) -> int:
        self.lost = True
        return super().write(data)


def leave(code: int) -> NoReturn:
    """Ends the process, also while a tool that was given up still runs in its thread, which nothing can stop."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            # What could not be written is given up here: Python would end with a code of its own.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    # Threads that Python does not know, those of Temporal's client, crash an interpreter that ends as usual.
    if "temporalio" not in sys.modules and all(
        thread.daemon or thread is threading.main_thread() for thread in threading.enumerate()
    ):
        sys.exit(code)
    os._exit(code)
