"""The reference, the index and the page on the command line leave nothing out."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module

import click
import pytest
from pages import PAGES, ROOT, blocks

from treadle.cli.app import COMMANDS, application

REFERENCE = re.findall(r"^::: (\S+)$", (ROOT / "docs/reference.md").read_text("utf-8"), re.MULTILINE)
INDEX = (ROOT / "docs/index.md").read_text("utf-8")
CLI = (ROOT / "docs/cli.md").read_text("utf-8")


def imported() -> Iterator[tuple[str, str, str]]:
    """Page, module and name of each import of treadle on the pages."""
    for page in PAGES:
        for block in blocks(page.read_text("utf-8")):
            tree = compile(block.code, str(page), "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "treadle":
                    yield from ((page.name, str(node.module), alias.name) for alias in node.names)


def test_every_module_that_a_page_imports_from_is_in_the_reference() -> None:
    assert {module for _, module, _ in imported()} - set(REFERENCE) == set()


@pytest.mark.parametrize("module", REFERENCE)
def test_every_name_that_a_page_imports_is_public_and_has_a_docstring(module: str) -> None:
    there = import_module(module)
    assert there.__doc__
    for page, of, name in imported():
        if of == module:
            value = getattr(there, name)
            assert not name.startswith("_"), page
            assert name in getattr(there, "__all__", [name]), f"{page}: {module}.{name} is not in __all__"
            assert not callable(value) or value.__doc__, f"{page}: {module}.{name} has no docstring"


def test_the_index_leads_to_every_page() -> None:
    pages = {page.name for page in PAGES if page.parent == ROOT / "docs"} - {"index.md"}
    assert {page for page in pages if f"({page}" not in INDEX} == set()


def options(command: click.Command) -> Iterator[str]:
    for one in command.params:
        if isinstance(one, click.Option) and not one.hidden:
            yield from (name for name in (*one.opts, *one.secondary_opts) if name.startswith("--"))
    if isinstance(command, click.Group) and command is not application:
        for below in command.commands.values():
            yield from options(below)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_has_every_option_of_the_help(name: str) -> None:
    command = getattr(import_module(f"treadle.cli.commands.{COMMANDS[name][0]}"), name)
    missing = {option for option in options(command) if not re.search(rf"(?<![\w-]){option}(?![\w-])", CLI)}
    assert missing == set(), f"docs/cli.md does not say what these of treadle {name} are for"
    assert f"treadle {name}" in CLI


def test_the_page_has_no_option_that_is_not_there() -> None:
    known = {"--help", "--version", "--debug"}
    for module, name in ((module, name) for name, (module, _) in COMMANDS.items()):
        known |= set(options(getattr(import_module(f"treadle.cli.commands.{module}"), name)))
    assert set(re.findall(r"(?<![\w-])--[a-z][\w-]*", CLI)) - known == set()


def test_the_files_that_contributing_names_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = set(re.findall(r"`((?:src|tests|docs|scripts|examples|bench)/[\w/.-]*)`", text))
    assert len(named) > 30
    assert {path for path in named if "NAME" not in path and not (ROOT / path).exists()} == set()
