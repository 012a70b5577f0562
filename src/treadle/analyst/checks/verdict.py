"""What came of a run of checks: plain data with a JSON form, and a line of words for each."""

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.analyst.checks.judging import OUTCOMES, Outcome, whole
from treadle.analyst.showing.classify import money
from treadle.analyst.showing.comparison import Comparison, Difference, Summary
from treadle.analyst.showing.plain import plain
from treadle.visible import seen

_MOST_NAMED = 3


class Change(Struct, frozen=True):
    """A key that differs now, or differed before.

    Attributes:
        key: the dimensions' values, as text; None for no value.
        status: its class now, or before if it differs no more.
        diff: A - B now, or before.
    """

    key: dict[str, str | None]
    status: str
    diff: Decimal


class Changes(Struct, frozen=True, kw_only=True):
    """What is different from the last run that asked the same.

    Attributes:
        since: when that began.
        before: how it ended.
        new: keys that differ now and did not, the largest first.
        gone: keys that differed and do not any more, the largest first.
        moved: keys that differ as before, but by another amount or in another class.
        same: whether the figures of all keys, those that match among them, are known to be as they were, too.
        note: why this cannot be told, if it cannot; the lists are empty then.
    """

    since: datetime | None = None
    before: Outcome | None = None
    new: tuple[Change, ...] = ()
    gone: tuple[Change, ...] = ()
    moved: tuple[Change, ...] = ()
    same: bool = False
    note: str = ""

    @property
    def sentence(self) -> str:
        """It in words: "new: 3 accounts (710300, 710310, 710320); gone: 1"; empty for a first run."""
        if self.note or self.since is None:
            return self.note
        parts = [f"{label}: {_named(keys)}" for label, keys in
                 (("new", self.new), ("gone", self.gone), ("changed", self.moved)) if keys]  # fmt: skip
        since = f"since {self.since.astimezone():%Y-%m-%d %H:%M}"
        # Of keys that match it is kept whether any figure has moved, where there were not too many of them.
        nothing = "nothing has changed" if self.same else "which keys differ has not changed, nor by how much"
        return f"{since} {'; '.join(parts) or nothing}"


class Verdict(Struct, frozen=True, kw_only=True):
    """What came of one check, by one measure.

    Attributes:
        check: its name.
        measure: the measure; empty if the check could not be run and names none that its sources have.
        outcome: how it ended.
        why: what counts against it, or what stood in the way.
        accepted: what differs and does not count.
        notes: what there is to say of differences that are declared to be known.
        known: how many of its differences are accounted for.
        seconds: how long the check took, all its measures together.
        comparison: what was found; None if it could not be run.
        changes: what is different from the last time; None without a history.
        description: what the check is for.
        meaning: a name for what its measure and its dimensions are made of in both sources; empty if it was not run.
        conditions: those on both sides, and those that held besides on A and on B, by which a later run is known to ask
            the same.
    """

    check: str
    measure: str = ""
    outcome: Outcome
    why: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    known: int = 0
    seconds: float = 0.0
    comparison: Comparison | None = None
    changes: Changes | None = None
    description: str = ""
    meaning: str = ""
    conditions: tuple[tuple[str, ...], ...] = ()

    @property
    def sentence(self) -> str:
        """What was found, and what has changed, in one line."""
        parts = [self._found()]
        if self.changes is not None and self.changes.sentence:
            parts.append(self.changes.sentence)
        return "; ".join(parts)

    def _found(self) -> str:
        if self.comparison is None or self.outcome == "not_run":
            return "could not be judged: " + "; ".join(self.why)
        total = self.comparison.summary
        rate = "" if total.match_rate is None else f" ({total.match_rate:g} %)"
        said = f"{total.matches:,} of {total.total_rows:,} keys match{rate}"
        against = f": {', '.join(self.why)}" if self.why else ""
        accepted = f"; {', '.join(self.accepted)}" if self.accepted else ""
        return f"{said}{against}{accepted}; {_totals(self.comparison)}"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What should be known besides: the notes, and the warnings of the comparison."""
        warnings = () if self.comparison is None else self.comparison.warnings
        return (*self.notes, *(warning.message for warning in warnings))


class Report(Struct, frozen=True, kw_only=True):
    """What came of all checks of a file.

    Attributes:
        file: the file that declares them.
        sources: the file that declares what they compare.
        started: when the run began.
        seconds: how long it took.
        verdicts: one for each check and measure, in the order of the file.
        unkept: why the history does not have this run; empty if it has, or if none was to keep it.
    """

    file: Path
    sources: Path
    started: datetime
    seconds: float
    verdicts: tuple[Verdict, ...]
    unkept: str = ""

    @property
    def outcome(self) -> Outcome:
        """How the run ended: as the worst of its checks."""
        return max((one.outcome for one in self.verdicts), key=OUTCOMES.index, default="not_run")

    def counted(self) -> dict[Outcome, int]:
        """How many verdicts there are of each outcome."""
        return {name: sum(one.outcome == name for one in self.verdicts) for name in OUTCOMES}

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values, decimals as text so that no digit is lost, and without what UTF-8 cannot hold."""
        bare = replace(self, verdicts=tuple(replace(one, comparison=None) for one in self.verdicts))
        data: dict[str, Any] = plain(bare)
        data["outcome"] = self.outcome
        data["counts"] = self.counted()
        for told, one in zip(data["verdicts"], self.verdicts, strict=True):
            told["sentence"] = one.sentence
            told["comparison"] = None if one.comparison is None else one.comparison.to_dict()
        return {name: _encodable(value) for name, value in data.items()}


def differing(found: Comparison) -> list[Difference]:
    """The keys that do not match, of those that were kept."""
    return [row for row in found.rows if row.status != "match"]


def _totals(found: Comparison) -> str:
    total = found.summary
    gaps = [(one.diff, one.currency or "") for one in total.by_currency]
    if total.total_diff is not None:
        gaps = [(total.total_diff, found.unit)]
    of = whole(found)
    if not any(gap for gap, _ in gaps):
        return f"{of} match, what is empty counting as zero" if _lacking(total) else f"{of} are equal"
    return f"{of} are {' and '.join(money(gap.copy_abs(), unit) for gap, unit in gaps if gap)} apart"


def _lacking(total: Summary) -> bool:
    """Whether a figure of all keys is there on one side only, of one currency where there are several."""
    pairs = [(one.source_a_value, one.source_b_value) for one in total.by_currency]
    return any((a is None) != (b is None) for a, b in pairs or [(total.total_source_a, total.total_source_b)])


def _named(keys: tuple[Change, ...]) -> str:
    """How many, of what, and the first of them."""
    dimensions = list(keys[0].key)
    what = _plural(dimensions[0], len(keys)) if len(dimensions) == 1 else "key" if len(keys) == 1 else "keys"
    shown = [" ".join(map(seen, one.key.values())) for one in keys]
    listed = ", ".join(shown[:_MOST_NAMED]) + (", …" if len(shown) > _MOST_NAMED else "")
    return f"{len(keys):,} {what}" + (f" ({listed})" if dimensions else "")


def _plural(name: str, count: int) -> str:
    """An English word for several of a dimension, where its name is one; else "keys"."""
    if not (name.isascii() and name.isalpha() and name.islower()):
        return "key" if count == 1 else "keys"
    if count == 1:
        return name
    return f"{name[:-1]}ies" if name[-1] == "y" and name[-2:-1] not in "aeiou" else f"{name}s"


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_encodable(name): _encodable(one) for name, one in value.items()}
    return [_encodable(one) for one in value] if isinstance(value, (list, tuple)) else value
