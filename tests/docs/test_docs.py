"""The documentation is true: every python block in it runs, and every page can be found.

The blocks of a page run in order, in one namespace, in a process of their own with no keys and an empty folder to write
to, as a reader would who pastes them one after the other: one that is forked from another, which has loaded the public
names. `await` may stand at the top level. A block that cannot run here says why in a comment right before it,
`<!-- skip: reason -->`, and is reported as skipped.

The pages about models talk to a server on loopback that plays back what providers said (see `conftest.py`): the
environment says where it is, and it stands where a page writes the address of a server of one's own. So it is with the
pages that keep runs in PostgreSQL, and a database.

`page_run.py PAGE` is that process, which runs the blocks of one page.
"""

import os
import re
import subprocess
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pages import PAGES, ROOT, blocks, name_of
from stem import Stem, run_in

SECONDS_A_PAGE = 120
TALKING = [
    ROOT / "docs" / f"{name}.md"
    for name in (
        "models",
        "local-models",
        "keys",
        "retries",
        "costs",
        "text-protocols",
        "from-pydantic-ai",
        "from-langchain",
        "from-openai-agents",
        "from-smolagents",
        "from-ai-sdk",
    )
]
IN_POSTGRES = [ROOT / "docs" / "postgres-journal.md"]
STORING = [ROOT / "docs" / "workers.md"]
RUN = Path(__file__).parent / "page_run.py"


def run_apart(
    stem: Stem | None, page: Path, folder: Path, models: Mapping[str, str] = {}
) -> "subprocess.CompletedProcess[str]":
    """Runs a page in a process of its own, in `folder`, which is its home too, with no keys but those in `models`."""
    secret = re.compile("API_KEY|TOKEN|BASE_URL|OLLAMA_HOST")
    environment = {name: value for name, value in os.environ.items() if not secret.search(name)}
    environment |= {"HOME": str(folder), "XDG_DATA_HOME": str(folder / "data"), "PYTHONIOENCODING": "utf-8", **models}
    words = [str(RUN), str(page)]
    return run_in(stem, words, folder, environment, options=["-W", "error"], seconds=SECONDS_A_PAGE)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page not in (*TALKING, *STORING, *IN_POSTGRES)], ids=name_of
)
def test_every_block_of_the_page_runs(page: Path, tmp_path: Path, strict: Stem | None) -> None:
    assert_ran(run_apart(strict, page, tmp_path))


@pytest.mark.parametrize("replies", ["recorded", "made"])
@pytest.mark.parametrize("page", TALKING, ids=name_of)
def test_every_block_of_a_page_about_models_runs_against_the_replay_server(
    page: Path, replies: str, tmp_path: Path, strict: Stem | None, replay: Callable[[str], dict[str, str]]
) -> None:
    assert_ran(run_apart(strict, page, tmp_path, replay(replies)))


@pytest.mark.parametrize("page", IN_POSTGRES, ids=name_of)
def test_every_block_of_a_page_about_postgres_runs_against_a_real_server(
    page: Path, tmp_path: Path, strict: Stem | None, server: Any
) -> None:
    server.execute("CREATE DATABASE treadle")
    try:
        assert_ran(run_apart(strict, page, tmp_path, server.environment()))
    finally:
        server.execute("DROP DATABASE treadle WITH (FORCE)")


@pytest.mark.parametrize("page", STORING, ids=name_of)
def test_every_block_of_a_page_about_workers_runs_over_a_real_database(
    page: Path, tmp_path: Path, strict: Stem | None, database: str
) -> None:
    assert_ran(run_apart(strict, page, tmp_path, {"LOCAL_DATABASE": database}))


def assert_ran(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, f"{done.stderr}\nprinted before:\n{done.stdout}".replace(f"{ROOT}/", "")


def test_blocks_that_are_not_run_say_why() -> None:
    found = [(page, block) for page in PAGES for block in blocks(page.read_text(encoding="utf-8")) if block.skip]
    assert all(len(block.skip.strip()) > 5 for _, block in found if block.skip)
    if found:
        pytest.skip("; ".join(f"{page.relative_to(ROOT)}:{block.line}: {block.skip}" for page, block in found))


def test_the_navigation_lists_every_page_and_no_other() -> None:
    def leaves(entry: object) -> Iterator[str]:
        match entry:
            case str():
                yield entry
            case dict():
                for value in entry.values():
                    yield from leaves(value)
            case list():
                for value in entry:
                    yield from leaves(value)

    site = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page.name != "README.md"]
    assert sorted(leaves(site["nav"])) == sorted(pages)


def page_of(strict: Stem | None, tmp_path: Path, text: str) -> "subprocess.CompletedProcess[str]":
    page = tmp_path / "page.md"
    page.write_text(textwrap.dedent(text), encoding="utf-8")
    return run_apart(strict, page, tmp_path)


def test_blocks_share_a_namespace_and_may_await(tmp_path: Path, strict: Stem | None) -> None:
    done = page_of(
        strict,
        tmp_path,
        """
        ```python
        import asyncio
        lock = asyncio.Lock()
        ```

        - in a list:

            ```python
            async with lock:
                await asyncio.sleep(0)
            print("held", __name__)
            ```
        """,
    )
    assert (done.returncode, done.stdout) == (0, "held __main__\n"), done.stderr


def test_only_python_blocks_run_and_not_those_marked(tmp_path: Path, strict: Stem | None) -> None:
    done = page_of(
        strict,
        tmp_path,
        """
        ```console
        $ treadle ask "?"
        ```
        ````markdown
        ```python
        raise SystemExit("this is shown, not run")
        ```
        ````
        <!-- skip: needs a key -->

        ```python
        raise SystemExit("not run")
        ```
        ```python
        print("run")
        ```
        """,
    )
    assert (done.returncode, done.stdout) == (0, "run\n"), done.stderr


@pytest.mark.parametrize(
    ("code", "line", "says"),
    [
        ("1 / 0", 4, "ZeroDivisionError"),
        ("def f():\n    return 1 / 0\nf()", 5, "ZeroDivisionError"),
        ("print(", 4, "SyntaxError"),
        ("raise SystemExit(0)", 4, "SystemExit"),
        ("import warnings\nwarnings.warn('old', DeprecationWarning)", 5, "DeprecationWarning"),
        ("await missing", 4, "NameError"),
    ],
)
def test_a_block_that_fails_is_named_by_file_and_line(
    tmp_path: Path, strict: Stem | None, code: str, line: int, says: str
) -> None:
    (tmp_path / "page.md").write_text(f"# A page\n\n```python\n{code}\n```\n", encoding="utf-8")
    done = run_apart(strict, tmp_path / "page.md", tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{tmp_path / 'page.md'}:{line}: this block fails\n")
    assert says in done.stderr


def test_a_key_in_the_environment_is_not_seen(
    tmp_path: Path, strict: Stem | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a key")
    done = page_of(strict, tmp_path, '```python\nimport os\nprint("ANTHROPIC_API_KEY" in os.environ)\n```')
    assert done.stdout == "False\n", done.stderr
