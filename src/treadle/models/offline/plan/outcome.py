"""How far the parts of a question have come: the calls to make, what was found, what went wrong.

`planner` makes these and `answer` writes them up.
"""

from dataclasses import dataclass, field

from treadle.kernel.messages import Json
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.plan.account import Left
from treadle.models.offline.plan.reckoning import Reckoning
from treadle.models.offline.plan.table import Table
from treadle.models.offline.plan.together import WorkedOut
from treadle.models.offline.plan.toolbox import KnownTool
from treadle.models.offline.plan.transcript import Exchange


@dataclass(frozen=True)
class Call:
    """A tool call to make."""

    tool: str
    arguments: Json


@dataclass(frozen=True)
class Trouble:
    """Why something could not be done, in words, and what would have been valid."""

    message: str
    available: tuple[str, ...] = ()


@dataclass
class Outcome:
    """How far a clause has come: results that answer it, calls that it still needs, and what went wrong.

    `renamed` holds what was written and the valid name it was taken for, `called` the words for identifiers that were
    looked up, `used` the stretches of the clause that went into arguments, `tools` what is called for it, `left` what
    no tool and no argument accounts for, once that is known, `comes_to` what the results come to, if that is asked,
    `reckoning` what was reckoned from records and these, and `doubted` whether nothing was found of what may be
    something else.
    """

    clause: Clause
    done: list[Exchange] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    called: dict[str, str] = field(default_factory=dict)
    used: list[tuple[int, int]] = field(default_factory=list)
    tools: list[KnownTool] = field(default_factory=list)
    left: Left | None = None
    comes_to: WorkedOut | None = None
    reckoning: tuple[Table, Reckoning] | None = None
    doubted: bool = False

    @property
    def apart(self) -> tuple[str, ...]:
        """What the answer leaves out of account: the reason of an order among it, where no call was given that."""
        reason = self.clause.reason
        told = not reason or any(reason in made.planned.values() for made in self.done)
        return (*(self.left.apart if self.left is not None else ()), *(() if told else (f"because {reason}",)))

    def take(self, other: "Outcome") -> None:
        """Adds what another outcome found."""
        self.done += other.done
        self.calls += other.calls
        self.troubles += other.troubles
        self.renamed |= other.renamed
        self.called |= other.called
        if other.left is not None:
            mine = self.left or Left()
            spare = tuple(dict.fromkeys(mine.spare + other.left.spare))
            spoken, apart = mine.spoken + other.left.spoken, mine.apart + other.left.apart
            self.left = Left(mine.turning + other.left.turning, spare, spoken, apart)


@dataclass(frozen=True)
class Goal:
    """A clause, the tool that is to answer it, and the tool that is to give that one what the clause does not.

    With `reads`, the tool only lists the names that the clause may speak of.
    """

    clause: Clause
    tool: KnownTool | None = None
    source: KnownTool | None = None
    reads: bool = False


@dataclass
class Plan:
    """The outcomes of a question's clauses, and the clauses that no tool is about."""

    outcomes: list[Outcome]
    unplanned: list[str]

    @property
    def calls(self) -> list[Call]:
        """The calls to make now, each once."""
        found: list[Call] = []
        for call in [call for outcome in self.outcomes for call in outcome.calls]:
            if call not in found:
                found.append(call)
        return found
