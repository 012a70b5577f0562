"""The files that a run of checks writes: JSON for programs, JUnit XML for build servers, a page for people."""

from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from treadle.analyst.checks.junit import junit
from treadle.analyst.checks.page import checks_page
from treadle.analyst.checks.verdict import Report

ReportFormat = Literal["json", "xml", "html"]


class ReportFile(Struct, frozen=True):
    """A file to write.

    Attributes:
        format: `json` (everything), `xml` (JUnit) or `html` (a page).
        path: the file.
    """

    format: ReportFormat
    path: Path


def write_report(file: ReportFile, draft: Path, report: Report) -> None:
    """Writes a run in the format of `file` to `draft`."""
    match file.format:
        case "json":
            draft.write_bytes(msgspec.json.format(msgspec.json.encode(report.to_dict()), indent=2) + b"\n")
        case "xml":
            draft.write_bytes(junit(report))
        case "html":
            draft.write_text(checks_page(report), encoding="utf-8")
