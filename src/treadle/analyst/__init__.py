"""The data analyst: named sources, exact queries and comparisons, and the skill that gives them to a model.

    from treadle.analyst import CompareRequest, compare, sample_catalog

    found = compare(sample_catalog(), CompareRequest(source_a="fi_reporting", source_b="consolidation_mart",
                                                     dimensions=["company", "period"]))
    print(found.interpretation)

Useful without any model: `query` and `compare` are functions of a catalogue and a request. DuckDB does the work and is
imported when the first question is asked.
"""

from treadle.analyst.asking.catalog import Catalog
from treadle.analyst.asking.check import Checked, check
from treadle.analyst.asking.compare import CompareRequest, compare
from treadle.analyst.asking.declaration import declaration
from treadle.analyst.asking.drill import Drilled, DrillRequest, drill
from treadle.analyst.asking.propose import Proposal, propose
from treadle.analyst.asking.query import QueryRequest, QueryResult, query
from treadle.analyst.asking.row_compare import RowsRequest, compare_rows
from treadle.analyst.asking.sample import sample_catalog
from treadle.analyst.asking.schemas import compare_schemas
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.filters import Filter
from treadle.analyst.declared.formats import Format, parse_format
from treadle.analyst.declared.hierarchy import Hierarchy
from treadle.analyst.declared.source import Conversion, Dimension, Mapping, Measure, Source, TextFormat, Tolerance
from treadle.analyst.reading.bounds import Bounds
from treadle.analyst.reading.interrupt import Cancelled, Interrupt
from treadle.analyst.showing.claim import Claim
from treadle.analyst.showing.comparison import Comparison, Difference, Part, Subtotal, Summary, Total
from treadle.analyst.showing.export import Export
from treadle.analyst.showing.export_page import page
from treadle.analyst.showing.figures import Figure, check_figures, figures_from_results
from treadle.analyst.skill import analyst_skill, describe

__all__ = [
    "AnalystError",
    "Bounds",
    "Cancelled",
    "Catalog",
    "Checked",
    "Claim",
    "Comparison",
    "CompareRequest",
    "Conversion",
    "Difference",
    "DrillRequest",
    "Drilled",
    "Dimension",
    "Export",
    "Figure",
    "Filter",
    "Format",
    "Hierarchy",
    "Interrupt",
    "Mapping",
    "Measure",
    "Part",
    "Proposal",
    "QueryRequest",
    "QueryResult",
    "RowsRequest",
    "Source",
    "Subtotal",
    "Summary",
    "TextFormat",
    "Tolerance",
    "Total",
    "analyst_skill",
    "check_figures",
    "check",
    "compare",
    "compare_rows",
    "compare_schemas",
    "declaration",
    "describe",
    "drill",
    "figures_from_results",
    "page",
    "parse_format",
    "propose",
    "query",
    "sample_catalog",
]
