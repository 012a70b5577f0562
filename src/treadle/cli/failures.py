"""Failures: what a person is told when a command could not do what was asked, and which exit code says so."""

import errno
import os
import re
import shlex
import sysconfig
import traceback
from contextlib import suppress
from pathlib import Path

import click
from click.exceptions import NoArgsIsHelpError

import treadle
from treadle.cli.exits import ExitCode
from treadle.cli.terminal import clean, heard, prose, set_off


def report(error: Exception) -> ExitCode:
    """Prints what went wrong on standard error, and returns the exit code for it.

    What the caller can put right is told in the words of the error itself. Anything else is a fault in code of the
    user's that a run called, or in treadle: one line, and the traceback only with `--debug` or TREADLE_DEBUG=1.
    """
    debugging = os.environ.get("TREADLE_DEBUG", "") not in ("", "0")
    if debugging:
        _tell(clean("".join(traceback.format_exception(error)).removesuffix("\n")))
    if _is_usage(error):
        _tell(_fitted(set_off(f"Error: {in_options(error)}")))
        return ExitCode.USAGE
    if isinstance(error, OSError) and (around := _around(error)):
        _tell(_fitted(set_off(f"Error: {around}")))
        return ExitCode.USAGE
    more = "" if debugging else "; --debug before the command shows where"
    what = set_off(f"{type(error).__name__}: {error}")
    if (place := _users_own(error)) is not None:
        _tell(_fitted(clean(f"Error in {place}: {what}\nThis is a fault in code of yours{more}.")))
        return ExitCode.INTERNAL_ERROR
    _tell(_fitted(clean(f"Internal error: {what}\nThis is a fault in treadle{more}.")))
    return ExitCode.INTERNAL_ERROR


def refuse(error: click.ClickException) -> int:
    """Prints what click refuses, with how the command is used, and returns the exit code for it."""
    message = error.format_message()
    for kind, plain in _KINDS.items():
        message = message.replace(kind, plain)
    told = _fitted(f"Error: {message}").removeprefix("Error: ")
    with heard():
        if isinstance(error, NoArgsIsHelpError):
            # It is the help itself.
            error.show()
        elif isinstance(error, click.UsageError):
            click.UsageError(told, error.ctx).show()
        else:
            click.ClickException(told).show()
    return error.exit_code


def _tell(text: str) -> None:
    with heard():
        click.echo(text, err=True)


def _fitted(text: str) -> str:
    return prose(text, err=True, indent="  | ")


def in_options(error: Exception) -> str:
    """The words of `error`, with an option in the place of the argument that it asks for."""
    told = str(error)
    for argument, option in _OPTIONS.items():
        told = told.replace(argument, option)
    if variable := re.search(r"set the environment variable (\w+)", told):
        told = told.replace(_STORED, f"{_STORED} {variable[1]}")
    if _LISTED in told:
        told = told.replace(_LISTED, _listed_in(error))
    if missing := re.match(r"there is no source '([^']+)'", told):
        told += _as_a_file(missing[1])
    where = _where_set(told)
    # Tokens said in an option leave the dollars of a setting where they are.
    return f"{told.replace(_IN_TOKENS, '')}{where}" if where else told


def _listed_in(error: Exception) -> str:
    """The command that lists the runs of the journal in which `error` found none of a name."""
    from treadle.cli.storage import journal_named
    from treadle.journal.addresses import without_password

    where, usual = getattr(error, "where", ""), ""
    # A file of settings that cannot be read is told to whoever needs it.
    with suppress(click.ClickException):
        usual = without_password(journal_named())
    return _LISTED if where in ("", usual) else f"`{shlex.join(['treadle', 'runs', '--journal', where])}`"


def _as_a_file(named: str) -> str:
    """What to do with a file that was named in the place of a source; empty of what is none."""
    if not Path(named).is_file():
        return ""
    return f". A file is declared first: treadle sources init {shlex.quote(named)} -o sources.yaml, then say --sources"


def _where_set(told: str) -> str:
    """Of a limit in dollars that cannot be kept: where it is set, if no option said it."""
    if "Limits(usd=" not in told:
        return ""
    from treadle.cli.settings import setting

    found = setting("limits.usd")
    if found is None or f"Limits(usd={found.value})" not in told:
        return ""
    return f". The limit in dollars is set in {found.where}: take it out there, if it is not to hold"


_KINDS = {
    "is not a valid integer range.": "is no whole number, such as 5.",
    "is not a valid float range.": "is no number, such as 0.50.",
    "is not a valid integer.": "is no whole number, such as 5.",
    "is not a valid float.": "is no number, such as 0.50.",
}
"""What click says of a number in the words of its own types, and what it means."""

_LISTED = "`treadle runs`"
_STORED = "store it with treadle keys set"
_IN_TOKENS = ", or say --max-tokens in place of dollars"

_OPTIONS = {
    "with user=…": "with --user NAME",
    "give the run some with deps=…": (
        "run it from a program, with deps=…, or by treadle serve or treadle worker, whose --deps names a function that "
        "gives them"
    ),
    "takeover=True (command line: --take-over)": "--take-over",
    ", or give api_key=": f", put it into a file .env in the current folder, or {_STORED}",
    "give region=, such as region='us-east-1', or set ": "set ",
    ", or give base_url=": "",
    "Give the model a price (price=Price(input=…, output=…), in dollars per million tokens), or limit tokens instead": (
        f"Name a file with its price in TREADLE_PRICES{_IN_TOKENS}"
    ),
    " (in Python: await journal.list())": "",
    " (in Python: journal.delete(run_id))": "",
}

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)

_BARRED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)


def _around(error: OSError) -> str:
    """What is wrong where the command runs: its output, its folder or that of temporary files; empty if nothing is."""
    if error.errno in _FULL and _users_own(error) is None:
        return f"the output cannot be written: {error.strerror}. What a run has done is in its journal."
    if error.errno in _BARRED and isinstance(error.filename, (str, bytes)) and _users_own(error) is None:
        return (
            f"{os.fsdecode(error.filename)} cannot be used: {error.strerror}. Look at the rights of it and its folders."
        )
    if error.errno != errno.ENOENT:
        return ""
    try:
        os.getcwd()
    except FileNotFoundError:
        return "the folder in which this runs is gone; go to one that is there (cd)."
    none, found, places = str(error.strerror).partition("No usable temporary directory found in ")
    if found and not none:
        return f"no temporary file can be written in any of {places}; make room there, or name another one in TMPDIR."
    return ""


def _users_own(error: BaseException) -> str | None:
    """The place in the user's own code at which `error` came up, if it did in there or in what that called."""
    treadles, pythons = Path(treadle.__file__).parent, sysconfig.get_path("stdlib")
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    for step in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(step.filename)
        shipped = path.is_relative_to(treadles) or path.is_relative_to(pythons) or "site-packages" in path.parts
        if not shipped and not step.filename.startswith("<"):
            return f"{path.name}:{step.lineno} ({step.name})"
    return None


def _is_usage(error: Exception) -> bool:
    from treadle.kernel.errors import IllegalEvent, Misuse, PassesThrough
    from treadle.tools import BadTool
    from treadle.tools.server import ServerFailed

    if isinstance(error, Misuse | BadTool | ServerFailed | IllegalEvent | PassesThrough):
        return True
    if type(error).__module__.startswith("treadle.analyst"):
        from treadle.analyst import AnalystError

        return isinstance(error, AnalystError)
    return False
