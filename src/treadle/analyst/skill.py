"""The data-analyst skill: `list_sources`, `query_source` and `compare_sources` as tools for a model.

The tools run the engine in a thread and stop it when they are cancelled; the model is shown little, the application
gets the whole.
"""

import json
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread
from msgspec.structs import replace
from pydantic import Field, ValidationError

from treadle.analyst.asking.catalog import Catalog, require_catalog
from treadle.analyst.asking.compare import CompareRequest, compare
from treadle.analyst.asking.drill import Drilled, DrillRequest
from treadle.analyst.asking.drill import drill as drill_rows
from treadle.analyst.asking.query import QueryRequest, query
from treadle.analyst.asking.sample import sample_catalog
from treadle.analyst.asking.stages import converted
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.filters import Filters, Scalar
from treadle.analyst.declared.source import Source
from treadle.analyst.reading.bounds import Bounds
from treadle.analyst.reading.interrupt import Interrupt
from treadle.analyst.showing.comparison import Comparison
from treadle.tools import Skill, Tool, ToolResult, tool

T = TypeVar("T")

INSTRUCTIONS = """\
You answer questions about figures in named data sources. The engine computes, you explain.
- Never compute, add up, subtract, estimate or round a figure yourself: totals, differences, percentages and rankings
  are in the tools' results. Report them as they stand there, with their unit.
- To compare two sources call compare_sources once; it totals both sides itself. Do not query each side and compare by
  hand.
- For the figures of a single source call query_source.
- Name only sources, dimensions and measures that exist. If you are not sure of a name call list_sources first; if a
  tool says that a name is unknown, use the nearest that it offers and say so.
- What the question fixes (company 1001, period 202401) is a filter. What it wants to see side by side (per company, by
  account) is a dimension.
- In a follow-up keep the sources, filters and dimensions of the question before, except for what it changes.
- Amounts of different currencies or units are never added, subtracted or called equal.
- Say which filters held. Repeat every warning of a result that bears on the answer, and say when figures are
  approximate."""

_SHOWN_ROWS = 50
_KEPT_ROWS = 10_000
_MOST_TEXT = 50_000
"""Characters of a result that a model is shown."""
_LISTS = ("by_dimension", "subtotals")


def analyst_skill(
    catalog: Catalog | None = None,
    *,
    bounds: Bounds | None = None,
    numbers: bool = False,
    lines: Literal["never", "ask", "allow"] = "never",
) -> Skill:
    """Returns the skill "analyst".

    Args:
        catalog: the sources that it may ask; the sample sources if left out.
        bounds: memory, threads and time that one question may use.
        numbers: amounts in results as JSON numbers, with the exact text beside them (`total_diff_exact`); text only
            if left out.
        lines: whether the model may be shown single rows, by the tool `drill`: `never` (there is no such tool), `ask`
            (a person must approve each call), or `allow`.
    """
    known = sample_catalog() if catalog is None else catalog
    require_catalog(known)
    drilling = [] if lines == "never" else [_drill_tool(known, bounds, numbers, lines == "ask")]
    return Skill(
        name="analyst",
        instructions=f"{INSTRUCTIONS}\nThe sources are: {', '.join(known.sources)}.",
        tools=[
            _list_tool(known),
            _query_tool(known, bounds, numbers),
            _compare_tool(known, bounds, numbers),
            *drilling,
        ],
        description="Queries and compares named data sources; the figures come from the engine.",
    )


def describe(source: Source) -> dict[str, Any]:
    """Returns what a model or a person needs to know of a source to ask it."""
    return {
        "name": source.name,
        "description": source.description,
        "kind": source.kind,
        "dimensions": [
            _filled(name=item.name, description=item.description, synonyms=list(item.synonyms), type=item.type)
            for item in source.dimensions
        ],
        "measures": [
            _filled(
                name=item.name,
                description=item.description,
                synonyms=list(item.synonyms),
                expression=item.expression,
                aggregation=item.aggregation,
                unit=item.unit,
                currency=item.currency,
            )
            for item in map(converted, source.measures)
        ],
        "default_filters": [str(item) for item in source.default_filters],
    }


def _list_tool(catalog: Catalog) -> Tool:
    async def list_sources(
        source: Annotated[str | None, Field(description="name of the only source to describe; all if left out")] = None,
    ) -> dict[str, Any]:
        """Lists the data sources with their dimensions (what to filter and group by) and measures (the figures)."""
        found = list(catalog.sources.values()) if source is None else [catalog.source(source)]
        hierarchies = [
            _filled(name=item.name, of=item.of, description=item.description, groups=list(item.groups))
            for item in catalog.hierarchies.values()
            if any(one.find_dimension(item.of) for one in found)
        ]
        return {"sources": [describe(item) for item in found], **_filled(hierarchies=hierarchies)}

    return tool(list_sources, effect="read")


def _query_tool(catalog: Catalog, bounds: Bounds | None, numbers: bool) -> Tool:
    async def query_source(
        source: Annotated[str, Field(description="name of the source")],
        measures: Annotated[
            list[str] | None, Field(description="measures to compute; all of the source's if left out")
        ] = None,
        dimensions: Annotated[
            list[str] | None, Field(description="dimensions to group by; the grand total only if left out")
        ] = None,
        filters: Annotated[Filters | None, Field(description="conditions that must all hold")] = None,
        subtotals: Annotated[
            list[str] | None, Field(description="names of hierarchies, for the subtotals of their groups")
        ] = None,
        order: Annotated[
            list[str] | None,
            Field(description="what to sort by: names of asked measures or dimensions, ' desc' after one to descend"),
        ] = None,
        limit: Annotated[int, Field(ge=1, le=1000, description="most rows to return")] = _SHOWN_ROWS,
        explain: Annotated[bool, Field(description="also return the SQL, and what each warning rests on")] = False,
    ) -> ToolResult:
        """Computes figures of one source: totals, or figures by dimension, filtered and sorted; never single rows.

        Amounts come with every digit, as text. `totals` are over all groups, also those beyond the limit. `source_rows`
        is how many rows of the source the figures are made of, all together; `groups` is how many groups there are.
        """
        request = _request(
            QueryRequest,
            source=source,
            measures=measures,
            dimensions=dimensions or [],
            filters=filters or [],
            subtotals=subtotals or [],
            order=order or [],
            limit=_KEPT_ROWS,
        )
        found = await _in_thread(partial(query, catalog, request, bounds=bounds))
        return ToolResult(
            for_model=_fitting(
                min(limit, len(found.rows)),
                lambda rows: _with_groups(found.to_dict(rows=rows, explain=explain, numbers=numbers)),
            ),
            for_app=found.to_dict(explain=True, numbers=numbers),
        )

    return tool(query_source, effect="read", timeout=_timeout(bounds), max_output=_MOST_TEXT)


def _compare_tool(catalog: Catalog, bounds: Bounds | None, numbers: bool) -> Tool:
    async def compare_sources(
        source_a: Annotated[str, Field(description="name of the first source, the base of percentages")],
        source_b: Annotated[str, Field(description="name of the second source")],
        measures: Annotated[
            list[str] | None, Field(description="measures to compare; all that both have if left out")
        ] = None,
        measure: Annotated[
            str | None,
            Field(
                description="the only measure, in place of 'measures'; without 'dimensions' it is compared by the "
                "dimensions that 'filters' names, one row a combination"
            ),
        ] = None,
        dimensions: Annotated[
            list[str] | None,
            Field(
                description="dimensions to compare by, one row a combination; [] for the grand totals only; "
                "if left out, all that both have except those that a filter fixes"
            ),
        ] = None,
        filters: Annotated[Filters | None, Field(description="conditions that must all hold, on both sides")] = None,
        subtotals: Annotated[
            list[str] | None,
            Field(description="names of hierarchies, for the subtotals of their groups; needs their dimension"),
        ] = None,
        tolerance: Annotated[
            Decimal | None, Field(description="amounts that differ by no more than this match; usually left out")
        ] = None,
        top: Annotated[int, Field(ge=0, le=100, description="how many of the largest differences to list")] = 10,
        explain: Annotated[
            bool, Field(description="also return what each sentence rests on: figures, conditions and SQL")
        ] = False,
    ) -> ToolResult:
        """Compares two sources: totals of both, their difference, and each key classed as matching or not.

        Returns a summary (total_source_a, total_source_b, total_diff, match_rate, counts), the largest differences with
        the reason for their class, the few values of each dimension that carry most of the differences, sentences and
        warnings. Several currencies have a total each in summary.by_currency. Amounts come with every digit, as text.
        """
        request = _request(
            CompareRequest,
            source_a=source_a,
            source_b=source_b,
            measures=measures,
            measure=measure,
            dimensions=dimensions,
            filters=filters or [],
            subtotals=subtotals or [],
            tolerance=tolerance,
            top=top,
            keep=_KEPT_ROWS,
        )
        found = await _in_thread(partial(compare, catalog, request, bounds=bounds))
        return ToolResult(
            for_model=_fitting(top, lambda rows: _largest(found, rows).to_dict(explain=explain, numbers=numbers)),
            for_app=found.to_dict(rows=True, explain=True, numbers=numbers),
        )

    return tool(compare_sources, effect="read", timeout=_timeout(bounds), max_output=_MOST_TEXT)


def _drill_tool(catalog: Catalog, bounds: Bounds | None, numbers: bool, approval: bool) -> Tool:
    async def drill(
        source_a: Annotated[str, Field(description="name of the first source")],
        source_b: Annotated[str, Field(description="name of the second source")],
        key: Annotated[
            dict[str, Scalar | None],
            Field(description="the value of each dimension, as a key of compare_sources has them; null for no value"),
        ],
        measure: Annotated[str | None, Field(description="the figure; the first that both have if left out")] = None,
        filters: Annotated[Filters | None, Field(description="the filters of the comparison")] = None,
        limit: Annotated[int, Field(ge=1, le=200, description="most rows of each side")] = _SHOWN_ROWS,
    ) -> ToolResult:
        """Shows the single rows behind one key of a comparison, on both sides, the largest amounts first.

        Rows with the same `pair` belong together: nothing else on either side has their amount. `total` adds up all
        rows, also those beyond the limit; of a measure whose `aggregation` is avg, min or max it is not the figure.
        """
        request = _request(
            DrillRequest,
            source_a=source_a,
            source_b=source_b,
            key=key,
            measure=measure,
            filters=filters or [],
            limit=limit,
        )
        found = await _in_thread(partial(drill_rows, catalog, request, bounds=bounds))
        return ToolResult(
            for_model=_fitting(limit, lambda rows: _first(found, rows).to_dict(numbers=numbers)),
            for_app=found.to_dict(numbers=numbers),
        )

    return tool(drill, effect="read", timeout=_timeout(bounds), needs_approval=approval, max_output=_MOST_TEXT)


def _fitting(rows: int, told: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
    """What is told with at most `rows` rows, all of it or as much of each list as fits.

    What would be cut of a longer text may be a total or a warning, of which no row takes the place.
    """
    shown = told(rows)
    most = max(rows, _longest(shown))
    while most and len(json.dumps(shown, ensure_ascii=False, separators=(",", ":"))) > _MOST_TEXT:
        most //= 2
        shown = _shortened(told(min(rows, most)), most)
    return shown


def _longest(told: dict[str, Any]) -> int:
    """How many parts or groups the longest list has of those that say of what a figure is made."""
    lists = [one for name in _LISTS for one in told.get(name, {}).values()]
    return max([0, *map(len, lists), *map(_longest, told.get("more", ()))])


def _shortened(told: dict[str, Any], most: int) -> dict[str, Any]:
    """What is told with no more than `most` parts and groups in each list; of groups it is said."""
    notes = [told["note"]] if "note" in told else []
    for name in _LISTS:
        for of, each in told.get(name, {}).items():
            if name == "subtotals" and len(each) > most:
                notes.append(f"subtotals of {of}: the first {most} of {len(each)} are shown")
            told[name][of] = each[:most]
    more = {"more": [_shortened(one, most) for one in told["more"]]} if "more" in told else {}
    return told | more | _filled(note="; ".join(notes))


def _largest(found: Comparison, rows: int) -> Comparison:
    """A comparison with so many of its largest differences, and of those of its further measures."""
    more = tuple(_largest(other, rows) for other in found.more)
    return replace(found, top_differences=found.top_differences[:rows], more=more)


def _first(found: Drilled, rows: int) -> Drilled:
    """What is behind a key with so many rows of each side."""
    if max(len(found.a.rows), len(found.b.rows)) <= rows:
        return found
    note = f"only the first {rows} rows of each side are shown here, as more would be too long"
    a, b = (replace(side, rows=side.rows[:rows]) for side in (found.a, found.b))
    return replace(found, a=a, b=b, note=f"{found.note}; {note}" if found.note else note)


def _with_groups(told: dict[str, Any]) -> dict[str, Any]:
    """A query's result for a model, which took `total_rows` for how many rows the source has: it counts groups."""
    return {"groups" if name == "total_rows" else name: value for name, value in told.items()}


async def _in_thread(work: Callable[..., T]) -> T:
    """Runs `work(interrupt=…)` in a thread; if cancelled, interrupts it and waits until the thread has ended."""
    interrupt = Interrupt()

    async def watch() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            interrupt.set()

    outcome: list[T] = []
    failure: list[Exception] = []

    def run() -> None:
        try:
            outcome.append(work(interrupt=interrupt))
        except Exception as error:
            failure.append(error)

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        await anyio.to_thread.run_sync(run)
        group.cancel_scope.cancel()
    if failure:
        await anyio.lowlevel.checkpoint_if_cancelled()  # the thread's end of it is not the caller's error
        raise failure[0]
    return outcome[0]


def _request(kind: Callable[..., T], **values: Any) -> T:
    """Makes a request, turning a validation error into one that names the argument."""
    try:
        return kind(**values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        argument = str(first["loc"][0]) if first["loc"] else None
        raise AnalystError(f"{argument or 'the request'}: {first['msg']}", argument=argument) from error


def _timeout(bounds: Bounds | None) -> float:
    """A little more than the engine's own limit, whose message says more."""
    return (bounds or Bounds()).seconds + 5.0


def _filled(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}
