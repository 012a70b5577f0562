"""A question that goes on after its first part: "Compare a and b for company 1. Also for company 2." asks it twice.

What goes on becomes the whole question that it stands for, as a follow-up does. Called by `model`.
"""

from treadle.models.offline.grammar.question import split_clauses
from treadle.models.offline.plan.choice import ChosenTool
from treadle.models.offline.plan.followup import Meant, rewritten, without_lead
from treadle.models.offline.plan.goals import limits
from treadle.models.offline.plan.planner import Planner


def spelled_out(meant: Meant, planner: Planner) -> Meant:
    """A question with each part that goes on with the one before it as a question of its own.

    Args:
        meant: the question.
        planner: plans for the turn.
    """
    if meant.lost:
        return meant
    parts: list[str] = []
    changed = False
    for part in split_clauses(meant.text):
        before = planner.chooser.choose(planner.box.read(parts[-1], planner.today)) if parts else None
        if before is None or not _is_of_rows(before):
            parts.append(part)
            continue
        clause = planner.box.read(part, planner.today)
        choice = planner.chooser.choose(clause)
        if (choice is not None and (choice.spoken or not _is_of_rows(choice))) or limits(clause):
            parts.append(part)
            continue
        follow = planner.box.read(without_lead(part), planner.today)
        text = rewritten(planner.box.read(parts[-1], planner.today), follow, (), planner)
        if text and planner.spare_words(text) == 0:
            parts.append(text)
            changed = True
        elif choice is None:
            parts.append(part)
        else:
            return Meant(meant.text, lost=(part.rstrip(" ?.!"),))
    return Meant(". ".join(part.rstrip(" .") for part in parts), True) if changed else meant


def _is_of_rows(choice: ChosenTool) -> bool:
    """Whether a tool tells of rows that conditions choose, and changes none."""
    return choice.tool.change is None and any(param.shape == "filters" for param in choice.tool.params)
