"""Kinds: what kind of source a file is, by its ending and by what it begins with. Its neighbour is `propose`."""

import zipfile
from pathlib import Path

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.place import no_file
from treadle.analyst.declared.source import Kind
from treadle.analyst.reading.encodings import beginning
from treadle.analyst.reading.excel import other_kind

_KINDS: dict[str, Kind] = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet", ".json": "json",
    ".jsonl": "json", ".ndjson": "json", ".duckdb": "duckdb", ".ddb": "duckdb", ".sqlite": "sqlite",
    ".sqlite3": "sqlite", ".db": "sqlite", ".xlsx": "xlsx", ".xlsm": "xlsx",
}  # fmt: skip
_OTHER_SHEETS = (".xls", ".xlsb", ".ods")
# What files begin with that are no text, what they are, and what to do.
_BEGINNINGS = (
    (b"\x1f\x8b", "packed by gzip", "let its name end in .gz, such as .csv.gz"),
    (b"%PDF-", "a PDF", "export the table as .xlsx or CSV"),
    (
        b"\xd0\xcf\x11\xe0",
        "an older Excel file, or one with a password",
        "save it as .xlsx (Excel Workbook), without one",
    ),
    (b"PAR1\x15", "a Parquet file", "let its name end in .parquet"),
    (b"SQLite format 3\0", "a SQLite database", "let its name end in .sqlite"),
)
_PAGES = (b"<!doctype", b"<html", b"<?xml")


def kind_of(file: Path) -> Kind:
    """Returns what kind of source a file is.

    Raises:
        AnalystError: there is no such file, its ending is that of no kind, or it is something else than that says.
    """
    suffixes = [suffix.lower() for suffix in file.suffixes if suffix.lower() != ".gz"]
    ending = suffixes[-1] if suffixes else ""
    kind = _KINDS.get(ending)
    if file.name.startswith("~$"):
        raise AnalystError(f"{file} has no data: Excel keeps it while {file.name[2:]} is open there; leave it out")
    if ending in _OTHER_SHEETS and file.is_file() and (other := other_kind(file)):
        # Programs write text with tabs under the name of a sheet, so that Excel opens it.
        if not other.startswith("text"):
            raise AnalystError(f"{file} is {other}: save it as .xlsx (Excel Workbook), or as CSV")
        kind = "csv"
    if kind in (None, "csv") and file.is_file() and (told := _no_text(file)):
        raise AnalystError(f"{file} is {told}")
    if kind is None:
        raise AnalystError(
            f"{file}: its ending is not that of a kind of source; there are: {', '.join(_KINDS)}; let that of text, "
            f"with a column a field, be .csv"
        )
    if not file.is_file():
        raise AnalystError(f"{file} {no_file(file)}")
    return kind


def _no_text(file: Path) -> str:
    """What a file is, and what to do, if it begins as files do that are no tables of text; else empty."""
    try:
        head = beginning(file)
    except OSError as error:
        raise AnalystError(f"{file} cannot be read: {error.strerror or error}") from error
    for begins, what, advice in _BEGINNINGS:
        if head.startswith(begins):
            return f"{what}: {advice}"
    if head.startswith(b"PK\x03\x04"):
        return _in_archive(file)
    if head.lstrip(b"\xef\xbb\xbf \r\n\t")[:9].lower().startswith(_PAGES):
        return "a web page or XML, and no table of text: export the table as .xlsx or CSV"
    return ""


def _in_archive(file: Path) -> str:
    try:
        with zipfile.ZipFile(file) as archive:
            sheet = "xl/workbook.xml" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return "a packed file that cannot be opened: look whether all of it is there"
    return "an Excel file: let its name end in .xlsx" if sheet else "a packed file (.zip): unpack it first"
