"""Lines at a terminal end between words: no figure is broken, and nothing is lost."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from treadle.cli.terminal import wrapped


def lines(text: str, width: int) -> list[str]:
    return [part.plain for part in wrapped(Text(text), width)]


def test_json_is_broken_after_its_commas() -> None:
    told = '-> {"product":"gadgets","quantity":75,"unit_price":"24.99","total":"1874.25","currency":"USD"}'
    assert lines(told, 68) == [
        '-> {"product":"gadgets","quantity":75,"unit_price":"24.99",', '"total":"1874.25","currency":"USD"}',
    ]  # fmt: skip


def test_a_percentage_stays_with_its_sign() -> None:
    assert lines("it is below 1 %), and so on", 14) == ["it is below", "1 %), and so", "on"]
    assert lines("it is done (0.01 s) so soon", 15) == ["it is done", "(0.01 s) so", "soon"]


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]) | st.sampled_from(" ,; \n")), st.integers(2, 40)
)
def test_no_line_is_too_wide_and_nothing_is_lost(text: str, width: int) -> None:
    found = lines(text, width)
    assert all(cell_len(line) <= width for line in found)
    assert "".join("".join(found).split()) == "".join(text.split())


@given(st.lists(st.integers(0, 10**9).map(str), min_size=1, max_size=20), st.integers(12, 40))
def test_a_figure_is_whole(figures: list[str], width: int) -> None:
    assert " ".join(lines(" ".join(figures), width)).split() == figures
    assert "".join(lines("[" + ",".join(figures) + "]", width)) == "[" + ",".join(figures) + "]"
    broken = [line.strip("[],").split(",") for line in lines("[" + ",".join(figures) + "]", width)]
    assert [figure for line in broken for figure in line] == figures
