"""`treadle config`: what is set where no option says it, and where each value comes from."""

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treadle.cli import completion
from treadle.cli.setting_kinds import SETTINGS, BadSetting, Setting, setting_named
from treadle.cli.settings import Found, files, project_file, setting, table_of, user_file, values_of
from treadle.cli.storage import journal_named
from treadle.cli.table import print_table
from treadle.cli.terminal import note, print_json
from treadle.cli.trust import is_trusted, state_of, trust, write_own
from treadle.journal.addresses import without_password
from treadle.kernel.stop import Limits

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_project = click.option("--project", is_flag=True, help="The file of the project in this folder, treadle.toml.")


@click.group(invoke_without_command=True, short_help="Show and change what is set where no option says it.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.pass_context
def config(ctx: click.Context, as_json: bool) -> int:
    """Show every setting, its value, and where that comes from.

    An option goes before the environment, that before treadle.toml in the current folder, and that before your own
    file (treadle config path). A treadle.toml counts once you have allowed it with treadle config trust.
    """
    if ctx.invoked_subcommand is not None:
        if as_json:
            raise click.UsageError(f"--json is for all settings; leave it out with {ctx.invoked_subcommand}")
        return 0
    found = {name: setting(name) for name in SETTINGS}
    if as_json:
        print_json({name: _plain(SETTINGS[name], one) for name, one in found.items()})
        return 0
    rows = [
        (name, _shown(name, one.value) if one else _default(name), one.where if one else "default", SETTINGS[name].told)
        for name, one in found.items()
    ]
    print_table(["setting", "value", "from", "what it is"], rows)
    if not list(files()):
        note(f"no file sets anything; yours would be {user_file()}")
    return 0


@config.command(short_help="Print one value.")
@click.argument("name", shell_complete=completion.settings)
def get(name: str) -> int:
    """Print the value of setting NAME that holds here, and nothing else."""
    one = _named(name)
    found = setting(one.name)
    click.echo(_shown(one.name, found.value) if found else _default(one.name))
    return 0


@config.command("set", short_help="Set a value.", context_settings={"ignore_unknown_options": True})
@click.argument("name", shell_complete=completion.settings)
@click.argument("value")
@_project
def set_value(name: str, value: str, project: bool) -> int:
    """Set NAME to VALUE in your own file, or with --project in that of this folder. Skills are parted by commas."""
    one, path = _named(name), _path(project)
    document = _document(path, project)
    try:
        plain = one.of_text(value)
        read = one.read(plain, Path.cwd(), users=not project)
    except BadSetting as error:
        raise click.UsageError(str(error)) from error
    if project and one.kind == "journal" and without_password(str(plain)) != str(plain):
        raise click.UsageError(
            "the address has a password, and treadle.toml is read by all who have the project; leave the password out "
            "(PGPASSWORD and ~/.pgpass give it), or set it without --project"
        )
    if one.kind in ("journal", "sources") and not project:
        # It holds in every folder, so it must not begin in this one.
        plain = read
    table, key = _place(document, one.name)
    table[key] = _item(plain)
    _write(path, document, project)
    click.echo(f"{one.name} is {_shown(one.name, read)}, in {_homely(path)}")
    now = setting(one.name)
    if now is not None and now.where != str(path):
        note(f"here it is {_shown(one.name, now.value)}, as {now.where} says, which goes first")
    return 0


@config.command(short_help="Take a setting out of a file.")
@click.argument("name", shell_complete=completion.settings)
@_project
def unset(name: str, project: bool) -> int:
    """Take NAME out of your own file, or with --project out of that of this folder."""
    path = _path(project)
    document = _document(path, project)
    # Also what is no setting can be taken out, so that a file is put right by it.
    wanted = next((one for one in (name, f"limits.{name}") if _has(document, one)), None)
    if wanted is None:
        _named(name)
        raise click.UsageError(f"{path} does not set {name}")
    table, key = _place(document, wanted)
    del table[key]
    if "." in wanted and not table:
        del document[wanted.rpartition(".")[0]]
    _write(path, document, project)
    click.echo(f"{wanted} is not set in {_homely(path)} any more")
    return 0


@config.command(short_help="Print where the file is.")
@_project
def path(project: bool) -> int:
    """Print where your own file is, or with --project that of this folder, whether or not it is there."""
    click.echo(_path(project))
    return 0


@config.command("trust", short_help="Allow the treadle.toml of this folder.")
def trust_file() -> int:
    """Allow treadle.toml in this folder as it is now, and print what it sets.

    It can name a model of code in this folder, a journal and sources: look at it before you allow it. Once it has
    changed it is to be allowed again.
    """
    path = project_file()
    if not path.is_file():
        raise click.UsageError(f"there is no {path}; treadle config set NAME VALUE --project makes one")
    seen = state_of(path)
    values = values_of(path)
    trust(path, seen)
    click.echo(f"{path} is allowed as it is now")
    for name, value in values.items():
        click.echo(f"  {name} = {_shown(name, value)}")
    return 0


def _path(project: bool) -> Path:
    return project_file() if project else user_file()


def _named(name: str) -> Setting:
    try:
        return setting_named(name)
    except BadSetting as error:
        raise click.UsageError(str(error)) from error


def _document(path: Path, project: bool) -> "TOMLDocument":
    """The file with its comments, to be changed."""
    import tomlkit

    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        if not (project and path.is_symlink()):
            return tomlkit.document()
    if project and not is_trusted(path):
        raise click.UsageError(f"{path} is not allowed yet: look at it, then treadle config trust")
    table_of(path)
    return tomlkit.parse(path.read_text("utf-8-sig"))


def _write(path: Path, document: "TOMLDocument", project: bool) -> None:
    import tomlkit

    text = tomlkit.dumps(document)
    if project:
        # It is others' too, and has no secrets.
        write_own(path, text, path.stat().st_mode & 0o777 if path.exists() else 0o644)
        trust(path)
    else:
        write_own(path, text)


def _place(document: Any, name: str) -> tuple[Any, str]:
    """The table of a setting, made if need be, and its key in there."""
    import tomlkit

    before, _, key = name.rpartition(".")
    if not before:
        return document, key
    if not isinstance(document.get(before), dict):
        document[before] = tomlkit.table()
    return document[before], key


def _has(document: Any, name: str) -> bool:
    if name in document:
        return True
    before, _, key = name.rpartition(".")
    return bool(before) and isinstance(document.get(before), dict) and key in document[before]


def _item(value: Any) -> Any:
    import tomlkit

    if isinstance(value, Decimal):
        return tomlkit.value(format(value, "f"))
    return value


def _shown(name: str, value: Any) -> str:
    """A value as it is typed; of a journal's address without its password."""
    if name == "journal":
        return without_password(str(value))
    return (",".join(value) or "none") if isinstance(value, tuple) else str(value)


def _homely(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else str(path)


def _default(name: str) -> str:
    """What holds where nothing is set."""
    if name == "journal":
        return journal_named()
    if name.startswith("limits."):
        value = getattr(Limits(), name.removeprefix("limits."))
        return "any" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    return {"model": "(by keys and servers: treadle doctor)", "sources": "(the sample)", "skills": "(none)"}[name]


def _plain(one: Setting, found: Found | None) -> dict[str, Any]:
    if found is None:
        return {"value": None, "from": "default", "variable": one.variable, "option": one.option}
    value = without_password(str(found.value)) if one.name == "journal" else found.value
    return {"value": value, "from": found.where, "variable": one.variable, "option": one.option}
