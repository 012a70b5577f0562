"""Declarations that tests of the library and of the command line share."""

COMPANIES = """\
sources:
  a: {kind: csv, path: a.csv, dimensions: {company: {}}, measures: {amount: {decimals: 2, unit: EUR}}}
  b: {kind: csv, path: b.csv, dimensions: {company: {}}, measures: {amount: {decimals: 2, unit: EUR}}}
hierarchies:
  tree:
    of: company
    groups:
      Group: [Europe, 4]
      Europe: [1, 2, 3]
"""
"""Two sources by company, and a hierarchy over it."""
