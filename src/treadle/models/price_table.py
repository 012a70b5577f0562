"""Price table: prices of one's own by the names of models, out of a mapping or a TOML file.

`TREADLE_PRICES` names a file for all models of a process, whoever makes them: agents by name, fallbacks, sub-agents,
the command line. Nothing else of the environment is read here, and a file once, until it changes. Neighbours:
`treadle.models.price`, one price; `treadle.models.prices`, the table of known models, which goes after this one.
"""

import os
import re
import reprlib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Self

from treadle.kernel.errors import Misuse
from treadle.models.price import KINDS, Price

VARIABLE: Final = "TREADLE_PRICES"
"""The environment variable that names the file."""

FIELDS: Final = (*KINDS, "request", "web_search", "above", "services")


class PriceTable:
    """Prices by the names of models: `PriceTable({"openai:gpt-5": Price(1.25, 10), "local:*": Price(0, 0)})`.

    A `*` stands for any text. The exact name counts first, then the first that fits, in the order given.

    Args:
        prices: a `Price` for each name, or its arguments as a mapping, as they stand in a file.

    Raises:
        Misuse: what is given is no such mapping; the words name the model and the field.
    """

    __slots__ = ("_exact", "_fitting")

    def __init__(self, prices: Mapping[str, Price | Mapping[str, Any]]) -> None:
        if not isinstance(prices, Mapping):
            raise Misuse(
                'PriceTable takes prices by the names of models, {"openai:gpt-5": Price(1.25, 10)}; it was given '
                f"{reprlib.repr(prices)}"
            )
        self._exact: dict[str, Price] = {}
        self._fitting: list[tuple[re.Pattern[str], Price]] = []
        for name, given in prices.items():
            if not isinstance(name, str) or not name:
                raise Misuse(f"a price table has names of models, such as 'openai:gpt-5'; {name!r} is none")
            price = given if isinstance(given, Price) else _price(given, f"[{name!r}]")
            if "*" in name:
                self._fitting.append((re.compile(".*".join(map(re.escape, name.split("*"))), re.DOTALL), price))
            else:
                self._exact[name] = price

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The table in a TOML file: a table for each model, `["openai:gpt-5"]`, with the arguments of `Price`.

        Raises:
            Misuse: there is no such file, or it is no price table; the words name the line, or the model and the field.
        """
        import tomllib

        if not isinstance(path, (str, os.PathLike)):
            raise Misuse(f"PriceTable.read takes the path of a TOML file; it was given {reprlib.repr(path)}")
        try:
            prices = tomllib.loads(Path(path).read_text("utf-8-sig"), parse_float=Decimal)
        except OSError as error:
            raise Misuse(f"the price table {path} cannot be read: {error.strerror or error}") from error
        except ValueError as error:
            raise Misuse(f"the price table {path} is no TOML: {error}") from error
        try:
            return cls(prices)
        except Misuse as error:
            raise Misuse(f"the price table {path} cannot be used: {error}") from error

    def of(self, name: str) -> Price | None:
        """The price of the model called `name`, such as "openai:gpt-5"; None if the table has none."""
        exact = self._exact.get(name)
        if exact is not None:
            return exact
        return next((price for pattern, price in self._fitting if pattern.fullmatch(name)), None)

    def __repr__(self) -> str:
        return f"PriceTable({len(self._exact) + len(self._fitting)} prices)"


def own_price(name: str, given: Price | PriceTable | None) -> Price | None:
    """The price that somebody set for the model called `name`: as `given`, else in the file of the environment.

    Raises:
        Misuse: `given` is neither a price nor a table of them, or the file cannot be used.
    """
    if isinstance(given, Price):
        return given
    if given is not None and not isinstance(given, PriceTable):
        raise Misuse(
            "price= takes Price(input=…, output=…), in dollars per million tokens, or a PriceTable; it was given "
            f"{reprlib.repr(given)}"
        )
    found = None if given is None else given.of(name)
    if found is not None:
        return found
    table = _of_environment()
    return None if table is None else table.of(name)


# The file that was read last: its path and when it was changed, and the table in it.
_read: dict[tuple[str, int], PriceTable] = {}


def _of_environment() -> PriceTable | None:
    path = os.environ.get(VARIABLE, "").strip()
    if not path:
        return None
    try:
        key = (path, os.stat(path).st_mtime_ns)
    except OSError as error:
        raise Misuse(f"the price table {path}, which {VARIABLE} names, cannot be read: {error.strerror}") from error
    table = _read.get(key)
    if table is None:
        table = PriceTable.read(path)
        _read.clear()
        _read[key] = table
    return table


def _price(given: object, where: str) -> Price:
    """The price that a mapping describes; `where` says whose it is."""
    if not isinstance(given, Mapping):
        raise Misuse(
            f"{where} takes input and output, in dollars per million tokens; it was given {reprlib.repr(given)}"
        )
    for name in given:
        if name not in FIELDS:
            raise Misuse(f"{where} has no field {name!r}; there are {', '.join(FIELDS)}")
    for name in ("input", "output"):
        if name not in given:
            raise Misuse(f"{where} needs {name} = …, in dollars per million tokens; 0 if it is free")
    fields: dict[str, Any] = dict(given)
    for name in ("above", "services"):
        if name in fields:
            fields[name] = _prices(fields[name], f"{where}.{name}", name == "above")
    try:
        return Price(**fields)
    except Misuse as error:
        raise Misuse(f"{where}: {error}") from error


def _prices(given: object, where: str, by_length: bool) -> dict[Any, Price]:
    """The prices that stand in another; in a file, lengths are text."""
    if not isinstance(given, Mapping):
        raise Misuse(f"{where} takes a table of prices; it was given {reprlib.repr(given)}")
    found: dict[Any, Price] = {}
    for key, one in given.items():
        try:
            place = int(key) if by_length else key
        except (TypeError, ValueError) as error:
            raise Misuse(f"{where} has prices by a number of tokens, such as 200_000; {key!r} is none") from error
        found[place] = one if isinstance(one, Price) else _price(one, f"{where}[{key!r}]")
    return found
