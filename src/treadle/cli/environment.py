"""Environment: the keys of providers that a project keeps in a file `.env`, beside those of the process.

Nothing but keys is taken from it: a file that came with a folder must not be able to send a key to another address, nor
to have code loaded. What the process has already goes before the file.
"""

import os
from pathlib import Path

from treadle.cli.terminal import note

TAKEN: list[str] = []
"""The variables that were taken from the file."""


def read_keys() -> None:
    """Takes the keys that `.env` in the current folder has into the environment."""
    path = Path(".env")
    if not path.is_file():
        return
    from dotenv import dotenv_values

    from treadle.models.providers import PROVIDERS

    try:
        said = dotenv_values(path, interpolate=False, encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        note(f"{path.absolute()} cannot be read, and is left aside: {error}")
        return
    names = {name for provider in PROVIDERS.values() for name in (provider.key_variable, provider.other_key_variable)}
    taken = {name: value for name, value in said.items() if name in names and value and not os.environ.get(name)}
    os.environ.update(taken)
    TAKEN.extend(sorted(taken))
