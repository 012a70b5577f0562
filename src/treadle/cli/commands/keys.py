"""`treadle keys`: keys of providers in the system's keyring. What they are is never shown, nor given as an argument."""

import os
import sys

import click

from treadle.cli import completion
from treadle.cli.environment import TAKEN as FROM_FILE
from treadle.cli.stored_keys import key_variables, remove, require_keyring, store, stored_names, variable_of
from treadle.cli.table import print_table
from treadle.cli.terminal import note, print_json


@click.group(short_help="Keep keys of providers in the system's keyring.")
def keys() -> None:
    """Keep the keys of providers in the system's keyring. What they are is never shown.

    A variable in the environment, or in a file .env, goes before the keyring. Needs: pip install 'treadle[keyring]'.
    """


@keys.command(
    "set", short_help="Store a key, which is typed or piped in.", context_settings={"ignore_unknown_options": True}
)
@click.argument("name", shell_complete=completion.key_names)
@click.argument("rest", nargs=-1, metavar="", type=click.UNPROCESSED)
def set_key(name: str, rest: tuple[str, ...]) -> int:
    """Store the key of NAME, a provider such as anthropic or a variable such as ANTHROPIC_API_KEY.

    It is asked for, and not shown as it is typed; without a terminal it is read from standard input.
    """
    if rest:
        raise click.UsageError(
            "a key is not given as an argument: other users see it in the list of processes, and your shell keeps it. "
            f"Take it for known, and make a new one; then: treadle keys set {variable_of(name)}, and type it when asked"
        )
    variable = variable_of(name)
    require_keyring()
    store(variable, _typed(variable))
    click.echo(f"{variable} is in the keyring")
    if os.environ.get(variable, "").strip():
        where = "a file .env" if variable in FROM_FILE else "the environment"
        note(f"{variable} is also set in {where}, which goes first")
    return 0


@keys.command("ls", short_help="List which keys there are, and where.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def list_keys(as_json: bool) -> int:
    """List which keys are in the keyring, in the environment, or in a file .env: never what they are."""
    stored = stored_names()
    found: list[tuple[str, str, str]] = []
    for variable, provider in key_variables().items():
        places = [".env" if variable in FROM_FILE else "environment"] if os.environ.get(variable, "").strip() else []
        places += ["keyring"] if variable in stored else []
        if places:
            found.append((variable, provider, ", ".join(places)))
    if as_json:
        print_json([{"variable": one, "provider": provider, "in": place.split(", ")} for one, provider, place in found])
    elif found:
        print_table(["variable", "provider", "in"], found)
    else:
        note("no key is set; treadle keys set PROVIDER stores one")
    return 0


@keys.command("rm", short_help="Take a key out of the keyring.")
@click.argument("name", shell_complete=completion.key_names)
def remove_key(name: str) -> int:
    """Take the key of NAME, a provider or a variable, out of the keyring."""
    variable = variable_of(name)
    remove(variable)
    click.echo(f"{variable} is out of the keyring")
    return 0


def _typed(variable: str) -> str:
    """The key, from whoever sits there or from a pipe."""
    if sys.stdin.isatty():
        said = str(click.prompt(f"the key ({variable}; it is not shown)", hide_input=True, err=True))
    else:
        said = sys.stdin.read(100_000)
    key = said.strip()
    if not key:
        raise click.UsageError("the key is empty")
    if not key.isascii() or not key.isprintable() or len(key) > 10_000 or " " in key:
        raise click.UsageError("that is no key: it has blanks, lines or letters that no key has")
    return key
