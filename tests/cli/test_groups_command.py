"""Groups and ranges of a hierarchy on the command line."""

import json
from typing import Any

SOURCES = """\
sources:
  a: {kind: csv, path: a.csv, dimensions: {account: {}}, measures: {amount: {}}}
hierarchies:
  tree:
    of: account
    groups:
      Low end: [1..9]
"""


def test_groups_and_ranges_from_a_shell(treadle: Any) -> None:
    (treadle.folder / "a.csv").write_text("account,amount\n1,1\n5,2\n12,4\n")
    (treadle.folder / "sources.yaml").write_text(SOURCES)
    asked = ("query", "a", "--sources", "sources.yaml", "--where", "account under Low end")
    found = json.loads(treadle(*asked, "--json").out)
    assert (found["totals"], found["filters"]) == ({"amount": "3.00"}, ["account under Low end"])
    (treadle.folder / "sources.yaml").write_text(SOURCES.replace("1..9", "1..9..10"))
    done = treadle(*asked)
    assert "sources.yaml, line 4: hierarchies.tree" in done.err
    assert "'1..9..10' is no range such as 800000..899999" in done.err
