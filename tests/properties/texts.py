"""What the outside may write where nobody looks: ids that look like keys and paths, texts that no file takes."""

from treadle.result import fingerprint

LONE = "\ud800"
"""Half of a character: what a latin-1 file name holds when it comes out of `os.listdir`."""

CALL_IDS = (
    "a", "b", "c", "c_1", "", "a/b", "a%2Fb", "a#00000000", f"a#{fingerprint('{}')}", "a#" + fingerprint('{"n": 1}'),
    "a.0.b", "a.b", "x+1", "a~1", "a b", "id\n\x00\x1b", "\u202ea", f"lone{LONE}", "long" * 200, "..", "/", "#", "%",
)  # fmt: skip
PLAIN_IDS = ("a", "b", "c", "c_1", "")

QUESTION = "go"
ASIDE = "by the way"
GO_ON = "go on, with more"
WHY_NOT = "rather not"
FROM_OUTSIDE = "from outside"
REPLACED = "replaced by the hook"
REASON = "a rule says so"


def hostile(text: str) -> str:
    """`text` with a lone surrogate after it."""
    return f"{text} {LONE}"


def shows(text: str, shown: str) -> bool:
    """Whether `shown` has `text`, whatever became of its lone surrogates."""
    return text.replace(LONE, "").strip() in shown


FIGURES = (
    "company,period,account,amount\n"
    + "".join(f"10{i:02},2026{i % 12 + 1:02},{400000 + i},{i * 7919}.{i:02}\n" for i in range(30)),
    "".join(f"{i * 0x9E3779B97F4A7C15 % 2**128:032x}\n" for i in range(1, 30)),
    str(7**900),
    "金額は一億二千三百万円です。" * 20 + "🧾" * 20,
)
"""What analysts work with, and what vocabularies take apart: tables, ids, digits, other scripts."""


def figures(n: int) -> str:
    """One of these texts."""
    return FIGURES[n % len(FIGURES)]
