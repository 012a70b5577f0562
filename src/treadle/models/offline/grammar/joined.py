"""What the figures of two things come to: their mean, their sum, what lies between them, as the question for both.

Read by `model`, which has both told and then worked out; `plan.together` does that.
"""

import re
from dataclasses import dataclass

from treadle.models.offline.grammar.sides import is_name, of_each

_THE = r"(?:the |an? |our )?"
_NAME = r"[A-Za-z][\w-]*(?: [A-Z][\w-]*){0,2}"
_TWO = rf"{_THE}(?P<one>{_NAME}) and {_THE}(?P<other>{_NAME})"
_THAN = rf"{_THE}(?P<one>{_NAME}) than (?:that (?:of|in) |in |the (?P=what) (?:of|in) )?{_THE}(?P<other>{_NAME})"
_WHAT = r"(?P<what>[a-z]+(?: [a-z]+)?)"
_ASKED = r"^\W*(?:(?:what(?: is|['’]s)|tell me|give me|calculate|compute) )?the "
_MORE = r"(?:more|less|larger|bigger|smaller|higher|lower|greater)"
_END = r"\s*[?.!]*\s*$"
_FORMS = tuple(
    (re.compile(f"{form}{_END}", re.IGNORECASE), working)
    for form, working in (
        (rf"{_ASKED}(?:average|mean) {_WHAT} (?:of|in|for) {_TWO}", "Average"),
        (rf"{_ASKED}(?:total|combined|overall) {_WHAT} (?:of|in|for) {_TWO}", "In total"),
        (rf"{_ASKED}difference between the {_WHAT} (?:of|in|for) {_TWO}", "Difference"),
        (rf"{_ASKED}difference in {_WHAT} between {_TWO}", "Difference"),
        (rf"{_ASKED}{_WHAT} difference between {_TWO}", "Difference"),
        (rf"^\W*how much {_MORE} is the {_WHAT} (?:of|in) {_THAN}", "Difference"),
        (rf"^\W*who has more {_WHAT}[,:]? {_THE}(?P<one>{_NAME}) or {_THE}(?P<other>{_NAME})", "Difference"),
    )
)
_HAVING = tuple(
    (re.compile(f"{form}{_END}", re.IGNORECASE), working)
    for form, working in (
        (rf"^\W*how much more (?:do|does) {_THE}(?P<one>{_NAME}) have than {_THE}(?P<other>{_NAME})", "Difference"),
        (rf"^\W*who has more,? {_THE}(?P<one>{_NAME}) or {_THE}(?P<other>{_NAME})", "Difference"),
        (rf"^\W*(?:what|how much) do {_TWO} have (?:in total|together|altogether|in all)", "In total"),
    )
)
_COMPARED = re.compile(r"^\W*how (?:much|many)\b", re.IGNORECASE)
_MANY = re.compile(
    r"^\W*how many (?P<two>.+? and .+?) do we have (?:in total|together|altogether|in all)" + _END, re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Joined:
    """A question for the figure of each of two things, and what is to be worked out of them.

    Attributes:
        question: the question.
        working: what the figures are asked for.
        what: the word for the figure; empty where it is a number of things.
    """

    question: str
    working: str
    what: str


def find_joined(text: str, owned: tuple[str, ...] = ()) -> list[Joined]:
    """The readings of `text` as a question for what two figures come to, the likeliest first.

    Args:
        text: the question.
        owned: words for what one has, where that is not said: "How much more does Dana have than Omar?".
    """
    found = [_read(match, working, match["what"]) for form, working in _FORMS if (match := form.match(text))]
    for form, working in _HAVING:
        if (match := form.match(text)) is not None:
            found += [_read(match, working, what) for what in owned]
    if (match := _MANY.match(text)) is not None:
        found.append(Joined(f"How many {match['two']} do we have?", "In total", ""))
    if not found and _COMPARED.match(text):
        for question in of_each(text):
            asked = re.match(r"What (?:is|are) the (.+?) (?:of|in) ", question)
            found.append(Joined(question, "Difference", asked[1] if asked is not None else ""))
    return [each for each in found if each is not None]


def _read(match: re.Match[str], working: str, what: str) -> Joined | None:
    if not is_name(match["one"]) or not is_name(match["other"]):
        return None
    plural = re.sub(r"s$", "", what) if "between the" in match.group().lower() else what
    return Joined(f"What is the {plural} of {match['one']} and {match['other']}?", working, plural)
