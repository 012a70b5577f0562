"""Settings: what commands take where no option says it: of the environment, the project's file, the user's file.

Neighbours: `treadle.cli.setting_kinds`, which values there are and what each may be; `treadle.cli.trust`, which files
of a folder are used.
"""

import os
import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
from msgspec.structs import replace

from treadle.cli.setting_kinds import SETTINGS, BadSetting, setting_named
from treadle.cli.terminal import note
from treadle.cli.trust import is_trusted
from treadle.kernel.stop import Limits
from treadle.small_files import small_text

PROJECT: Final = "treadle.toml"
"""The file of a project, in the current folder."""

_told: set[Path] = set()


class Found(NamedTuple):
    """A value that is set, as commands take it, and where."""

    value: Any
    where: str


def user_file() -> Path:
    """The file of this user."""
    from platformdirs import user_config_path

    return user_config_path("treadle", appauthor=False) / "config.toml"


def project_file() -> Path:
    """The file of the project in the current folder, whether or not there is one."""
    return Path.cwd() / PROJECT


def setting(name: str) -> Found | None:
    """What is set for `name`: in the environment, else in the project's file, else in the user's; None if nowhere.

    Raises:
        click.UsageError: the value, or a file, is not valid; says where and what would be right.
    """
    variable = SETTINGS[name].variable
    if said := os.environ.get(variable, "").strip():
        try:
            return Found(SETTINGS[name].read_text(said, None), variable)
        except BadSetting as error:
            raise click.UsageError(f"{variable}: {error}") from error
    for path in files():
        values = values_of(path)
        if name in values:
            return Found(values[name], str(path))
    return None


def files() -> Iterator[Path]:
    """The files that hold here, the project's first; one that nobody has trusted yet is told of, and left aside."""
    # Looked for as it is named: the folder itself may be gone.
    if _stands(Path(PROJECT)):
        project = project_file()
        if is_trusted(project):
            yield project
        elif project not in _told and "_TREADLE_COMPLETE" not in os.environ:
            _told.add(project)
            note(f"{PROJECT} in this folder is not used: look at it, then allow it with treadle config trust")
    user = user_file()
    if _stands(user):
        yield user


def _stands(path: Path) -> bool:
    """Whether anything has that name: limits in what cannot be read are not to be left out unsaid.

    Raises:
        click.UsageError: it cannot be looked at.
    """
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise click.UsageError(f"{path} cannot be looked at: {error.strerror}") from error
    return True


def values_of(path: Path) -> dict[str, Any]:
    """What a file sets, by the names of the settings; paths in it are those beside it.

    Raises:
        click.UsageError: it cannot be read, or holds what is no setting.
    """
    found: dict[str, Any] = {}
    for name, value in _flat(table_of(path)):
        try:
            one = setting_named(name)
            if one.name != name:
                # Only commands take it without its table: one file would else say it in two places.
                raise BadSetting(f"there is no setting {name!r:.60}; did you mean {one.name!r}?")
            found[name] = one.read(value, path.parent, users=path == user_file())
        except BadSetting as error:
            raise click.UsageError(f"{path}: {error}") from error
    return found


def table_of(path: Path) -> dict[str, Any]:
    """A file as TOML has it, with exact decimals.

    Raises:
        click.UsageError: it cannot be read, or is no TOML; says in which line.
    """
    try:
        if path.is_fifo():
            # It would be waited for.
            raise click.UsageError(f"{path} is no regular file")
        return tomllib.loads(small_text(path), parse_float=Decimal)
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read: {error.strerror}") from error
    except RecursionError as error:
        raise click.UsageError(f"{path} cannot be read: values stand too deep in each other") from error
    except ValueError as error:
        # Of TOML that is none, bytes that are no text, and a number of more digits than are read.
        raise click.UsageError(f"{path} is not valid TOML: {error!s:.300}") from error


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a table by their whole names; a table that has a setting's name is its value."""
    for key, value in table.items():
        name = f"{before}{key}"
        if isinstance(value, dict) and name not in SETTINGS:
            if not any(one.startswith(f"{name}.") for one in SETTINGS):
                yield name, value
            else:
                yield from _flat(value, f"{name}.")
        else:
            yield name, value


def configured_limits() -> Limits:
    """The limits of an agent that a command makes, before its options."""
    fields = [name.removeprefix("limits.") for name in SETTINGS if name.startswith("limits.")]
    found = {field: setting(f"limits.{field}") for field in fields}
    return replace(Limits(), **{field: one.value for field, one in found.items() if one is not None})
