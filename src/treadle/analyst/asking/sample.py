"""The sample sources that ship with the package: `fi_reporting`, `bpc_reporting`, `consolidation_mart`.

The data are generated, the same bytes each time for one version of the engine, into a folder of the user's cache on
first use; the declaration is written by hand and lies beside this file. Files appear there whole or not at all, so that
two processes may do it at once.

What the data tell: company 1001 in period 202401 has 1,500,000.00 in financial accounting. The mart has 8,000.00 less,
because account 710300 was not mapped (3,250.00), one posting to 800200 arrived a month late (4,750.02), and one amount
of account 415000 was rounded (0.02 the other way). BPC has a manual journal in company 2001, a reclassification between
two accounts in company 1002 that no total shows, and lacks the last period of company 3001.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path

from treadle.analyst.asking.catalog import Catalog
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.packages import ENGINE, need_packages
from treadle.analyst.reading.ctrl_c import ctrl_c

Posting = tuple[str, str, str, int, str]
"""Company, period (YYYYPP), account, amount in hundredths, currency."""

_DECLARATION = Path(__file__).with_name("sample") / "sources.yaml"
_EDITION = "1"
_COMPANIES = {"1001": "EUR", "1002": "EUR", "2001": "USD", "2002": "USD", "3001": "GBP"}
_PERIODS = tuple(f"2024{month:02}" for month in range(1, 13))
# Income and expenses by account, in thousandths of the result; they add up to 1,000.
_ACCOUNTS = {
    "800100": 2400,
    "800200": 1450,
    "800300": 620,
    "800900": -170,
    "710300": 45,
    "710500": 60,
    "400100": -1120,
    "400200": -410,
    "410100": -280,
    "415000": -95,
    "420000": -640,
    "420100": -150,
    "430000": -88,
    "440000": -74,
    "450000": -132,
    "460000": -61,
    "470000": -53,
    "476500": -49,
    "480000": -167,
    "490000": -86,
}
_POSTINGS = 8
_MAIN = ("1001", "202401")
_UNMAPPED, _LATE, _ROUNDED = "710300", "800200", "415000"


def sample_catalog(folder: str | Path | None = None) -> Catalog:
    """Returns the catalogue of the sample sources, after writing their files if they are not there.

    Args:
        folder: where to put them. Default: `treadle/sample-…` in `$XDG_CACHE_HOME` (`~/.cache`, or `%LOCALAPPDATA%` on
            Windows), or in the folder for temporary files if that cannot be written to.

    Raises:
        Misuse: the packages that the analyst needs are not installed.
        AnalystError: the files can be written to neither folder.
    """
    need_packages(*ENGINE)
    if folder is not None:
        return Catalog.load(_written(Path(folder)) / "sources.yaml")
    name = f"sample-{_edition()}"
    cached, user = _cache() / "treadle" / name, str(os.getuid()) if hasattr(os, "getuid") else "user"
    try:
        return Catalog.load(_written(cached) / "sources.yaml")
    except OSError as error:
        first = error
    other = Path(tempfile.gettempdir()) / f"treadle-{user}" / name
    try:
        return Catalog.load(_written(other) / "sources.yaml")
    except OSError as error:
        raise AnalystError(
            f"the sample sources can be written neither to {cached} ({first.strerror}) nor to {other} "
            f"({error.strerror}). Make room there, or name another folder in XDG_CACHE_HOME."
        ) from error


def _cache() -> Path:
    places = (os.environ.get("XDG_CACHE_HOME"), os.environ.get("LOCALAPPDATA") if os.name == "nt" else None)
    return Path(next((place for place in places if place), "") or Path.home() / ".cache")


def _edition() -> str:
    """Changes with the declaration, the generator and the engine that writes Parquet."""
    import duckdb

    parts = (_EDITION.encode(), duckdb.__version__.encode(), _DECLARATION.read_bytes(), Path(__file__).read_bytes())
    return blake2b(b"\0".join(parts), digest_size=6).hexdigest()


def _written(folder: Path) -> Path:
    """The folder with all four files in it; each is written elsewhere first and then put in its place."""
    names = ("fi_reporting.csv", "bpc_reporting.csv", "consolidation_mart.parquet", "sources.yaml")
    if all((folder / name).is_file() for name in names):
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".writing-") as private:
        made = Path(private)
        postings = list(_ledger())
        _write_csv(made / names[0], postings, ",", account=lambda text: text.zfill(10))
        _write_csv(made / names[1], _uploaded(postings), ";", period=lambda text: f"{text[:4]}.{text[4:]}")
        _write_parquet(made / names[2], _loaded(postings))
        shutil.copyfile(_DECLARATION, made / names[3])
        for name in names:
            _put(made / name, folder / name)
    return folder


def _put(made: Path, wanted: Path) -> None:
    """Puts a whole file in its place, unless another process has: one that reads it must not see it change."""
    try:
        os.link(made, wanted)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        if not wanted.exists():
            made.replace(wanted)


class _Dice:
    """Repeatable numbers, the same on every Python: a linear congruential generator (Knuth's MMIX constants)."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, limit: int) -> int:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self._state >> 33) % limit


def _ledger() -> Iterator[Posting]:
    """Financial accounting: eight postings for each company, period and account."""
    dice = _Dice(2024)
    for company, currency in _COMPANIES.items():
        for period in _PERIODS:
            result = 60_000_000 + dice.below(120_000_000)
            if (company, period) == _MAIN:
                result = 150_000_000
            for account, amount in _split(result, dice).items():
                if (company, period) == _MAIN and account == _UNMAPPED:
                    amount = 325_000
                if (company, period) == _MAIN and account == "800100":
                    amount += _split_part(result, _UNMAPPED) - 325_000
                for piece in _pieces(amount, dice, 475_002 if (company, period, account) == (*_MAIN, _LATE) else None):
                    yield company, period, account, piece, currency


def _split_part(result: int, account: str) -> int:
    return result * _ACCOUNTS[account] // 1000


def _split(result: int, dice: _Dice) -> dict[str, int]:
    """A result by account; revenue takes what rounding and chance leave over."""
    parts = {account: _split_part(result, account) for account in _ACCOUNTS}
    for account in parts:
        if account not in ("800100", _UNMAPPED):
            parts[account] += dice.below(20_001) - 10_000
    parts["800100"] += result - sum(parts.values())
    return parts


def _pieces(amount: int, dice: _Dice, known: int | None) -> list[int]:
    """An amount as postings of uneven size; `known` is the size of one of them."""
    sizes = [60 + dice.below(80) for _ in range(_POSTINGS - 1)]
    pieces = [amount * size // (100 * _POSTINGS) for size in sizes]
    if known is not None:
        pieces[2] = known
    return [*pieces, amount - sum(pieces)]


def _loaded(postings: Iterable[Posting]) -> Iterator[Posting]:
    """The mart: financial accounting as it was loaded."""
    rounded = False
    for company, period, account, amount, currency in postings:
        if (company, period) == _MAIN:
            if account == _UNMAPPED:
                continue
            if account == _LATE and amount == 475_002:
                period = "202402"
            if account == _ROUNDED and not rounded:
                rounded, amount = True, amount + 2
        yield company, period, account, amount, currency


def _uploaded(postings: Iterable[Posting]) -> Iterator[Posting]:
    """BPC: what the companies uploaded, and what was entered by hand."""
    for company, period, account, amount, currency in postings:
        if (company, period) != ("3001", "202412"):
            yield company, period, account, amount, currency
    yield "2001", "202403", "480000", -1_250_000, "USD"
    yield "1002", "202406", "420000", 1_875_000, "EUR"
    yield "1002", "202406", "430000", -1_875_000, "EUR"
    yield "1001", "202401", "490000", -310_000, "EUR"


def _write_csv(file: Path, postings: Iterable[Posting], delimiter: str, **spelled: "object") -> None:
    account, period = spelled.get("account"), spelled.get("period")
    lines = [delimiter.join(("company", "period", "account", "amount", "currency"))]
    for company, month, number, amount, currency in postings:
        month = period(month) if callable(period) else month
        number = account(number) if callable(account) else number
        lines.append(delimiter.join((company, month, number, _decimal(amount), currency)))
    file.write_bytes(("\n".join(lines) + "\n").encode())


def _write_parquet(file: Path, postings: Iterable[Posting]) -> None:
    import duckdb

    company, period, account, amount, currency = zip(*postings, strict=True)
    with ctrl_c(), duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute(
            "CREATE TABLE mart AS SELECT unnest($1) AS company, unnest($2) AS period, unnest($3) AS account, "
            "unnest($4)::DECIMAL(18, 2) AS amount, unnest($5) AS currency",
            [list(company), list(period), list(account), [_decimal(value) for value in amount], list(currency)],
        )
        connection.table("mart").write_parquet(str(file))


def _decimal(amount: int) -> str:
    sign = "-" if amount < 0 else ""
    return f"{sign}{abs(amount) // 100}.{abs(amount) % 100:02}"
