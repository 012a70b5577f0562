"""Each claim of the pages with never, always, every, exactly or only stands in `claims.toml`, with its tests.

A sentence that is changed, or a test that is gone, is noticed here; whether the test shows what the sentence says is
for the reader of both. On the pages that are complete every such sentence has its entry.
"""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from pages import ROOT

WORDS = re.compile(r"\b(never|always|every|exactly|only)\b", re.IGNORECASE)
FENCED = re.compile(r"^\s*(`{3,}|~{3,}).*?^\s*\1\s*$", re.MULTILINE | re.DOTALL)
BEGINS = re.compile(r"\s*([-*#>|]|\d+\.)\s|\s*\|")
ENDS = re.compile(r"(?<=[.!?:;])[)*\"]*\s+(?=[A-Z`*\[(\"])")
DEFINED = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
TESTS = [*ROOT.glob("tests/**/*.py"), *ROOT.glob("src/treadle/**/conformance/*.py")]
_READ = tomllib.loads((ROOT / "tests/docs/claims.toml").read_text("utf-8"))
COMPLETE: list[str] = _READ.pop("complete")
CLAIMS: list[tuple[str, str, dict[str, Any]]] = [
    (page, name, claim) for page, claims in _READ.items() for name, claim in claims.items()
]


@cache
def said_on(page: str) -> tuple[str, ...]:
    """The sentences of a page, without its blocks of code."""
    return tuple(sentences(FENCED.sub("\n", (ROOT / "docs" / f"{page}.md").read_text("utf-8"))))


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text in Markdown; a cell of a table is one or more."""
    passages = [[""]]
    for line in text.splitlines():
        if not line.strip() or BEGINS.match(line):
            passages.append([])
        if line.lstrip().startswith("|"):
            passages += [[cell] for cell in re.split(r"(?<!\\)\|", line)] + [[]]
        else:
            passages[-1].append(line.strip())
    for passage in passages:
        yield from ENDS.split(" ".join(passage).strip())


@cache
def defined() -> frozenset[str]:
    """Every test that there is, as "file::test"; found by pattern, as to parse all files takes fifty times as long."""
    return frozenset(f"{path.stem}::{name}" for path in TESTS for name in DEFINED.findall(path.read_text("utf-8")))


@pytest.mark.parametrize(("page", "name", "claim"), CLAIMS, ids=[f"{page}.{name}" for page, name, _ in CLAIMS])
def test_the_claim_stands_in_its_page_and_its_tests_exist(page: str, name: str, claim: dict[str, Any]) -> None:
    assert claim.keys() in ({"says", "tests"}, {"says", "because"}), "a claim has `says`, and `tests` or `because`"
    assert any(claim["says"] in sentence for sentence in said_on(page)), f"docs/{page}.md says it no more"
    assert claim.get("tests", ["none"]) != []
    assert set(claim.get("tests", [])) <= defined()


@pytest.mark.parametrize("page", COMPLETE)
def test_every_such_sentence_of_a_page_has_its_claim(page: str) -> None:
    said = [claim["says"] for of, _, claim in CLAIMS if of == page]
    missing = [
        sentence
        for sentence in said_on(page)
        if WORDS.search(sentence) and not any(claim in sentence for claim in said)
    ]
    assert missing == [], "give each an entry in tests/docs/claims.toml, with a test that shows it"


def test_sentences_are_told_apart() -> None:
    text = "# Never\n\nOne. Only\ntwo (`a`). Three.\n\n- four\n- every five\n\n| always | b \\| c |\n|---|---|\n"
    assert [one for one in sentences(text) if WORDS.search(one)] == [
        "# Never",
        "Only two (`a`).",
        "- every five",
        "always",
    ]
    assert "never" not in FENCED.sub("", "a\n```python\n# never\n```\nb\n\n    ````md\n    never\n    ````\n")
