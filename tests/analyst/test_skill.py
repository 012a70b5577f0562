"""The skill as a model meets it: schemas, results, errors, cancellation."""

import json
import threading
from pathlib import Path
from typing import Any

import anyio
import duckdb
import pytest

from treadle.analyst import AnalystError, Catalog, Dimension, Hierarchy, Measure, Source, analyst_skill
from treadle.tools import Skill, Tool, ToolResult

pytestmark = pytest.mark.anyio


@pytest.fixture
def skill(sample: Catalog) -> Skill:
    return analyst_skill(sample)


def named(skill: Skill, name: str) -> Tool:
    return next(tool for tool in skill.tools if tool.name == name)


async def used(skill: Skill, name: str, **arguments: Any) -> Any:
    tool = named(skill, name)
    return await tool.function(**tool.validate(json.dumps(arguments)))


async def test_tools_only_read_and_describe_every_argument(skill: Skill) -> None:
    assert [tool.name for tool in skill.tools] == ["list_sources", "query_source", "compare_sources"]
    for tool in skill.tools:
        assert tool.effect == "read"
        assert all("description" in field for field in tool.input_schema["properties"].values())
    assert "fi_reporting, bpc_reporting, consolidation_mart" in skill.instructions
    assert named(skill, "compare_sources").input_schema["required"] == ["source_a", "source_b"]


async def test_sources_are_listed_with_what_can_be_asked(skill: Skill) -> None:
    listed = await used(skill, "list_sources")
    assert [source["name"] for source in listed["sources"]] == ["fi_reporting", "bpc_reporting", "consolidation_mart"]
    assert [item["name"] for item in listed["sources"][0]["dimensions"]] == ["company", "period", "account", "currency"]
    assert [item["name"] for item in (await used(skill, "list_sources", source="bpc_reporting"))["sources"]] == [
        "bpc_reporting"
    ]


async def test_main_question(skill: Skill) -> None:
    filters = [{"dimension": "company", "value": "1001"}, {"dimension": "period", "op": "=", "value": 202401}]
    found = await used(
        skill,
        "compare_sources",
        source_a="fi_reporting",
        source_b="consolidation_mart",
        dimensions=["company", "period"],
        filters=filters,
    )
    assert isinstance(found, ToolResult)
    shown = json.loads(json.dumps(found.for_model))
    assert shown["summary"]["total_diff"] == "8000.00"
    assert len(json.dumps(shown)) < 4_000
    assert len(found.for_app["rows"]) == 1


async def test_the_model_sees_little_and_the_application_all(skill: Skill) -> None:
    found = await used(skill, "query_source", source="fi_reporting", dimensions=["company", "period", "account"])
    assert (len(found.for_model["rows"]), found.for_model["groups"], len(found.for_app["rows"])) == (50, 1200, 1200)
    assert found.for_model["note"].startswith("50 of 1200 rows")
    compared = await used(skill, "compare_sources", source_a="fi_reporting", source_b="bpc_reporting")
    assert (len(compared.for_model["top_differences"]), len(compared.for_app["rows"])) == (10, 1200)
    assert len(json.dumps(compared.for_model)) < 20_000


async def test_errors_carry_hints(skill: Skill) -> None:
    with pytest.raises(AnalystError) as caught:
        await used(skill, "compare_sources", source_a="fi_reports", source_b="bpc")
    assert caught.value.hints == {
        "argument": "source_a",
        "given": "fi_reports",
        "nearest": "fi_reporting",
        "available": ["bpc_reporting", "consolidation_mart", "fi_reporting"],
        "available_sources": ["bpc_reporting", "consolidation_mart", "fi_reporting"],
    }
    with pytest.raises(AnalystError, match="tolerance") as caught:
        await used(skill, "compare_sources", source_a="fi_reporting", source_b="bpc_reporting", tolerance=-1)
    assert caught.value.hints["argument"] == "tolerance"


async def test_cancelling_a_tool_stops_the_engine(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "endless.duckdb")) as database:
        database.execute(
            "CREATE VIEW t AS SELECT '1' AS company, a.range * b.range % 7 AS amount "
            "FROM range(100000000) AS a, range(100000) AS b"
        )
    source = Source(name="endless", kind="duckdb", path="endless.duckdb", table="t", measures=(Measure(name="amount"),))
    threads = threading.active_count()
    with anyio.move_on_after(0.3) as scope:
        await used(analyst_skill(Catalog([source], tmp_path)), "query_source", source="endless")
    assert scope.cancelled_caught
    assert threading.active_count() <= threads + 1  # anyio keeps one idle worker


@pytest.mark.parametrize("lines", [40, 1500])
async def test_no_total_and_no_warning_is_cut_from_what_a_model_is_shown(tmp_path: Path, lines: int) -> None:
    """Of two measures and a hundred differences the sentences and warnings on the first were cut, and the totals of the
    second; of many rows behind a key the total of A. Now there are fewer rows, and it is said how many."""
    for name, more in (("a", 0), ("b", 7)):
        rows = [f"{at:06d},{at * 98_765_431 + at * more}.50,{at + more},{'text ' * 20}" for at in range(lines)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["account,amount,pieces,words", *rows]))
    measures = (Measure(name="amount"), Measure(name="pieces", unit="PC"))
    sources = [
        Source(name=name, kind="csv", path=f"{name}.csv", dimensions=(Dimension(name="account"),), measures=measures)
        for name in ("a", "b")
    ]
    skill = analyst_skill(Catalog(sources, tmp_path), lines="allow")

    async def shown(name: str, **arguments: Any) -> Any:
        output = await named(skill, name).call(arguments)
        assert "characters left out" not in str(output.content)
        return json.loads(str(output.content))

    sides = {"source_a": "a", "source_b": "b"}
    found = await shown("compare_sources", **sides, top=100)
    for one in (found, *found["more"]):
        assert one["interpretation"]
        assert one["summary"]["total_diff"]
        many = len(one["top_differences"])
        assert many == min(lines - (one is found), 100) or one["note"].startswith(f"top_differences shows the {many} ")
    found = await shown("query_source", source="a", dimensions=["account"], limit=1000)
    assert len(found["rows"]) == lines or found["note"].startswith(f"{len(found['rows'])} of {lines} rows")
    assert set(found["totals"]) == {"amount", "pieces"}
    found = await shown("drill", **sides, key={}, limit=200)
    many = len(found["a"]["rows"])
    assert many == lines or f"only the first {many} rows of each side are shown" in found["note"]
    assert [found[side]["total_rows"] for side in "ab"] == [lines, lines]


@pytest.mark.parametrize(("groups", "measures"), [(20, 1), (150, 1), (2, 6)])
async def test_neither_subtotals_nor_many_measures_cut_a_sentence_of_what_a_model_is_shown(
    tmp_path: Path, groups: int, measures: int
) -> None:
    """Of a hierarchy of 120 groups, or of many measures and dimensions, the sentences and warnings were cut."""
    others = [f"d{at}" for at in range(5)]
    for name, more in (("a", 0), ("b", 7)):
        rows = [f"{at:04d}{f',{at % 13}' * 5},{at * 98_765 + at * more}.50" for at in range(150)]
        (tmp_path / f"{name}.csv").write_text("\n".join([f"account,{','.join(others)},amount", *rows]))
    declared = tuple(Measure(name=f"amount {at}", column="amount") for at in range(measures))
    dimensions = tuple(Dimension(name=one) for one in ("account", *others))
    sources = [
        Source(name=name, kind="csv", path=f"{name}.csv", dimensions=dimensions, measures=declared) for name in "ab"
    ]
    below = {f"group {at}": tuple(f"{one:04d}" for one in range(at, 150, groups)) for at in range(groups)}
    tree = Hierarchy(name="tree", of="account", groups=below)
    skill = analyst_skill(Catalog(sources, tmp_path, hierarchies=[tree]))

    async def shown(name: str, **arguments: Any) -> Any:
        return json.loads(str((await named(skill, name).call(arguments)).content))

    found = await shown("compare_sources", source_a="a", source_b="b", subtotals=["tree"], top=1)
    for one in (found, *found.get("more", ())):
        assert one["interpretation"]
        assert len(one["top_differences"]) == 1
        many = len(one["subtotals"]["tree"])
        assert (many == groups) == ("subtotals" not in one["note"])
        assert many == groups or f"; subtotals of tree: the first {many} of {groups} are shown" in one["note"]
    found = await shown("query_source", source="a", dimensions=["account"], subtotals=["tree"], limit=1000)
    assert (found["groups"], len(found["subtotals"]["tree"])) == (150, groups)
