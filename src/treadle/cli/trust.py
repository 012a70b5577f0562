"""Trust: which files that came with a folder this user has looked at and allowed.

A file counts by its path and its content: once it is changed, by whoever, it is to be looked at again.
"""

import json
import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import click


def _kept() -> Path:
    from platformdirs import user_data_path

    return user_data_path("treadle", appauthor=False) / "trusted.json"


def is_trusted(path: Path) -> bool:
    """Whether the user has allowed the file as it is now."""
    with suppress(OSError):
        return _trusted().get(str(path.resolve())) == _digest(path)
    return False


def trust(path: Path, seen: str | None = None) -> None:
    """Allows the file as it is now, or as it was `seen` (see `state_of`).

    Raises:
        click.UsageError: what was allowed before cannot be read, and would be lost; or this cannot be written.
    """
    kept = _allowed() | {str(path.resolve()): _digest(path) if seen is None else seen}
    write_own(_kept(), json.dumps(kept, indent=1))


def state_of(path: Path) -> str:
    """What a file is allowed by, taken before it is shown: what it becomes in the meantime is not allowed.

    Raises:
        click.UsageError: it cannot be read.
    """
    try:
        return _digest(path)
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read: {error.strerror}") from error


def distrust(path: Path) -> None:
    """Takes back that the file is allowed.

    Raises:
        click.UsageError: as for `trust`.
    """
    kept = {one: seen for one, seen in _allowed().items() if one != str(path.resolve())}
    write_own(_kept(), json.dumps(kept, indent=1))


def write_own(path: Path, text: str, mode: int = 0o600) -> None:
    """Writes a file, whole or not at all, that only its owner reads or whoever `mode` lets.

    Raises:
        click.UsageError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        target = path.resolve()
        if target.exists() and not target.is_file() and not target.is_dir():
            # Whoever may would replace a device, such as the one that a link to no settings leads to.
            raise click.UsageError(f"{path} cannot be written: it is no regular file")
        beside = target.with_name(f".{target.name}.{os.getpid()}")
        # What stands there under this name was left by a crash, or is a link that somebody laid out.
        beside.unlink(missing_ok=True)
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except (OSError, RuntimeError) as error:
        # Before Python 3.13 a link that leads to itself is a RuntimeError.
        raise click.UsageError(f"{path} cannot be written: {getattr(error, 'strerror', '') or error}") from error


def _trusted() -> dict[str, str]:
    # What cannot be read allows nothing.
    with suppress(click.UsageError):
        return _allowed()
    return {}


def _allowed() -> dict[str, str]:
    path = _kept()
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", "") or "it is no JSON"
        raise click.UsageError(
            f"{path}, which says what you trust, cannot be read: {why}. Mend or remove it"
        ) from error
    if not isinstance(found, dict):
        raise click.UsageError(f"{path}, which says what you trust, does not say it as treadle does. Remove it")
    return found


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()
