"""Every place for a ledger keeps the same: in memory, in an SQLite file, in a PostgreSQL database."""

import threading
from contextlib import ExitStack
from decimal import Decimal
from itertools import count

import pytest
from depth import deep
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle import Budget
from treadle.drivers.purse.claims import Claim
from treadle.drivers.purse.ledger import Most, row_name
from treadle.drivers.purse.patience import outside
from treadle.drivers.purse.rows import Entry, Mark, Place, Row, Sums

NOTHING = Claim()


def claim(tokens=0, usd="0"):
    return Claim(tokens=tokens, usd=Decimal(usd))


def row(claimed, used=NOTHING, base=NOTHING):
    return Row(base, claimed, used)


def at(run, key="", purse="all"):
    return Place(purse, key, run)


def test_nothing_is_there_at_first(ledger):
    assert ledger.sums("all", "") == Sums(NOTHING, NOTHING)
    assert ledger.row(at("a")) is None
    assert (ledger.keys("all"), ledger.rows("all", "a"), ledger.key_of("all", "a")) == ([], [], None)
    assert ledger.others(at("a")) == ledger.held(at("a")) == NOTHING


def test_a_row_is_set_where_the_purse_allows_it(ledger):
    most = Most(100, None)
    assert ledger.draw(at("a"), row(claim(60)), most) is None
    assert ledger.draw(at("b"), row(claim(41)), most) == claim(60)
    assert ledger.draw(at("b"), row(claim(40)), most) is None
    assert ledger.sums("all", "") == Sums(claim(100), NOTHING)
    dollar = Most(None, Decimal(1))
    assert ledger.draw(at("a", "usd"), row(claim(0, "0.6")), dollar) is None
    assert ledger.draw(at("b", "usd"), row(claim(0, "0.4001")), dollar) == claim(0, "0.6")
    assert ledger.draw(at("b", "usd"), row(claim(0, "0.4")), dollar) is None
    assert ledger.keys("all") == ["", "usd"]


def test_what_is_refused_leaves_nothing(ledger):
    assert ledger.draw(at("a", "anna"), row(claim(101)), Most(100, None)) == NOTHING
    assert (ledger.keys("all"), ledger.rows("all", "a")) == ([], [])


def test_a_row_that_is_set_again_counts_once(ledger):
    for _ in range(3):
        assert ledger.draw(at("a"), row(claim(60, "0.5"), claim(10, "0.1")), Most(100, Decimal(1))) is None
        ledger.settle(at("b"), row(claim(7), claim(7)), ())
    assert ledger.sums("all", "") == Sums(claim(67, "0.5"), claim(17, "0.1"))


def test_what_others_claim_and_hold_is_told_apart(ledger):
    ledger.settle(at("a"), row(claim(60), claim(10)), ())
    ledger.settle(at("b"), row(claim(9), claim(8)), ())
    assert (ledger.others(at("a")), ledger.held(at("a"))) == (claim(9), claim(1))
    assert (ledger.others(at("c")), ledger.held(at("c"))) == (claim(69), claim(51))


def test_who_has_something_set_aside_is_told(ledger):
    assert ledger.set_aside("all") == []
    for run in ("b", "a"):
        ledger.settle(at(run), row(claim(9, "0.5"), claim(9, "0.1")), ())
        ledger.settle(at(run, "anna"), row(claim(9), claim(8)), ())
    ledger.settle(at("c"), row(claim(9, "0.5"), claim(9, "0.5")), ())
    ledger.settle(at("d", purse="other"), row(claim(9), claim(8)), ())
    assert ledger.set_aside("all") == ["a", "b"]
    ledger.settle(at("a"), row(claim(9, "0.1"), claim(9, "0.1")), ())
    ledger.settle(at("a", "anna"), row(claim(8), claim(8)), ())
    assert ledger.set_aside("all") == ["b"]


def test_a_row_that_somebody_has_set_since_stays(ledger):
    ledger.settle(at("a"), row(claim(60)), ())
    assert ledger.settle(at("a"), row(claim(5)), (), [row(claim(59))])[0] == Sums(claim(60), NOTHING)
    assert ledger.settle(at("a"), row(claim(5)), (), [row(claim(59)), row(claim(60))])[0] == Sums(claim(5), NOTHING)
    assert ledger.settle(at("new"), row(claim(1)), (), [row(NOTHING)])[0] == Sums(claim(6), NOTHING)


def test_marks_are_told_once(ledger):
    half, all_of_it, dollars = Mark(50, None), Mark(100, None), Mark(None, Decimal("0.5"))
    marks = (half, all_of_it, dollars)
    assert ledger.settle(at("a"), row(claim(49), claim(49)), marks)[1] == []
    assert ledger.settle(at("a"), row(claim(50), claim(50)), marks)[1] == [half]
    assert ledger.settle(at("a"), row(claim(51), claim(51)), marks)[1] == []
    assert ledger.settle(at("b"), row(claim(49, "9"), claim(49, "9")), marks)[1] == [all_of_it, dollars]
    assert ledger.settle(at("b", "other"), row(claim(50), claim(50)), marks)[1] == [half]


def test_rows_are_told_in_the_order_of_their_keys(ledger):
    keys = ["b", "a", "ä", "B", "\U0001f600", "￿"]
    for number, key in enumerate(keys):
        ledger.settle(at("a", key, "day"), row(claim(number), base=claim(number, "1")), ())
    ledger.settle(at("b", "c", "day"), row(claim(1)), ())
    assert [key for key, _ in ledger.rows("day", "a")] == sorted(keys)
    assert dict(ledger.rows("day", "a"))["ä"] == row(claim(2), base=claim(2, "1"))
    assert ledger.keys("day") == sorted([*keys, "c"])
    assert ledger.row(at("a", "ä", "day")).base == claim(2, "1")


@pytest.mark.parametrize("name", ["", "a\0b", "%s %b {} *row*", "'; DROP TABLE budget_purses; --", "\\x41", "😀" * 300])
def test_names_stay_what_they_are(ledger, name):
    place = Place(f"user {name}", name, f"run {name}")
    ledger.settle(place, row(claim(1)), (Mark(1, None),))
    assert ledger.keys(place.purse) == [name]
    assert ledger.rows(place.purse, place.run) == [(name, row(claim(1)))]
    assert ledger.key_of(place.purse, place.run) == name


def test_amounts_are_exact(ledger):
    tiny, huge = "1E-28", "123456789012345678901234567890.1234567890123456789012345678"
    ledger.settle(at("a"), row(claim(2**70, tiny), claim(1, tiny)), ())
    ledger.settle(at("b"), row(claim(1, huge)), ())
    sums = ledger.sums("all", "")
    assert sums.claimed.tokens == 2**70 + 1
    assert (sums.claimed - claim(1, huge), sums.used) == (claim(2**70, tiny), claim(1, tiny))


def test_a_run_below_tells_whose_its_run_above_is(ledger):
    ledger.settle(at("a@1.0.0.call@2.0", "anna", "user"), row(claim(1)), ())
    assert row_name("a.0.call", 2.0, ("a", row_name("a", 1.0))) == "a@1.0.0.call@2.0"
    assert ledger.key_of("user", "a@1.0") == "anna"
    assert ledger.key_of("user", "a@1.0.0.call@2.0") == "anna"
    assert ledger.key_of("all", "a@1.0") is None


def test_rows_that_were_called_by_the_id_alone_are_taken_over_once(ledger):
    for key in ("one", "two"):
        ledger.settle(at("a", key, "day"), row(claim(3)), ())
    ledger.adopt("day", "a", "a@1.0")
    assert ledger.rows("day", "a") == []
    assert [key for key, _ in ledger.rows("day", "a@1.0")] == ["one", "two"]
    for key in ("one", "three"):
        ledger.settle(at("a", key, "day"), row(claim(9)), ())
    ledger.adopt("day", "a", "a@1.0")
    assert [each.claimed.tokens for _, each in ledger.rows("day", "a@1.0")] == [3, 3]


def test_what_raises_in_the_middle_leaves_all_as_it_was(ledger):
    ledger.settle(at("a"), row(claim(3)), ())

    def fails(look):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ledger.store.change(at("a"), fails)
    assert ledger.store.change(at("a"), lambda look: (look, None)).row == row(claim(3))
    ledger.settle(at("a"), row(claim(4)), ())
    assert ledger.sums("all", "").claimed == claim(4)


def test_it_is_open_again_after_it_was_closed(ledger):
    ledger.settle(at("a"), row(claim(3)), ())
    ledger.close()
    ledger.close()
    assert ledger.sums("all", "").claimed == claim(3)


def test_threads_at_one_purse_lose_nothing(ledger):
    def add(mine):
        for _ in range(10):
            outside(lambda: ledger.store.change(at(mine), lambda look: (None, _one_more(look))))

    threads = [threading.Thread(target=add, args=(f"r{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.sums("all", "").claimed == claim(40)


def _one_more(look):
    claimed = look.sums.claimed + claim(1)
    return Entry(Sums(claimed, NOTHING), row(claimed))


amounts = st.builds(claim, st.integers(0, 1000), st.decimals("0", "5", places=4, allow_nan=False, allow_infinity=False))
places = st.builds(at, st.sampled_from("ab"), st.sampled_from(["", "k"]), st.sampled_from(["all", "user"]))
marks = st.lists(
    st.one_of(
        st.builds(Mark, st.integers(1, 900), st.none()), st.builds(Mark, st.none(), st.sampled_from([Decimal("1.5")]))
    ),
    max_size=2,
    unique=True,
).map(tuple)
acts = st.one_of(
    st.tuples(
        st.just("draw"), places, st.builds(row, amounts, amounts), st.builds(Most, st.integers(0, 1500), st.none())
    ),
    st.tuples(st.just("settle"), places, st.builds(row, amounts, amounts), marks),
    st.tuples(st.just("others"), places),
    st.tuples(st.just("held"), places),
    st.tuples(st.just("row"), places),
    st.tuples(st.just("adopt"), st.just("all"), st.just("a"), st.just("b")),
    st.tuples(st.just("sums"), st.sampled_from(["all", "user"]), st.sampled_from(["", "k"])),
    st.tuples(st.just("rows"), st.sampled_from(["all", "user"]), st.sampled_from("ab")),
    st.tuples(st.just("keys"), st.sampled_from(["all", "user"])),
)
_numbers = count()


@settings(max_examples=deep(25))
@given(st.lists(acts, max_size=12))
def test_all_places_answer_the_same(url, server, tmp_path_factory, done):
    """The rows of before are called by the id alone; a name is not given twice here either."""
    schema = f"same{next(_numbers)}"
    with ExitStack() as stack:
        stack.callback(server.execute, f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        budgets = [
            Budget(tokens=1),
            Budget(tokens=1, path=tmp_path_factory.mktemp("same") / "spend.db"),
            Budget(tokens=1, path=url, schema=schema),
        ]
        for budget in budgets:
            stack.callback(budget.close)
        for what, *given_to in done:
            answers = [getattr(budget.ledger, what)(*given_to) for budget in budgets]
            assert answers == [answers[0]] * 3
