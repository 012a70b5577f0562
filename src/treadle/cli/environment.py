"""Environment: the keys of providers that a project keeps in a file `.env`, beside those of the process.

Nothing but keys is taken from it: a file that came with a folder must not be able to send a key to another address, nor
to have code loaded. What the process has already goes before the file.
"""

import os
from pathlib import Path

from treadle.cli.terminal import note

FILE = ".env"


def read_keys() -> list[str]:
    """Takes the keys that `.env` in the current folder has into the environment; the names of their variables."""
    path = Path(FILE)
    try:
        if not path.is_file():
            return []
    except OSError:
        return []
    from dotenv import dotenv_values

    from treadle.models.providers import PROVIDERS

    try:
        said = dotenv_values(path, interpolate=False, encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        note(f"{path.absolute()} cannot be read, and is left aside: {error}")
        return []
    names = {name for provider in PROVIDERS.values() for name in provider.key_variables}
    taken = {name: value for name, value in said.items() if name in names and value and not os.environ.get(name)}
    os.environ.update(taken)
    return sorted(taken)
