"""An example to try the checks with: two exports as people get them out of SAP, and the declarations for them.

The same bytes each time. What they tell: 30 companies in three periods are 90 keys, of which 87 match. Company 1001 in
period 202401 has 1,500,000.00 in financial accounting and 8,000.00 less in the mart, a major difference: account 710300
was not mapped (3,250.00), a posting to 800200 arrived a month late (4,750.02), one amount of 415000 was rounded (0.02
the other way). The late posting makes a minor difference in 202402, and company 1017 has another of 12.50 in 202403.
"""

from collections.abc import Iterator
from pathlib import Path

from treadle.analyst.declared.errors import AnalystError

Posting = tuple[int, int, str, int]
"""Company, month of 2024, account, amount in hundredths."""

_FILES = Path(__file__).with_name("example")
_COMPANIES, _MONTHS = range(1001, 1031), (1, 2, 3)
_UNMAPPED, _LATE, _ROUNDED, _REVENUE = "710300", "800200", "415000", "800100"
_RESULT = 150_000_000


def write_example(folder: str | Path) -> list[Path]:
    """Writes two exports, a sources.yaml and a checks.yaml into a folder, which is made if it is not there.

    Returns the files.

    Raises:
        AnalystError: one of them is there already, or cannot be written.
    """
    place = Path(folder)
    postings = list(_ledger())
    contents = {
        "fi_reporting.csv": "BUKRS;JAHRPER;HKONT;HSL;WAERS\n" + "".join(map(_german, postings)),
        "consolidation_mart.csv": "company,period,account,amount,currency\n" + "".join(map(_plain, _loaded(postings))),
        "sources.yaml": (_FILES / "sources.yaml").read_text(encoding="utf-8"),
        "checks.yaml": (_FILES / "checks.yaml").read_text(encoding="utf-8"),
    }
    for name in contents:
        if (place / name).exists():
            raise AnalystError(f"{place / name} is there already; name an empty folder", argument="folder")
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name, text in contents.items():
            with (place / name).open("x", encoding="utf-8", newline="\n") as out:
                out.write(text)
    except OSError as error:
        raise AnalystError(f"{place} cannot be written: {error.strerror or error}", argument="folder") from error
    return [place / name for name in contents]


def _ledger() -> Iterator[Posting]:
    """Financial accounting: two postings to each account."""
    for company in _COMPANIES:
        for month in _MONTHS:
            result = _RESULT if (company, month) == (1001, 1) else 60_000_000 + company * month * 7919 % 90_000_000
            parts = {_ROUNDED: -result // 10, _LATE: result // 3}
            if (company, month) == (1001, 1):
                parts[_UNMAPPED] = 325_000
            parts[_REVENUE] = result - sum(parts.values())
            for account, amount in sorted(parts.items()):
                first = 475_002 if (company, month, account) == (1001, 1, _LATE) else amount * 3 // 7
                yield company, month, account, first
                yield company, month, account, amount - first


def _loaded(postings: list[Posting]) -> Iterator[Posting]:
    """The mart: financial accounting as it was loaded."""
    once = {(1001, 1, _ROUNDED): 2, (1017, 3, _REVENUE): -1250}
    for company, month, account, amount in postings:
        if account == _UNMAPPED:
            continue
        late = (company, month, account, amount) == (1001, 1, _LATE, 475_002)
        yield company, 2 if late else month, account, amount + once.pop((company, month, account), 0)


def _german(posting: Posting) -> str:
    """A line as SAP writes it for German users: 0000800100, 2024001, 1.250,00-."""
    company, month, account, amount = posting
    whole = f"{abs(amount) // 100:,}".replace(",", ".")
    return f"{company};2024{month:03};{account:>010};{whole},{abs(amount) % 100:02}{'-' if amount < 0 else ''};EUR\n"


def _plain(posting: Posting) -> str:
    company, month, account, amount = posting
    sign = "-" if amount < 0 else ""
    return f"{company},{month:03}.2024,{account},{sign}{abs(amount) // 100}.{abs(amount) % 100:02},EUR\n"
