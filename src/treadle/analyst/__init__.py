"""The data analyst: named sources, exact queries and comparisons, and the skill that gives them to a model.

    from treadle.analyst import CompareRequest, compare, sample_catalog

    found = compare(sample_catalog(), CompareRequest(source_a="fi_reporting", source_b="consolidation_mart",
                                                     dimensions=["company", "period"]))
    print(found.interpretation)

Useful without any model: `query` and `compare` are functions of a catalogue and a request. DuckDB does the work and is
imported when the first question is asked.
"""

from treadle.analyst.catalog import Catalog
from treadle.analyst.check import Checked, check
from treadle.analyst.claim import Claim
from treadle.analyst.compare import CompareRequest, compare
from treadle.analyst.comparison import Comparison, Difference, Part, Subtotal, Summary, Total
from treadle.analyst.errors import AnalystError
from treadle.analyst.export import Export
from treadle.analyst.export_page import page
from treadle.analyst.figures import Figure, check_figures, figures_from_results
from treadle.analyst.filters import Filter
from treadle.analyst.formats import Format, parse_format
from treadle.analyst.hierarchy import Hierarchy
from treadle.analyst.propose import Proposal, declaration, propose
from treadle.analyst.query import QueryRequest, QueryResult, query
from treadle.analyst.sample import sample_catalog
from treadle.analyst.session import Bounds, Cancelled, Interrupt
from treadle.analyst.skill import analyst_skill, describe
from treadle.analyst.source import Conversion, Dimension, Mapping, Measure, Source, TextFormat, Tolerance

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
    "declaration",
    "describe",
    "figures_from_results",
    "page",
    "parse_format",
    "propose",
    "query",
    "sample_catalog",
]
