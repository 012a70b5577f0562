"""Pairs a JSON file of tool descriptions with a module of functions.

The descriptions may be written as a list or under "tools", each as {name, description, input_schema} (also called
`parameters` or `inputSchema`), or in the form of OpenAI's requests, {"type": "function", "function": {...}}.
"""

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from treadle.tools.errors import BadTool, describe_exception, did_you_mean, nearest
from treadle.tools.options import ToolOptions
from treadle.tools.tool import Tool

_INPUT = ("input_schema", "parameters", "inputSchema")
_OUTPUT = ("output_schema", "outputSchema")
_KNOWN = ("name", "description", *_INPUT, *_OUTPUT, *ToolOptions.__annotations__)


def load_tools(json_file: str | Path, module: ModuleType | str | Path) -> list[Tool]:
    """The tools that `json_file` describes, carried out by the functions of `module` with the same names.

    Functions that the file does not describe are left alone. Beside name, description and schemas an item may have the
    options of `tool` (effect, timeout, ...).

    Args:
        json_file: the path of the description file.
        module: a module, its dotted name, or the path of its .py file.

    Raises:
        BadTool: the file or the module cannot be read, or an item is wrong or has no function; says which and where.
    """
    path = Path(json_file)
    items = _items(path)
    functions = _module(module)
    loaded: dict[str, Tool] = {}
    for number, item in enumerate(items):
        made = _tool(item, functions, f"{path}, item {number}")
        if made.name in loaded:
            raise BadTool(f"{path}, item {number}: there are two descriptions of {made.name!r}; remove one")
        loaded[made.name] = made
    return list(loaded.values())


def _items(path: Path) -> list[Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise BadTool(f"{path}: the tool descriptions cannot be read: {error.strerror or error}") from error
    except json.JSONDecodeError as error:
        raise BadTool(f"{path}, line {error.lineno}, column {error.colno}: not valid JSON: {error.msg}") from error
    except (UnicodeDecodeError, RecursionError, ValueError) as error:
        raise BadTool(f"{path}: not a JSON file in UTF-8: {error}") from error
    items = content.get("tools") if isinstance(content, dict) else content
    if not isinstance(items, list):
        raise BadTool(f'{path}: expected a list of tool descriptions, or {{"tools": [...]}}')
    return items


def _tool(item: Any, module: Any, place: str) -> Tool:
    if isinstance(item, dict) and item.get("type") == "function":
        inner = item.get("function")
        item = inner if isinstance(inner, dict) else {key: value for key, value in item.items() if key != "type"}
        # "strict" asks the provider to keep to the schema; here arguments are always checked against it.
        item = {key: value for key, value in item.items() if key != "strict"}
    name = item.get("name") if isinstance(item, dict) else None
    if not isinstance(name, str):
        raise BadTool(f'{place}: expected an object with a "name", a "description" and an "input_schema"')
    place = f"{place} ({name})"
    for key in item:
        if key not in _KNOWN:
            raise BadTool(
                f"{place}: there is no {key!r} here{did_you_mean(nearest(key, _KNOWN))} "
                f"(there are: {', '.join(_KNOWN)})"
            )
    description = item.get("description", "")
    if not isinstance(description, str):
        raise BadTool(f"{place}: the description is a text, not {description!r:.50}")
    schema, output_schema = _first(item, _INPUT, place), _first(item, _OUTPUT, place)
    options = {key: item[key] for key in ToolOptions.__annotations__ if key in item}
    try:
        return Tool.from_schema(
            name,
            description,
            {"type": "object", "properties": {}} if schema is None else schema,
            _function(module, name, place),
            output_schema=output_schema,
            **options,
        )
    except BadTool as error:
        raise error if str(error).startswith(place) else BadTool(f"{place}: {error}") from error


def _first(item: dict[str, Any], keys: tuple[str, ...], place: str) -> Any:
    found = [key for key in keys if key in item]
    if found and not isinstance(item[found[0]], dict):
        raise BadTool(f"{place}: {found[0]} is a JSON Schema object, not {item[found[0]]!r:.50}")
    if len(found) > 1:
        raise BadTool(f"{place}: {' and '.join(found)} are two names of one thing; keep one")
    return item[found[0]] if found else None


def _function(module: Any, name: str, place: str) -> Any:
    found = getattr(module, name, None)
    if callable(found):
        return found
    there = [each for each, value in vars(module).items() if callable(value) and not each.startswith("_")]
    source = getattr(module, "__file__", None) or getattr(module, "__name__", module)
    raise BadTool(
        f"{place}: {source} has no function {name!r}{did_you_mean(nearest(name, there))} "
        f"(there are: {', '.join(there[:30]) or 'none'})"
    )


def _module(module: ModuleType | str | Path) -> Any:
    if not isinstance(module, str | Path):
        return module
    try:
        if isinstance(module, Path) or module.endswith(".py"):
            return _from_file(Path(module))
        return importlib.import_module(module)
    except BadTool:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and str(module).startswith(error.name):
            raise BadTool(
                f"there is no module {error.name!r}; give a dotted name that can be imported, or the path of a .py file"
            ) from error
        raise BadTool(f"importing {module} failed: {describe_exception(error)}") from error
    except Exception as error:
        raise BadTool(f"importing {module} failed: {describe_exception(error)}") from error


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise BadTool(f"{path}: there is no such file of functions")
    # Registered under a name of its own, as dataclasses and forward references look their module up.
    name = f"treadle_tools_from_{path.stem}_{abs(hash(path.resolve())):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadTool(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
