"""Sentences that go on with another one: "For company 1001. Compare …", "Compare …. Exclude account 710300. By month."

Pure functions over text. `question` parts a question with them: what only limits another part asks for nothing itself.
"""

import re

from treadle.models.offline.grammar.words import is_verb

_CONDITION = re.compile(
    r"^\W*(?:(?:and|but|or|not|only)\s+)?(?:if|when|suppose|given|assuming|for|in|at|on|of|during|throughout|within|"
    r"before|after|since|until|till|through|from|between|with|without|except(?:ing)?|excluding|ignoring|omitting|"
    r"leaving out|apart from|besides|other than|prior to|up to|as of|starting)\b[^?!]*$",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"^\W*(?:(?:and|but|also|please)\s+)*(?:don['’]t|do not|never|ignore|exclude|omit|skip|disregard|leave out|not)\b",
    re.IGNORECASE,
)
_CODE = r"(?:\s*[=:]\s*|\s+is\s+|\s+)(?=[\w.-]*\d)[\w.-]+"
_LIMIT = re.compile(
    rf"^\W*(?:(?:only|just|for|where)\s+)*(?P<noun>[^\W\d_]{{3,}}){_CODE}"
    rf"(?:\s*(?:,|\band\b|\bor\b)(?:\s*[^\W\d_]{{3,}})?{_CODE})*[\s.!]*$",
    re.IGNORECASE,
)
_BREAKDOWN = re.compile(
    r"^\W*(?:group(?:ed)?\s+)?(?:by|per)\s+[^\W\d]+(?:(?:\s*,\s*|\s+and\s+)[^\W\d]+)*[\s.!]*$", re.IGNORECASE
)


def as_one(before: str, after: str) -> str | None:
    """Both parts as one where either only limits the other, else None."""
    if _CONDITION.match(before):
        return _joined(before, after)
    if _DENIAL.match(after) or _limits(before, after):
        # "Exclude" would be a name within a sentence.
        return _joined(before, f"{after[:1].lower()}{after[1:]}")
    return None


def _joined(before: str, after: str) -> str:
    return f"{before.rstrip(' .!?,;')}, {after}"


def _limits(before: str, after: str) -> bool:
    """Whether a part has nothing but things with a number, of which there was no word before, as "Company 1001, period
    202401." after "Compare …"; or says for each of what something is told."""
    if before.rstrip().endswith("?"):
        return False
    if _BREAKDOWN.match(after):
        return True
    found = _LIMIT.match(after)
    return found is not None and not is_verb(found["noun"]) and found["noun"].lower() not in before.lower()
