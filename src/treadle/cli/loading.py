"""Loading what a user has written: a module by its dotted name or path, and an object in it.

Such code runs with the rights of the user who named it. The current folder is searched, as Python itself does for `-m`.
"""

import importlib
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from treadle.cli.stored_keys import take_keys
from treadle.cli.terminal import apart, set_off


def load(target: str, option: str) -> tuple[ModuleType, str, Any]:
    """The module that `target` ("module", "module:name", "path.py", "path.py:name") names, the name, and its object.

    Without a name the object is the module itself.

    Args:
        target: what to load.
        option: the option that it came from, for errors.

    Raises:
        click.BadParameter: it cannot be imported, or has no such name; says why.
    """
    if not target.strip():
        raise _bad(option, f"{option} names nothing; give module:name or path.py:name")
    where, name = (target, "") if target.endswith(".py") else _split(target)
    module = _imported(where, target, option)
    if not name:
        return module, "", module
    if not hasattr(module, name):
        from treadle.tools import did_you_mean, nearest

        # Of two that look alike, such as `agent` and the `Agent` that it is one of, what was made in the module.
        named = [each for each in vars(module) if not each.startswith("_")]
        there = sorted(named, key=lambda each: isinstance(getattr(module, each), type | ModuleType))
        raise _bad(option, f"{where} has no {name!r}{did_you_mean(nearest(name, there))}")
    return module, name, getattr(module, name)


def _split(target: str) -> tuple[str, str]:
    where, colon, name = target.rpartition(":")
    return (where, name) if colon else (target, "")


def _imported(where: str, target: str, option: str) -> ModuleType:
    from treadle.tools.errors import describe_exception

    search_here()
    is_path = where.endswith(".py")
    if not where.strip() or (where.startswith(".") and not is_path):
        raise _no_module(where, option)
    # A module may make an agent whose model wants its key at once.
    take_keys()
    try:
        # What a module prints as it is imported is no part of what was asked for.
        with apart():
            return _from_file(Path(where), option) if is_path else importlib.import_module(where)
    except click.BadParameter:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (where == error.name or where.startswith(f"{error.name}.")):
            raise _no_module(where, option) from error
        raise _bad(option, f"importing {target} failed: {describe_exception(error)}") from error
    except (Exception, SystemExit) as error:
        raise _bad(option, f"importing {target} failed: {describe_exception(error)}") from error


def _from_file(path: Path, option: str) -> ModuleType:
    if not path.is_file():
        raise _bad(option, f"there is no file {path}")
    # One name a file, so that two options that name it share one module.
    name = f"treadle_file_{path.stem}_{abs(hash(path.resolve())):x}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise _bad(option, f"{path} is not a Python file")
    # Its own folder is searched, so that it can import its neighbours as `python path.py` would.
    sys.path.insert(0, str(path.resolve().parent))
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def search_here() -> None:
    """Has Python look for modules in the current folder too, which it does not for an installed command."""
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))


def _no_module(where: str, option: str) -> click.BadParameter:
    from treadle.tools.errors import did_you_mean

    path = f"{where}.py" if where and Path(f"{where}.py").is_file() else None
    return _bad(option, f"there is no module {where!r}{did_you_mean(path) or '; give module:name or path.py:name'}")


def _bad(option: str, message: str) -> click.BadParameter:
    return click.BadParameter(set_off(message), param_hint=f"'{option}'")
