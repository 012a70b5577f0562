"""Completion: the values that a shell offers for an option or an argument when Tab is pressed.

Nothing is imported or asked for it: files of the user's are read, not run, and no model or server is called. Where a
value cannot be found out, none is offered: a shell has no place for an error.
"""

import ast
import asyncio
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import BashComplete, CompletionItem, split_arg_string

if TYPE_CHECKING:
    from treadle.journal import RunInfo

_MOST = 200
"""How many runs, and how many files of a folder, are looked at."""
_LARGEST = 1_000_000
"""Bytes of a file that is looked into for agents and tools."""

_Values = Callable[[click.Context, str], Iterable[tuple[str, str]]]


def _offered(values: _Values) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """What click asks for the values, those that begin with what has been typed."""

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found: list[CompletionItem] = []
        with suppress(Exception):
            found += [
                CompletionItem(value, help=told or None)
                for value, told in values(ctx, incomplete)
                if value.startswith(incomplete) and value.isprintable()
            ]
        return found

    return complete


def _infos(ctx: click.Context) -> "list[RunInfo]":
    from treadle.cli.storage import opened
    from treadle.journal.ones_own import page_of

    async def newest() -> "list[RunInfo]":
        async with opened(ctx.params.get("journal")) as journal:
            return [] if journal is None else await page_of(journal, _MOST)

    return asyncio.run(newest())


def _runs(ctx: click.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    from treadle.cli.terminal import shorten

    yield "last", "the run that began last"
    for info in _infos(ctx):
        if info.parent is None or incomplete:
            yield info.run_id, shorten(info.question, 60)


def _models(ctx: click.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    from treadle.cli.choose import DEFAULT_MODELS
    from treadle.models.providers import PROVIDERS

    yield "offline", "the planner that needs neither key nor network"
    for name in PROVIDERS:
        if name in DEFAULT_MODELS:
            yield f"{name}:{DEFAULT_MODELS[name]}", ""
        else:
            yield f"{name}:", ""
    yield from ((name, "") for name in sorted({info.model for info in _infos(ctx)}) if ":" in name)


def _skills(ctx: click.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    from treadle.cli.skills import ANALYST, MEMORY
    from treadle.tools.builtin import SKILLS

    for name, skill in SKILLS.items():
        yield name, skill.description
    yield ANALYST, "questions about figures in named sources"
    yield MEMORY, "notes that stay"
    yield from _skill_folders(ctx, incomplete)


def _skill_folders(ctx: click.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    from treadle.cli.skill_folders import found

    for one in found():
        yield one.name, "" if one.looked.folder is None else one.looked.folder.description


def _settings(ctx: click.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    from treadle.cli.setting_kinds import SETTINGS

    yield from ((one.name, one.told) for one in SETTINGS.values())


def _key_names(ctx: click.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    from treadle.cli.stored_keys import key_variables

    yield from ((provider, variable) for variable, provider in key_variables().items())


def _sources(ctx: click.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    from treadle.cli.catalogs import open_catalog

    for source in open_catalog(ctx.params.get("sources"), told=False).sources.values():
        yield source.name, source.description


def _tool_names(ctx: click.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    from treadle.tools.builtin import SKILLS

    for skill in SKILLS.values():
        yield from ((tool.name, tool.description) for tool in skill.tools)


def _of_runs(field: str, ctx: click.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    yield from ((name, "") for name in sorted({getattr(info, field) for info in _infos(ctx)}) if name)


def _written(wanted: Callable[[ast.stmt], str], ctx: click.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    """What the Python files of a folder define, as FILE.py:NAME, and the files that define something."""
    folder = Path(os.path.dirname(incomplete.partition(":")[0]))
    for path in sorted(folder.glob("*.py"))[:_MOST]:
        if path.stat().st_size > _LARGEST:
            continue
        with suppress(SyntaxError, ValueError, OSError):
            names = [name for one in ast.parse(path.read_bytes()).body if (name := wanted(one))]
            if names:
                yield str(path), ""
            yield from ((f"{path}:{name}", "") for name in names)


def _is_tool(statement: ast.stmt) -> str:
    if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return ""
    return statement.name if any(_called(one) == "tool" for one in statement.decorator_list) else ""


def _is_agent(statement: ast.stmt) -> str:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as made) if _called(made) == "Agent":
            return name
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.Call() as made) if _called(made) == "Agent":
            return name
        case _:
            return ""


def _called(node: Any) -> str:
    """The last name of what an expression calls, or of itself."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


class Bash(BashComplete):
    """Completion for bash, which takes the colon of provider:model, module:name and C:/file for an end of a word."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that is completed, and that one, each whole again."""
        words, current = split_arg_string(os.environ["COMP_WORDS"]), int(os.environ["COMP_CWORD"])
        whole: list[str] = []
        for word in words[1 : current + 1]:
            if whole and (word == ":" or whole[-1].endswith(":")):
                whole[-1] += word
            else:
                whole.append(word)
        incomplete = whole.pop() if whole and len(words) > current else ""
        self._typed = len(incomplete) - len(words[current]) if len(words) > current else 0
        if len(words) > current and words[current] == ":":
            self._typed += 1
        return whole, incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """A value without what stands before its last colon, if bash keeps that."""
        return f"{item.type},{item.value[self._typed :]}"


runs = _offered(_runs)
models = _offered(_models)
skills = _offered(_skills)
skill_folders = _offered(_skill_folders)
settings = _offered(_settings)
key_names = _offered(_key_names)
sources = _offered(_sources)
tools = _offered(partial(_written, _is_tool))
tool_names = _offered(_tool_names)
agents = _offered(partial(_written, _is_agent))
agents_of_runs = _offered(partial(_of_runs, "agent"))
models_of_runs = _offered(partial(_of_runs, "model"))
