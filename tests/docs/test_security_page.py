"""Each point of the page on security has its test, or says why there can be none."""

import re

import pytest
from docs.test_claims import CLAIMS, sentences
from pages import ROOT

POINTS = re.findall(r"^- (.+(?:\n  .+)*)", (ROOT / "docs/security.md").read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("point", [" ".join(point.split()) for point in POINTS])
def test_each_point_has_its_test(point: str) -> None:
    said = [claim["says"] for page, _, claim in CLAIMS if page == "security"]
    assert any(one in sentence for sentence in sentences(f"- {point}") for one in said)
