"""Pages that are written to files (of a comparison, of checks), in a real Chromium: whole, and whole in themselves."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def reports(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    compare = [
        "compare",
        "fi_reporting",
        "consolidation_mart",
        "--by",
        "account",
        "--lines",
        "3",
        "--html",
        "compared.html",
    ]
    for command in (
        compare,
        ["check", "--example", "morning"],
        ["check", "morning/checks.yaml", "--html", "checked.html"],
    ):
        done = subprocess.run([sys.executable, "-m", "treadle", *command], cwd=folder, capture_output=True, text=True)
        assert done.returncode in (0, 6), done.stderr
    return {name: folder / f"{name}.html" for name in ("compared", "checked")}


@pytest.mark.parametrize("name", ["compared", "checked"])
def test_a_report_fits_a_phone_the_dark_and_paper(chromium: Any, reports: dict[str, Path], name: str) -> None:
    context = chromium.new_context(viewport={"width": 380, "height": 800}, color_scheme="dark")
    page, said, asked = context.new_page(), [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(reports[name].as_uri())
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 380
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(21, 23, 26)"
    page.emulate_media(media="print", color_scheme="light")
    page.set_viewport_size({"width": 1030, "height": 700})
    # No name of a source is broken within a word, and nothing is cut off.
    heights = page.locator("thead .n > span").evaluate_all("spans => spans.map(span => span.getClientRects().length)")
    assert max(heights) <= 1
    assert page.evaluate(
        "() => [...document.querySelectorAll('.scroll')].every(box => box.scrollWidth <= box.clientWidth + 1)"
    )
    context.close()
    assert said == []
    assert asked == [reports[name].as_uri()]
