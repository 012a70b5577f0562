"""No model is shown a part of a figure: 123, where 123,456 was cut, is another figure, and a wrong one."""

import json
import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle import Agent, ClearToolResults, ShortenResult, tool
from treadle.context.unbroken import MOST_MOVED, end_before, start_after
from treadle.models import ModelRequest
from treadle.testing import ScriptedModel
from treadle.tools.output import cut

pytestmark = pytest.mark.anyio

FIGURE = re.compile(r"[-+\d][\d.,]*\d|\d")


def table(rows: int) -> dict[str, Any]:
    return {"rows": [{"account": f"A{at:05d}", "amount": Decimal(98_765_431 * (at + 1)) / 100} for at in range(rows)]}


def amounts(text: str) -> list[str]:
    """What a reader takes for an amount: a figure with a decimal sign, or with more digits than an account has."""
    return [found for found in re.findall(r"(?<![\w.])\d[\d.]*", text) if "." in found or len(found) > 5]


def known(rows: int) -> set[str]:
    return {str(row["amount"]) for row in table(rows)["rows"]}


@pytest.mark.parametrize("most", range(400, 460))
async def test_by_the_limit_of_a_tool(most: int) -> None:
    def figures() -> dict[str, Any]:
        """Figures."""
        return table(40)

    agent = Agent(ScriptedModel([[("figures", {})], "done"]), tools=[tool(figures, effect="read", max_output=most)])
    shown = (await agent.run("Which?")).tool_calls_made[0].result.text
    assert "characters left out" in shown
    assert most - 2 * MOST_MOVED <= len(shown) <= most
    told = amounts(shown.replace(re.search(r"\d+ characters", shown)[0], ""))  # type: ignore[index]
    assert told
    assert set(told) <= known(40)


@pytest.mark.parametrize("tokens", range(100, 130))
async def test_by_a_policy_and_page_by_page(tokens: int) -> None:
    """Read on from where it was cut, page by page, the result is whole."""
    pages: list[str] = []

    @tool(effect="read")
    def figures() -> dict[str, Any]:
        """Figures."""
        return table(300)

    def model(request: ModelRequest) -> Any:
        last = request.messages[-1].text
        if request.step == 0:
            return [("figures", {})]
        if not pages:
            found = re.search(r'call_id "(.*)" and offset (\d+)', last)
            assert found
            pages.append(last[: int(found[2])])
            return [("read_result", {"call_id": found[1], "offset": int(found[2])})]
        text, _, note = last.rpartition("\n[Characters ")
        pages.append(text)
        onward = re.search(r"offset (\d+)", note)
        name = request.messages[2].text.partition('call_id "')[2].partition('"')[0]
        return [("read_result", {"call_id": name, "offset": int(onward[1])})] if onward else "done"

    agent = Agent(ScriptedModel(model), tools=[figures], context=[ShortenResult(max_tokens=tokens)])
    result = await agent.run("Which?")
    assert "".join(pages) == result.tool_calls_made[0].result.text
    assert len(pages) > 2
    assert all(set(amounts(page)) <= known(300) for page in pages)


@pytest.mark.parametrize("named", range(40, 60))
async def test_by_what_a_stub_still_shows(named: int) -> None:
    @tool(effect="read")
    def total(of: int) -> str:
        """A total."""
        return (
            f"{'the total of all that was booked there and everywhere'[:named]} is 1,234,567.89 EUR. "
            + "So it is. " * 90
        )

    stubs: list[str] = []

    def model(request: ModelRequest) -> Any:
        stubs[:] = [one.text for one in request.messages if one.role == "tool" and '"cleared":true' in one.text]
        return [("total", {"of": request.step})] if request.step < 6 else "done"

    await Agent(ScriptedModel(model), tools=[total], context=[ClearToolResults(high=900, low=400, keep=1)]).run("All?")
    assert stubs
    for one in stubs:
        assert set(FIGURE.findall(json.loads(one)["beginning"])) <= {"1,234,567.89"}


FIGURES = ["1.234.567,89", "1 234 567,89", "−5,25", "3.5e-12", "word", "(99)", "0,53 %", "2024-01-31", "12:30"]


@settings(max_examples=60)
@given(figures=st.lists(st.sampled_from(FIGURES), min_size=90), most=st.integers(60, 400))
def test_among_words(figures: list[str], most: int) -> None:
    head, tail = shown_of(" and ".join(figures), most)
    whole = {*FIGURES, "", "0,53", "%"}
    assert {word.strip() for text in (head, tail) for word in re.split(r"\band\b", text)} <= whole


@settings(max_examples=60)
@given(figures=st.lists(st.integers(-(10**12), 10**12), min_size=60), most=st.integers(60, 400))
def test_in_lists_without_blanks(figures: list[int], most: int) -> None:
    head, tail = shown_of(json.dumps(figures, separators=(",", ":")), most)
    shown = {*head.strip("[],").split(","), *tail.strip("[],").split(",")} - {""}
    assert {*map(int, shown)} <= {*figures}


def shown_of(text: str, most: int) -> tuple[str, str]:
    """The beginning and the end that are shown of a text."""
    shown = cut(text, most)
    head, _, rest = shown.partition("\n[... ")
    left_out, _, tail = rest.partition(" characters left out ...]\n")
    assert len(shown) <= most
    assert len(head) + int(left_out) + len(tail) == len(text)
    assert text.startswith(head)
    assert text.endswith(tail)
    return head, tail


def test_what_has_no_end_is_cut_where_it_is() -> None:
    text = "7" * 1000
    assert (end_before(text, 300), start_after(text, 300)) == (300, 300)
    assert len(cut(text, 200)) <= 200
