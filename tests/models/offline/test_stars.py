"""A star that stands for any text is part of the question."""

from .conftest import TEXT, Bench, Session


def test_a_star_is_not_left_out() -> None:
    """8002* was answered as 8002, which no row has."""
    bench = Bench()
    called = []

    @bench.add("Returns the amount of one account.", account=TEXT)
    def account_amount(account: str) -> str:
        called.append(account)
        return "0"

    session = Session(bench)
    assert "\u201c*\u201d" in session.ask("What is the amount of account 8002*?")
    assert called == []
    session.ask("What is the amount of account 8002?")
    assert called == ["8002"]
