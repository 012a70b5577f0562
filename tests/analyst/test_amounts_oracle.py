"""Amounts in hostile text, read fast and with care, held against a reader in plain Python that shares no line with it.

What it reads is what the pages say: signs in front, behind or as brackets, one decimal sign, whole groups of thousands,
the currency of the measure on either side, an exponent where there is nothing else; all the rest is no number.
"""

import os
import re
from collections.abc import Iterator
from decimal import Context, Decimal, setcontext
from pathlib import Path
from random import Random
from typing import Any

import pytest

from treadle.analyst import (
    AnalystError,
    Catalog,
    CompareRequest,
    Dimension,
    Measure,
    QueryRequest,
    Source,
    TextFormat,
    compare,
    query,
)
from treadle.analyst.reading.session import Session

from .conftest import QUICK, write_csv

pytestmark = pytest.mark.usefixtures("one_engine")

FORMS = [(".", ""), (",", ""), (",", "."), (".", ","), (".", "'"), (",", " "), (".", " "), (",", "\u00a0")]
WORDS = {"": [], "EUR": ["EUR", "€"], "USD": ["USD", "$"], "CAD": ["CAD", "$"]}
MANY = int(os.environ.get("TREADLE_AMOUNTS", "60"))
PIECES = [
    *"0123456789" * 2, ".", ",", "-", "+", "(", ")", " ", "'", "’", "_", "e", "E", "%", "€", "$", "EUR", "EUR ", "−",
    "–", "\u00a0", "\u202f", "\u2009", "\t", '"', "٣", "１", "nan", "inf", "x", "1.234", "1,234", "000", "0.5", "1'000",
    "\ufeff", "\u200b", "\n", "\r\n", "--", "5-", "½", "²",
]  # fmt: skip


@pytest.fixture(autouse=True)
def precise() -> Iterator[None]:
    """The reader adds up with as many digits as there are."""
    before = Context()
    setcontext(Context(prec=200))
    yield
    setcontext(before)


def texts(chance: Random, count: int) -> list[str]:
    found = []
    for _ in range(count):
        if chance.random() < 0.4:
            found.append("".join(chance.choice(PIECES) for _ in range(chance.randint(0, 7))))
            continue
        decimal, thousands = chance.choice(FORMS)
        digits = str(chance.randint(0, 10 ** chance.randint(0, 18)))
        if thousands and chance.random() < 0.6:
            digits = re.sub(r"(?<=\d)(?=(\d{3})+$)", thousands, digits)
        if chance.random() < 0.6:
            digits += decimal + str(chance.randint(0, 10 ** chance.randint(0, 8))).zfill(chance.randint(0, 3))
        front = chance.choice(["", "", "-", "+", "−", "(", "- ", "$", "EUR ", "€", "-€", " ", "\u00a0", "\u202f-"])
        behind = chance.choice(
            ["", "", "-", " -", ")", " ", "EUR", " EUR", "€", "-EUR", " EUR-", "\u00a0", "e5", "E-3"]
        )
        text = front + digits + behind
        if chance.random() < 0.35:
            place = chance.randrange(len(text) + 1)
            text = text[:place] + chance.choice(PIECES) + text[place:]
        found.append(text)
    return found


def meant(text: str, decimal: str, thousands: str, unit: str) -> Decimal | str | None:
    """The number that a text is; None for nothing, and "refused" for what is no number."""
    left = text.strip(" \t\r\n\u00a0")
    for minus in "−–﹣－‐‑":
        left = left.replace(minus, "-")
    for blank in "\u00a0\u202f\u2009\u2007":
        left = left.replace(blank, " ")
    if thousands == "'":
        for apostrophe in "’‘ʼ´`":
            left = left.replace(apostrophe, "'")
    left = left.strip(" ")
    if not left:
        return None
    return _number(left, decimal, "\u00a0 " if thousands == "\u00a0" else thousands, WORDS[unit])


def _number(text: str, decimal: str, thousands: str, words: list[str]) -> Decimal | str:
    signs, rest = 1, text
    marks = before = behind = 0
    for _ in range(5):
        rest = rest.strip(" ")
        if rest[:1] == "(" and rest[-1:] == ")":
            rest, signs, marks = rest[1:-1], -signs, marks + 1
        elif rest[:1] in ("+", "-") and rest[:1]:
            rest, signs, marks = rest[1:], signs * (-1 if rest[0] == "-" else 1), marks + 1
        elif rest[-1:] == "-":
            rest, signs, marks = rest[:-1], -signs, marks + 1
        elif word := next((one for one in words if rest.startswith(one)), ""):
            rest, before = rest.removeprefix(word), before + 1
        elif word := next((one for one in words if rest.endswith(one)), ""):
            rest, behind = rest.removesuffix(word), behind + 1
    sign = re.escape(thousands.strip("\u00a0") or " ") if thousands else ""
    whole = rf"(?:\d{{1,3}}(?:{sign}\d{{3}})+|\d+)" if thousands else r"\d+"
    plain = re.fullmatch(rf"(?:{whole})?(?:{re.escape(decimal)}\d*)?(?P<exponent>[eE][+-]?\d+)?", rest, re.ASCII)
    if (
        plain is None
        or max(marks, before, behind) > 1
        or not rest[:1]
        or not re.search(r"\d", re.split("[eE]", rest)[0])
    ):
        return "refused"
    grouped = bool(thousands) and (thousands.strip("\u00a0") or " ") in rest
    if plain["exponent"] and (grouped or rest != text.lstrip("+-") or abs(int(plain["exponent"][1:])) > 30):
        return "refused"
    if thousands:
        rest = rest.replace(thousands.strip("\u00a0") or " ", "")
    return signs * Decimal(rest.replace(decimal, "."))


def fits(number: Decimal) -> bool:
    parts = number.normalize().as_tuple()
    return isinstance(parts.exponent, int) and parts.exponent >= -10 and number.adjusted() < 18


def catalog(place: Path, found: list[str], decimal: str, thousands: str, unit: str) -> Catalog:
    rows = [(str(at), text) for at, text in enumerate(found)]
    sources = []
    for name in "ab":
        write_csv(place / f"{name}.csv", ("k", "v"), rows)
        form = TextFormat(decimal=decimal, thousands=thousands)
        sources.append(Source(name=name, kind="csv", path=f"{name}.csv", text=form, dimensions=(Dimension(name="k"),),
                              measures=(Measure(name="v", unit=unit),)))  # fmt: skip
    return Catalog(sources, place)


def both(known: Catalog) -> tuple[dict[str, Decimal | None], dict[str, Decimal | None]]:
    """The figure of each row, by the comparison, which reads fast first, and by the query."""
    asked = query(known, QueryRequest(source="a", dimensions=["k"]), bounds=QUICK)
    request = CompareRequest(source_a="a", source_b="b", dimensions=["k"])
    compared = compare(known, request, bounds=QUICK)
    return (
        {row.key["k"]: row.source_a_value for row in compared.rows},
        {row["k"]: row["v"] for row in asked.rows},
    )


@pytest.mark.parametrize("form", FORMS)
def test_every_number_is_read_as_in_plain_python(tmp_path: Path, form: tuple[str, str]) -> None:
    chance = Random(repr(form))
    for with_unit in (False, True):
        unit = chance.choice(["EUR", "USD", "CAD"]) if with_unit else ""
        judged = [(text, meant(text, *form, unit)) for text in texts(chance, MANY)]
        # Texts that programs write are read fast; a single other one has all read with care. Each form meets both, and
        # both units: over the forms both ways meet both of them.
        if with_unit == FORMS.index(form) % 2:
            word = "|".join(map(re.escape, WORDS[unit])) or "(?!)"
            plain = rf" *(?:(?:{word})[ \xa0]*)?[-+]?[\d.,' ]+-?(?:[ \xa0]*(?:{word}))? *"
            judged = [one for one in judged if re.fullmatch(plain, one[0], re.ASCII)]
        right = [(text, number) for text, number in judged if number != "refused"]
        right = [(text, n) for text, n in right if not isinstance(n, Decimal) or fits(n)]
        expected = {str(at): number for at, (_, number) in enumerate(right)}
        fast, careful = both(catalog(tmp_path, [text for text, _ in right], *form, unit))
        wrong = {right[int(key)][0]: (value, expected[key]) for key, value in careful.items() if value != expected[key]}
        assert wrong == {}
        assert fast == careful


@pytest.mark.parametrize("part", range(2))
def test_what_is_no_number_is_refused_by_both(tmp_path: Path, part: int) -> None:
    chance = Random(part)
    tried = 0
    while tried < MANY // 40:
        form, unit = chance.choice(FORMS), chance.choice(["", "EUR"])
        (text,) = texts(chance, 1)
        if meant(text, *form, unit) == "refused":
            tried += 1
            known = catalog(tmp_path, ["1", text], *form, unit)
            with pytest.raises(AnalystError):
                print(repr(text), form, unit, query(known, QueryRequest(source="a"), bounds=QUICK).rows)
            with pytest.raises(AnalystError):
                compare(known, CompareRequest(source_a="a", source_b="b", dimensions=["k"]), bounds=QUICK)


@pytest.mark.parametrize("text", ["9" * 36, "-" + "9" * 36, "0." + "0" * 29 + "1", "1" * 19 + "." + "1" * 19, "1e35"])
def test_38_digits_are_read_whole(tmp_path: Path, text: str) -> None:
    fast, careful = both(catalog(tmp_path, [text], ".", "", ""))
    assert fast == careful == {"0": Decimal(text)}


@pytest.mark.parametrize("text", ["9" * 39, "9" * 38, "1" * 20 + "." + "1" * 19, "1e38", "1e-39"])
def test_more_digits_are_refused(tmp_path: Path, text: str) -> None:
    """Of the 38 a comparison has two after the point, which is where its tolerance is."""
    with pytest.raises(AnalystError, match="38"):
        print(both(catalog(tmp_path, [text], ".", "", "")))


def test_a_byte_order_mark_and_windows_lines_are_no_part_of_numbers(tmp_path: Path) -> None:
    known = catalog(tmp_path, ["1"], ".", "", "")
    for name in "ab":
        (tmp_path / f"{name}.csv").write_bytes(b'\xef\xbb\xbfk,v\r\n0,1.50\r\n1,2.25-\r\n2,\r\n3,"3"\r\n')
    assert both(known)[0] == {"0": Decimal("1.50"), "1": Decimal("-2.25"), "2": None, "3": Decimal(3)}


def numbers_beside(word: str, form: tuple[str, str], behind: bool, blank: str) -> list[str]:
    decimal, thousands = form
    whole = [f"1{thousands}234{decimal}56", f"-1{thousands}234", f"+0{decimal}5", "7", f"12{decimal}"]
    return [f"{one}{blank}{word}" if behind else f"{word}{blank}{one}" for one in whole]


@pytest.mark.parametrize("form", FORMS)
def test_an_amount_with_its_currency_beside_it_is_read_fast_as_any_other(
    tmp_path: Path, form: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One look at it took ten others, each through nine patterns."""
    asked = list[str]()
    run = Session.run

    def counted(session: Session, *given: Any, **more: Any) -> Any:
        asked.append(str(given))
        return run(session, *given, **more)

    monkeypatch.setattr(Session, "run", counted)

    def statements(found: list[str], unit: str) -> tuple[int, dict[str, Decimal | None]]:
        asked.clear()
        request = CompareRequest(source_a="a", source_b="b", dimensions=["k"])
        compared = compare(catalog(tmp_path, found, *form, unit), request, bounds=QUICK)
        return len(asked), {row.key["k"]: row.source_a_value for row in compared.rows}

    usual, figures = statements([one.strip() for one in numbers_beside("", form, False, "")], "EUR")
    found = [
        one
        for word in WORDS["EUR"]
        for behind in (False, True)
        for blank in ("", " ", "\u00a0", "  ")
        for one in numbers_beside(word, form, behind, blank)
    ]
    # A single one that is not read fast has all of them read with care, in more statements.
    count, read = statements(found, "EUR")
    assert count == usual
    assert {found[int(key)]: value for key, value in read.items()} == {
        one: figures[str(at % len(figures))] for at, one in enumerate(found)
    }


@pytest.mark.parametrize("unit", ["2", "e5", "-", "m2", "1.000"])
def test_a_unit_that_could_stand_within_a_number_is_taken_off_its_end_alone(tmp_path: Path, unit: str) -> None:
    fast, careful = both(catalog(tmp_path, [f"52 {unit}", "7"], ".", "", unit))
    assert fast == careful
