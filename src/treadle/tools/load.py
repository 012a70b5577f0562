"""Pairs descriptions of tools, from a JSON file or in code, with functions.

The descriptions may be written as a list or under "tools", each as {name, description, input_schema} (also called
`parameters` or `inputSchema`), or in the form of OpenAI's requests, {"type": "function", "function": {...}}. In place
of a schema, "inputs" may say in words what each argument is: {"inputs": {"item": "The name of the item."}}.
"""

import importlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from treadle.signatures import takes
from treadle.tools.errors import BadTool, describe_exception, did_you_mean, nearest
from treadle.tools.function import tool
from treadle.tools.options import ToolOptions
from treadle.tools.tool import Tool

_INPUT = ("input_schema", "parameters", "inputSchema")
_OUTPUT = ("output_schema", "outputSchema")
_WORDS = "inputs"
_KNOWN = ("name", "description", *_INPUT, _WORDS, *_OUTPUT, *ToolOptions.__annotations__)

Descriptions = str | Path | Sequence[Mapping[str, Any]] | Mapping[str, Any]
"""The path of a file of descriptions, a list of them, or {"tools": [...]}."""

Functions = ModuleType | str | Path | Mapping[str, Callable[..., Any]] | Callable[[str, dict[str, Any]], Any]
"""A module, its dotted name, the path of its .py file, functions by name, or one function of a name and arguments."""


def load_tools(descriptions: Descriptions, functions: Functions) -> list[Tool]:
    """The tools that are described, carried out by the functions of the same names.

    Functions that nothing describes are left alone. Beside name, description and schemas an item may have the options
    of `tool` (effect, timeout, ...).

    Args:
        descriptions: the path of a JSON file of descriptions, or the descriptions themselves.
        functions: a module, its dotted name, the path of its .py file, a mapping of names to functions, or one function
            `execute(name, arguments)`, sync or async, that carries out all of them.

    Raises:
        BadTool: the file or the module cannot be read, or an item is wrong or has no function; says which and where.
    """
    if isinstance(descriptions, str | Path):
        place, items = str(descriptions), _items(Path(descriptions))
    else:
        place, items = "load_tools", _listed(descriptions, "load_tools")
    found = _found(functions)
    loaded: dict[str, Tool] = {}
    for number, item in enumerate(items):
        made = _tool(item, found, f"{place}, item {number}")
        if made.name in loaded:
            raise BadTool(f"{place}, item {number}: there are two descriptions of {made.name!r}; remove one")
        loaded[made.name] = made
    return list(loaded.values())


def _listed(content: Any, place: str) -> list[Any]:
    items = content.get("tools") if isinstance(content, Mapping) else content
    if isinstance(items, tuple | list):
        return [dict(item) if isinstance(item, Mapping) else item for item in items]
    raise BadTool(f'{place}: expected a list of tool descriptions, or {{"tools": [...]}}')


def _items(path: Path) -> list[Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise BadTool(f"{path}: the tool descriptions cannot be read: {error.strerror or error}") from error
    except json.JSONDecodeError as error:
        raise BadTool(f"{path}, line {error.lineno}, column {error.colno}: not valid JSON: {error.msg}") from error
    except (UnicodeDecodeError, RecursionError, ValueError) as error:
        raise BadTool(f"{path}: not a JSON file in UTF-8: {error}") from error
    return _listed(content, str(path))


def _tool(item: Any, functions: Callable[[str, str], Callable[..., Any]], place: str) -> Tool:
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
    schema, output_schema = _first(item, (*_INPUT, _WORDS), place), _first(item, _OUTPUT, place)
    function = functions(name, place)
    if _WORDS in item:
        schema = _in_words(item[_WORDS], function, place)
    options = {key: item[key] for key in ToolOptions.__annotations__ if key in item}
    try:
        return Tool.from_schema(
            name,
            description,
            {"type": "object", "properties": {}} if schema is None else schema,
            function,
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


def _in_words(inputs: dict[str, Any], function: Callable[..., Any], place: str) -> dict[str, Any]:
    """The schema of arguments that are described in words; their types are the function's, where it says them."""
    try:
        own = tool(function).spec.input_schema.get("properties", {})
    except BadTool:
        # One function of a name and arguments says nothing of them; any other fault is told where the tool is made.
        own = {}
    properties: dict[str, Any] = {}
    for name, words in inputs.items():
        if not isinstance(words, str | dict):
            raise BadTool(f"{place}: {_WORDS} says of each argument in words what it is; {name!r} has {words!r:.50}")
        properties[name] = {**own.get(name, {}), **({"description": words} if isinstance(words, str) else words)}
    needed = [name for name in inputs if "default" not in properties[name]]
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}


def _found(functions: Functions) -> Callable[[str, str], Callable[..., Any]]:
    """What gives the function of a name, for the item at a place."""
    if isinstance(functions, str | Path | ModuleType):
        module = _module(functions)
        source = getattr(module, "__file__", None) or getattr(module, "__name__", module)
        return lambda name, place: _named(vars(module), name, place, str(source))
    if isinstance(functions, Mapping):
        return lambda name, place: _named(functions, name, place, "the mapping")
    if not callable(functions) or isinstance(functions, type):
        # Anything with functions as attributes, such as an object of the application.
        return lambda name, place: _named(_attributes(functions), name, place, repr(functions)[:60])
    if not takes(functions, None, None):
        raise BadTool(
            f"the one function that carries all tools out takes a name and arguments; given: {functions!r:.99}"
        )
    return lambda name, place: _passed_on(functions, name)


def _attributes(owner: object) -> dict[str, Any]:
    return {name: getattr(owner, name) for name in dir(owner) if not name.startswith("__")}


def _passed_on(execute: Callable[[str, dict[str, Any]], Any], name: str) -> Callable[..., Any]:
    """The function of one tool, which has `execute` carry it out."""
    if inspect.iscoroutinefunction(execute) or inspect.iscoroutinefunction(type(execute).__call__):

        async def awaited(**arguments: Any) -> Any:
            return await execute(name, arguments)

        return awaited

    def called(**arguments: Any) -> Any:
        return execute(name, arguments)

    return called


def _named(functions: Mapping[str, Any], name: str, place: str, source: str) -> Callable[..., Any]:
    found = functions.get(name)
    if callable(found):
        function: Callable[..., Any] = found
        return function
    there = [each for each, value in functions.items() if callable(value) and not each.startswith("_")]
    raise BadTool(
        f"{place}: {source} has no function {name!r}{did_you_mean(nearest(name, there))} "
        f"(there are: {', '.join(there[:30]) or 'none'})"
    )


def _module(module: ModuleType | str | Path) -> ModuleType:
    if isinstance(module, ModuleType):
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
