"""Failures: what a person is told when a command could not do what was asked, and which exit code says so."""

import os
import traceback

import click

from treadle.cli.exits import ExitCode
from treadle.cli.terminal import clean


def report(error: Exception) -> ExitCode:
    """Prints what went wrong on standard error, and returns the exit code for it.

    What the caller can put right is told in the words of the error itself. Anything else is a fault in treadle: one
    line, and the traceback only with `--debug` or TREADLE_DEBUG=1.
    """
    debugging = os.environ.get("TREADLE_DEBUG", "") not in ("", "0")
    if debugging:
        click.echo(clean("".join(traceback.format_exception(error))), err=True, nl=False)
    if _is_usage(error):
        click.echo(clean(f"Error: {error}"), err=True)
        return ExitCode.USAGE
    hint = "" if debugging else "\nThis is a fault in treadle; --debug before the command shows where."
    click.echo(clean(f"Internal error: {type(error).__name__}: {error}{hint}"), err=True)
    return ExitCode.INTERNAL_ERROR


def _is_usage(error: Exception) -> bool:
    from treadle.journal import JournalError
    from treadle.kernel.errors import Misuse
    from treadle.models.names import UnknownModel
    from treadle.models.providers import MissingKey
    from treadle.tools import BadTool

    if isinstance(error, Misuse | BadTool | JournalError | UnknownModel | MissingKey):
        return True
    if type(error).__module__.startswith("treadle.analyst"):
        from treadle.analyst import AnalystError

        return isinstance(error, AnalystError)
    return False
