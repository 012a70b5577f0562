"""Questions for two tables at once, or with a word that is no value: none is answered as another question."""

from pathlib import Path

import pytest

from treadle import Agent, Conversation, tool
from treadle.analyst import Catalog, analyst_skill


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    (tmp_path / "timesheet.csv").write_text(
        "company,account,amount,hours\n1001,A,5.00,1.00\n1002,B,6.00,2.00\n1001,B,7.00,3.00\n"
    )
    (tmp_path / "s.yaml").write_text("""\
sources:
  timesheet:
    kind: csv
    path: timesheet.csv
    dimensions: {company: {}, account: {}}
    measures: {amount: {unit: EUR}, hours: {unit: h}}
""")
    return Agent("offline", skills=[analyst_skill(Catalog.load(tmp_path / "s.yaml"))])


@pytest.mark.parametrize(
    "question",
    [
        "What are the amount per company and the hours per account in timesheet?",
        "Show the amount by company and the hours by account of timesheet",
    ],
)
def test_figures_by_something_else_each_are_not_one_table(agent: Agent, question: str) -> None:
    text = agent.run_sync(question, conversation=Conversation()).text
    assert "account A, " not in text
    assert "company 1001, account" not in text


def test_two_figures_by_the_same_are_one_table(agent: Agent) -> None:
    question = "amount per company and hours per company in timesheet"
    assert "company 1001, amount 12.00, hours 4.00" in agent.run_sync(question, conversation=Conversation()).text


@pytest.mark.parametrize("words", ["by company combinations", "per company bracket", "for each company pairing"])
def test_a_word_behind_what_is_grouped_by_is_no_condition(agent: Agent, words: str) -> None:
    text = agent.run_sync(f"What is the amount of timesheet {words}?", conversation=Conversation()).text
    assert "company =" not in text
    assert "Nothing was found" not in text


def test_what_totals_are_of_is_said_where_some_rows_are_shown() -> None:
    agent = Agent("offline", skills=[analyst_skill()])
    result = agent.run_sync("Top 3 companies by amount in fi_reporting", conversation=Conversation())
    assert "Note: 3 of 5 rows are shown; totals are of all 5" in result.text


def test_two_values_that_fit_two_parameters_alike_go_into_no_call() -> None:
    """North was booked as the licence plate, in the lot KA-77."""
    made: list[tuple[str, str, int]] = []

    @tool(effect="write")
    def book_space(lot: str, plate: str, hours: int) -> str:
        """Books a parking space for a number of hours.

        Args:
            lot: the parking lot.
            plate: the licence plate of the car.
            hours: for how many hours.
        """
        made.append((lot, plate, hours))
        return "booked"

    @tool
    def head_to_head(home: str, away: str) -> str:
        """The score of the match between two teams at the ground of the first.

        Args:
            home: the team that played at home.
            away: the visitors.
        """
        return {("Rovers", "United"): "2:1", ("United", "Rovers"): "0:3"}[home, away]

    agent = Agent("offline", tools=[book_space, head_to_head])
    unclear = agent.run_sync("Book a space at North for KA-77 for 3 hours.", conversation=Conversation())
    assert (made, "It is not clear which of" in unclear.text) == ([], True)
    said = agent.run_sync("Book a space in lot North for plate KA-77 for 3 hours.", conversation=Conversation())
    assert (made, said.finished) == ([("North", "KA-77", 3)], True)
    score = agent.run_sync("What was the score of Rovers at United?", conversation=Conversation())
    assert "2:1" not in score.text


@pytest.mark.parametrize("question", ["Which trains arrive at Ulm?", "List the arrivals at Ulm."])
def test_the_opposite_of_what_a_tool_tells_is_no_question_to_it(question: str) -> None:
    @tool
    def departures(station: str) -> list[dict[str, str]]:
        """Trains that leave a station, in order of time, with destination.

        Args:
            station: the station they leave from.
        """
        return [{"train": "ICE 595", "to": "Munich", "time": "10:05"}]

    text = Agent("offline", tools=[departures]).run_sync(question, conversation=Conversation()).text
    assert "ICE 595" not in text


@pytest.fixture
def giving(tmp_path: Path) -> Agent:
    (tmp_path / "donations.csv").write_text("project,year,donor,sum,donors\nWells,2022,private,120.00,4\n")
    (tmp_path / "s.yaml").write_text("""\
sources:
  donations:
    kind: csv
    path: donations.csv
    dimensions: {project: {}, year: {}, donor: {}}
    measures: {sum: {unit: EUR}, donors: {}}
""")
    return Agent("offline", skills=[analyst_skill(Catalog.load(tmp_path / "s.yaml"))])


def test_the_name_of_a_figure_is_not_taken_for_a_source_that_is_called_alike(giving: Agent) -> None:
    """`donations` was compared with itself, and found to match."""
    question = "What is the sum by project and the donors by year in donations?"
    text = giving.run_sync(question, conversation=Conversation()).text
    assert "match" not in text
    assert "donor private" not in text


def test_a_word_that_is_a_field_and_a_figure_is_a_field_behind_by(giving: Agent) -> None:
    text = giving.run_sync("What is the sum in donations by donors?", conversation=Conversation()).text
    assert "donor private, sum 120.00" in text
