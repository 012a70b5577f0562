"""The tables of `docs/models.md`: each cell on dialects names a test that there is, each provider has its row."""

import ast
import re
from pathlib import Path

from treadle.models.providers import ALIASES, PROVIDERS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "models.md").read_text("utf-8")
SECTION = PAGE.partition("## What each dialect does")[2].partition("\n## ")[0]
FEATURES = ["text", "tools", "parallel", "streaming", "thinking", "structured output", "images", "cache", "prices"]
DIALECTS = ["anthropic", "chat", "responses", "google", "converse"]


def rows(text: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")
    ]


def test_every_cell_names_a_test_that_there_is() -> None:
    named = dict(re.findall(r"^(\d+)\. `(\w+::\w+)`$", SECTION, re.MULTILINE))
    head, *body = [row for row in rows(SECTION) if not set("".join(row)) <= set("-")]
    assert len(head) == len(DIALECTS) + 1
    assert [row[0] for row in body][: len(FEATURES)] == FEATURES
    used = set()
    for row in body:
        assert len(row) == len(head)
        for cell in row[1:]:
            [number] = re.findall(r"\[(\d+)\]$", cell)
            used.add(number)
            file, _, test = named[number].partition("::")
            trees = [ast.parse(path.read_text("utf-8")) for path in ROOT.glob(f"tests/**/{file}.py")]
            defined = {node.name for tree in trees for node in ast.walk(tree) if hasattr(node, "name")}
            assert test in defined, named[number]
    assert used == set(named)


def test_every_dialect_has_its_column() -> None:
    assert {provider.dialect for provider in PROVIDERS.values()} == set(DIALECTS)


def test_every_provider_has_its_row_with_its_variables() -> None:
    table = {row[0]: row for row in rows(PAGE.partition("## ")[0])}
    for provider in PROVIDERS.values():
        [row] = [row for name, row in table.items() if f"`{provider.name}:" in name]
        for variable in (provider.key_variable if provider.needs_key else "", provider.url_variable):
            assert variable in " ".join(row), provider.name
    named = {name for row in table for name in re.findall(r"`([\w-]+):", row)}
    assert named <= set(PROVIDERS) | set(ALIASES)
