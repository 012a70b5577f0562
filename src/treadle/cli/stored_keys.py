"""Stored keys: the keys of providers that the user has put into the system's keyring.

Which ones there are stands in a file of names, for a keyring cannot be listed; what they are stands in the keyring
alone. A key is taken into the environment of this process where a model may want it, unless that has one already.
"""

import json
import os
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from treadle.cli.terminal import note
from treadle.cli.trust import write_own

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

SERVICE: Final = "treadle"
"""What the keys stand under in the keyring."""

TAKEN: list[str] = []
"""The variables whose keys were taken from the keyring."""

_looked: list[bool] = []

ELSEWHERE: Final = "set the variable in the environment, or in a file .env in the current folder"
"""Where a key goes on a machine without a keyring."""


def _names_file() -> Path:
    from platformdirs import user_data_path

    return user_data_path("treadle", appauthor=False) / "keys.json"


def stored_names() -> list[str]:
    """The variables whose keys are in the keyring.

    Raises:
        click.UsageError: the file of their names cannot be read.
    """
    path = _names_file()
    try:
        found = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return []
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read: {error.strerror}; look at its rights") from error
    return (
        [name for name in found if isinstance(name, str) and name in key_variables()] if isinstance(found, list) else []
    )


def key_variables() -> dict[str, str]:
    """The variables that hold keys, with the name of the first provider of each."""
    from treadle.models.providers import PROVIDERS

    found: dict[str, str] = {}
    for provider in PROVIDERS.values():
        for name in (provider.key_variable, provider.other_key_variable):
            if name:
                found.setdefault(name, provider.name)
    return found


def variable_of(named: str) -> str:
    """The variable that `named` means: its own name, or that of a provider.

    Raises:
        click.UsageError: there is none; says what may be meant, and never what was given, which may be a key.
    """
    from treadle.models.providers import ALIASES, PROVIDERS
    from treadle.tools import did_you_mean, nearest

    variables = key_variables()
    if named.upper() in variables:
        return named.upper()
    provider = PROVIDERS.get(ALIASES.get(named.lower(), named.lower()))
    if provider is not None and provider.key_variable:
        return provider.key_variable
    if provider is not None:
        raise click.UsageError(f"{provider.name} needs no key")
    guess = did_you_mean(nearest(named, [*PROVIDERS, *variables]))
    raise click.UsageError(
        f"that is no provider with a key, and no variable that holds one{guess}; treadle models lists both. A key "
        "itself is never given as an argument, where others can see it"
    )


def require_keyring() -> None:
    """Raises click.UsageError, saying what to do instead, where there is no keyring."""
    _keyring()


def store(variable: str, key: str) -> None:
    """Puts a key into the keyring.

    Raises:
        click.UsageError: there is no keyring that keeps it; says what to do instead.
    """
    keyring = _keyring()
    try:
        keyring.set_password(SERVICE, variable, key)
        kept = keyring.get_password(SERVICE, variable) == key
    except Exception as error:
        # Whatever a backend raises: its words may hold the key.
        raise click.UsageError(f"the keyring did not take the key ({_why(error)}); {ELSEWHERE}") from None
    if not kept:
        raise click.UsageError(f"the keyring of this machine ({_called(keyring)}) keeps nothing; {ELSEWHERE}")
    write_own(_names_file(), json.dumps(sorted({*stored_names(), variable})))


def remove(variable: str) -> None:
    """Takes a key out of the keyring.

    Raises:
        click.UsageError: it is not in there, or the keyring cannot be used.
    """
    from keyring.errors import PasswordDeleteError

    names = stored_names()
    if variable not in names:
        listed = f" (there are: {', '.join(names)})" if names else ""
        raise click.UsageError(f"no key for {variable} is in the keyring{listed}")
    keyring = _keyring()
    try:
        # One that somebody has removed there is gone, as was asked for.
        with suppress(PasswordDeleteError):
            keyring.delete_password(SERVICE, variable)
        left = keyring.get_password(SERVICE, variable)
    except Exception as error:
        raise click.UsageError(f"the keyring cannot be used: {_why(error)}") from None
    if left is not None:
        raise click.UsageError(f"the keyring ({_called(keyring)}) did not give the key up; it is still there")
    write_own(_names_file(), json.dumps(sorted({*names} - {variable})))


def take_keys() -> None:
    """Takes the stored keys into the environment, once; those that it has already stay as they are."""
    if _looked:
        return
    _looked.append(True)
    try:
        wanted = [name for name in stored_names() if not os.environ.get(name, "").strip()]
        if not wanted:
            return
        keyring = _keyring()
        found = {name: keyring.get_password(SERVICE, name) for name in wanted}
    except click.UsageError as error:
        note(f"the stored keys are left aside: {error.message}")
        return
    except Exception as error:
        # Whatever a desktop's service says: the question may be for a model that needs no key.
        note(f"the stored keys are left aside: the keyring cannot be read ({_why(error)})")
        return
    if gone := [name for name, key in found.items() if not key]:
        note(f"no longer in the keyring: {', '.join(gone)} (treadle keys set stores it, treadle keys rm forgets it)")
    # What another program may have put there need not be a key.
    taken = {name: key for name, key in found.items() if key and key.isprintable()}
    os.environ.update(taken)
    TAKEN.extend(taken)


def _keyring() -> "KeyringBackend":
    if find_spec("keyring") is None:
        raise click.UsageError(f"the system's keyring needs: pip install 'treadle[keyring]'; or {ELSEWHERE}")
    import keyring
    from keyring.backends.fail import Keyring as Nothing

    found: KeyringBackend = keyring.get_keyring()
    if isinstance(found, Nothing):
        raise click.UsageError(f"this machine has no keyring that can be used; {ELSEWHERE}")
    return found


def _called(keyring: "KeyringBackend") -> str:
    return str(getattr(keyring, "name", type(keyring).__name__))


def _why(error: Exception) -> str:
    """What failed, without the words of the backend, which may hold what it was given."""
    return type(error).__name__
